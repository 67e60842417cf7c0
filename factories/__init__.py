"""Endpoint descriptions to copy and edit: an example is a file `factories_NAME.py` in the folder of its platform."""
