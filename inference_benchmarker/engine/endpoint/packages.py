"""The package to install for a module that is missing: its pip line."""

from __future__ import annotations

import re
import sys
import traceback

DISTRIBUTIONS = {
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "google.genai": "google-genai",
    "google.protobuf": "protobuf",
    "grpc": "grpcio protobuf",
    "httpx2": "'openai>=3'",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "openai": "'openai>=3'",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tritonclient": "'tritonclient[all]'",
    "yaml": "pyyaml",
}
"""Modules whose package has another name, or needs a version. Else package and module are called alike."""
_NAMESPACES = frozenset({"google"})  # whose packages have names of their own; the one called like it is none of them


def pip_line(error: BaseException) -> str:
    """The sentence on how to install what a ModuleNotFoundError misses; nothing for any other error.

    A module that is missing from a package which is there is no package of its own.
    """
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if not name:
        return ""
    parts = _asked_for(error, name).split(".")
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    package = next((DISTRIBUTIONS[each] for each in names if each in DISTRIBUTIONS), parts[0])
    if package == parts[0] and (sys.modules.get(parts[0]) or parts[0] in _NAMESPACES):
        return ""
    return f"Unless {parts[0]} is a file of yours, install it: {sys.executable} -m pip install {package}"


def _asked_for(error: BaseException, name: str) -> str:
    """The whole name that the line asked for: Python tells only as much of it as is missing, ``google`` of all."""
    lines = [frame.line or "" for frame in traceback.extract_tb(error.__traceback__) if frame.filename[0] != "<"]
    found = re.search(rf"\b(?:import|from)\s+({re.escape(name)}(?:\.\w+)*)\b", lines[-1]) if lines else None
    return found[1] if found else name
