"""Imports Locust, which patches the process for gevent: what every program that sends imports first.

A wave waits for it, so three things are left out that nobody misses. gevent looks for plugins before and after each
module that it patches, and each time Python reads the metadata of every installed package: here they are read once.
The garbage collector looks at modules while they are loaded, and finds nothing. And Locust loads Flask, which only its
page needs.
"""

from __future__ import annotations

import gc
import sys
from importlib import metadata
from types import ModuleType
from typing import Any

_WEB = "locust.web"


def _page(*args: Any, **kwargs: Any) -> Any:
    """Make Locust's page, whose module is loaded only now."""
    from locust.web import WebUI

    return WebUI(*args, **kwargs)


_asked = metadata.entry_points
metadata.entry_points = metadata.entry_points().select
_stand_in = sys.modules[_WEB] = ModuleType(_WEB)
_stand_in.__dict__["WebUI"] = _page
gc.disable()
try:
    import locust
    import locust.env  # which asks for the page's name
finally:
    gc.enable()
    del sys.modules[_WEB]
    metadata.entry_points = _asked

__all__ = ["locust"]
