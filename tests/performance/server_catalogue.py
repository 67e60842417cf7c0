"""Other people's servers: how each is started, what it counts itself, and the examples that are sent to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.performance import server_environments as made
from tests.performance.measure import REPOSITORY
from tests.performance.server_process import Case, Counts, Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.performance.server_process import Running

MODEL = "tiny"
STREAM_WORDS = 8  # of the model in served/mlserver_model.py
PROMPT_WORDS = 5  # of the http stream's example, which served/bento_service.py says again
SELDOM = 0.18  # a second: uvicorn and llama-server close what was idle for 5 s


def _openai(name: str, counts: Callable[[Running], Counts], model: str = MODEL, **more: Any) -> Case:
    load = {key: more.pop(key) for key in ("concurrency", "rate") if key in more}
    edits = {"MODEL": model, **more}
    return Case(f"openai_compatible/{name}", counts, edits, **load)


# LitServe


def _litserve(port: int, folder: Path) -> list[str | Path]:
    return [made.environment("litserve") / "python", "-m", "tests.lit_models", str(port), folder]


def _sums(running: Running) -> Counts:
    return Counts(len(running.noted("sums")))


def _words(running: Running) -> Counts:
    noted = running.noted("words")
    return Counts(len(noted), sum(row["completion_tokens"] for row in noted))


LITSERVE = Server(
    "LitServe",
    lambda: made.version("litserve", "litserve"),
    _litserve,
    "/health",
    (
        Case("http/factories_http", _sums),
        Case("http/factories_http", _sums, rate=SELDOM),
        _openai("factories_chat", _words),
        _openai("factories_chat_stream", _words),
        _openai("factories_chat_stream_openai_package", _words),
    ),
)

# BentoML


def _bentoml(port: int, folder: Path) -> list[str | Path]:
    service = "tests.performance.served.bento_service:Sums"
    program = made.environment("bentoml") / "bentoml"
    where = ("--working-dir", REPOSITORY, "--host", "127.0.0.1", "--port", str(port))
    return [program, "serve", service, *where]


def _bento_requests(route: str, words: int | None = None) -> Callable[[Running], Counts]:
    def counts(running: Running) -> Counts:
        requests = running.metric(rf'bentoml_service_request_total\{{endpoint="{route}"')
        return Counts(requests, None if words is None else words * requests)

    return counts


BENTOML = Server(
    "BentoML",
    lambda: made.version("bentoml", "bentoml"),
    _bentoml,
    "/readyz",
    (
        Case("http/factories_http", _bento_requests("/invocations")),
        Case("http/factories_http_stream", _bento_requests("/stream", PROMPT_WORDS), {"PATH": "/stream"}),
    ),
    {"BENTOML_DO_NOT_TRACK": "True", "BENTOML_HOME": str(made.CACHE / "bentoml-home")},
)

# MLServer


def _mlserver(port: int, folder: Path) -> list[str | Path]:
    ports = {"http_port": port, "grpc_port": port + 1, "metrics_port": port + 2}
    # Streams need both: no workers of its own, no compression.
    settings = {"host": "127.0.0.1", **ports, "parallel_workers": 0, "gzip_enabled": False}
    model = {"name": "demo", "implementation": "tests.performance.served.mlserver_model.Tiny"}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(model))
    return [made.environment("mlserver") / "mlserver", "start", folder]


def _rest(running: Running) -> Counts:
    return Counts(running.metric(r"rest_server_requests_total\{.*infer\"", running.port + 2))


def _grpc(running: Running) -> Counts:
    return Counts(running.metric(r"grpc_server_handled_total\{.*\"ModelInfer\"", running.port + 2))


def _noted_streams(running: Running) -> Counts:
    """As our model counts them: MLServer's own metrics leave streams over gRPC out."""
    streams = sum(row["kind"] == "stream" for row in running.noted())
    return Counts(streams, STREAM_WORDS * streams)


