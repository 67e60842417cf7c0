"""AWS as the embedded endpoint plays it: its metrics, its log and what it is made of."""
