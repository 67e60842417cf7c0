"""The machines on which a wave's workers run."""
