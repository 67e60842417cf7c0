"""The package to install for a module that is missing: its pip line."""

from __future__ import annotations

import sys

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
    "jwt": "pyjwt",
    "magic": "python-magic",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tritonclient": "'tritonclient[all]'",
    "yaml": "pyyaml",
}
"""Modules whose package has another name. Where a name is in neither, package and module are called alike."""


def pip_line(error: BaseException) -> str:
    """The sentence on how to install what a ModuleNotFoundError misses; nothing for any other error.

    A module that is missing from a package which is there is no package of its own.
    """
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if not name:
        return ""
    parts = name.split(".")
    known = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    package = next((DISTRIBUTIONS[each] for each in known if each in DISTRIBUTIONS), parts[0])
    if package == parts[0] and parts[0] in sys.modules:
        return ""
    return f"Unless {parts[0]} is a file of yours, install it: {sys.executable} -m pip install {package}"