def _streams_over_rest(running: Running) -> Counts:
    streams = running.metric(r"rest_server_requests_total\{.*generate_stream\"", running.port + 2)
    return Counts(streams, _noted_streams(running).tokens)


MLSERVER = Server(
    "MLServer",
    lambda: made.version("mlserver", "mlserver"),
    _mlserver,
    "/v2/health/ready",
    (
        Case("kserve_v2/factories_http", _rest),
        Case("kserve_v2/factories_generate_stream", _streams_over_rest),
        Case("kserve_v2/factories_grpc", _grpc, grpc=True),
        Case("kserve_v2/factories_grpc_stream", _noted_streams, {"TRITON": False}, grpc=True),
    ),
)

# llama.cpp


def _llama(*flags: str) -> Callable[[int, Path], list[str | Path]]:
    def command(port: int, folder: Path) -> list[str | Path]:
        where = ("--host", "127.0.0.1", "--port", str(port), "--offline", "--no-ui")
        size = ("--parallel", "4", "--ctx-size", "8192", "--threads", "1")
        model = made.tiny_model() / "model.gguf"
        return [made.llama_server(), "--model", model, "--alias", MODEL, "--metrics", *where, *size, *flags]

    return command


def _tasks(each: int = 1) -> Callable[[Running], Counts]:
    """One task a prompt: ``each`` of them a request."""

    def counts(running: Running) -> Counts:
        tokens = running.metric("llamacpp:tokens_predicted_total ")
        return Counts(running.said("launch_slot_: .*processing task") // each, tokens if each == 1 else None)

    return counts


LLAMA = Server(
    "llama-server",
    made.llama_version,
    _llama(),
    "/health",
    (
        _openai("factories_chat", _tasks(), MAX_TOKENS=16),
        _openai("factories_chat", _tasks(), MAX_TOKENS=16, rate=SELDOM),
        _openai("factories_chat_stream", _tasks(), MAX_TOKENS=16),
        _openai("factories_chat_stream", _tasks(), MAX_TOKENS=16, concurrency=4),
        _openai("factories_chat_stream_openai_package", _tasks(), MAX_TOKENS=16),
        _openai("factories_completions_stream", _tasks(), MAX_TOKENS=16, IDS=range(2, 150), PROMPT_TOKENS=(128, 512)),
        _openai("factories_responses_stream", _tasks(), MAX_TOKENS=16),
    ),
)
LLAMA_EMBEDDINGS = Server(
    "llama-server --embeddings",
    made.llama_version,
    _llama("--embeddings", "--pooling", "mean"),
    "/health",
    (_openai("factories_embeddings", _tasks(4)),),
)
LLAMA_RERANK = Server(
    "llama-server --rerank",
    made.llama_version,
    _llama("--rerank"),
    "/health",
    (_openai("factories_rerank", _tasks(8)),),
)

# transformers


def _transformers(port: int, folder: Path) -> list[str | Path]:
    where = ("--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--log-level", "info")
    return [made.environment("transformers") / "transformers", "serve", made.tiny_model(), *where]


def _posts(running: Running) -> Counts:
    return Counts(running.said(r'"POST /v1/\S+ HTTP/1.1" 200'))


def _of_transformers(name: str) -> Case:
    return _openai(name, _posts, str(made.CACHE / "model"), MAX_TOKENS=16, rate=1.5)


TRANSFORMERS = Server(
    "transformers serve",
    lambda: made.version("transformers", "transformers"),
    _transformers,
    "/health",
    (
        _of_transformers("factories_chat"),
        _of_transformers("factories_chat_stream"),
        _of_transformers("factories_chat_stream_openai_package"),
        _of_transformers("factories_responses_stream"),
    ),
    {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""},
)

SERVERS = (LITSERVE, BENTOML, MLSERVER, LLAMA, LLAMA_EMBEDDINGS, LLAMA_RERANK, TRANSFORMERS)
