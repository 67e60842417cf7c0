"""The primary process: leads the workers through a wave and writes down what they report."""
