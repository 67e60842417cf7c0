"""The import of Locust that a wave waits for: the process is patched, and nothing is loaded or read in vain."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
from importlib import metadata
asked, read = metadata.entry_points, []
metadata.entry_points = lambda **wanted: read.append(wanted) or asked(**wanted)
counting = metadata.entry_points
from inference_benchmarker.engine.locust import patched
from inference_benchmarker.engine.locust import runtime
import gc, socket, sys
assert read == [{}], read
assert metadata.entry_points is counting
assert socket.socket.__module__.startswith("gevent")
assert gc.isenabled()
assert "flask" not in sys.modules
import locust.web
from locust.env import Environment
assert "flask" in sys.modules
page = Environment().create_web_ui(host="127.0.0.1", port=0, delayed_start=True)
assert type(page) is locust.web.WebUI
from locust.argument_parser import default_args_dict
assert default_args_dict() is default_args_dict()
assert "headless" in default_args_dict()
"""


def test_locust_is_imported_as_it_is_and_quicker() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
