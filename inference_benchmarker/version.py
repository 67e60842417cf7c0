"""The versions of this tool and of the files it writes."""

__version__ = "0.1.0"

SCHEMA_VERSION = 1
"""Of every JSON file. A newer one is refused, an older one is read."""
