"""Files that come with the packages: the shipped factories, configurations and the tokenizer of the embedded endpoint.

They are found without an import, and where a file of the user's has the name of a package, too.
"""

from __future__ import annotations

from pathlib import Path

DEMO_FACTORIES = "demo/factories_demo.py"
DEMO_ENDPOINT_FACTORIES = "demo/factories_demo_endpoint.py"
DEMO_CHAT_FACTORIES = "openai_compatible/factories_chat_stream.py"
HTTP_FILE = "http/factories_http.py"
DEMO_METRICS = "server_metrics_configs/demo.json"
DEMO_TOKENIZER = "embedded/tokenizer"

_TOP = Path(__file__).resolve().parents[2]
"""The packages lie beside one another, installed or in a clone."""


def packaged(package: str, name: str = "") -> Path:
    """The path of a file or folder of a top-level package; without a name, of the package itself."""
    return _TOP / package / name


def shown_path(path: Path) -> str:
    """A path as a user knows it: a shipped example's is its name."""
    folder = packaged("factories")
    return path.relative_to(folder).with_suffix("").as_posix() if path.is_relative_to(folder) else str(path)


def demo_factories(*, chat: bool = False, makes_endpoint: bool = False) -> Path:
    """The factories file of the embedded endpoint; as a chat, which is what aiperf can send.

    ``makes_endpoint``: one with an endpoint_factory, which makes endpoints of several instance types there.
    """
    if makes_endpoint:
        return packaged("factories", DEMO_ENDPOINT_FACTORIES)
    return packaged("factories", DEMO_CHAT_FACTORIES if chat else DEMO_FACTORIES)


def demo_metrics() -> Path:
    """The configuration of the embedded endpoint's server metrics."""
    return packaged("server_capacity", DEMO_METRICS)


def demo_tokenizer() -> Path:
    """The folder with a tokenizer that makes a token of each word and sign: the embedded model has none on the hub."""
    return packaged("inference_benchmarker", DEMO_TOKENIZER)
