"""The protocols that the embedded endpoint speaks: which path is answered in which platform's words.

A new protocol is a dialect and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.http.messages import Answer, Request, json_answer
from inference_benchmarker.embedded.http.routing import Route
from inference_benchmarker.embedded.protocols.bedrock import ConverseDialect, ConverseStreamDialect
from inference_benchmarker.embedded.protocols.chat import OpenAiDialect
from inference_benchmarker.embedded.protocols.completions import CompletionsDialect, EmbeddingsDialect
from inference_benchmarker.embedded.protocols.generate_stream import GenerateStreamDialect
from inference_benchmarker.embedded.protocols.lambda_function import LambdaDialect
from inference_benchmarker.embedded.protocols.model_servers import KServeDialect, TorchServeDialect
from inference_benchmarker.embedded.protocols.plain import PlainDialect
from inference_benchmarker.embedded.protocols.rerank import RerankDialect
from inference_benchmarker.embedded.protocols.responses import ResponsesDialect
from inference_benchmarker.embedded.protocols.sagemaker import SageMakerDialect, SageMakerStreamDialect

if TYPE_CHECKING:
    from inference_benchmarker.embedded.protocols.dialects import Dialect

Answerer = Callable[[Request], Answer]

SAGEMAKER = "/endpoints/{name}/"


def queued(
    tokens: int,
    finish_reason: str | None,
    *,
    echo: bool = False,
    prefix_cache: int = 0,
    tokens_per_piece: int = 1,
    block_size: int | None = None,
) -> dict[str, Dialect]:
    """The paths whose requests wait for a server.

    ``tokens``: of an answer whose request sets no limit. ``finish_reason``: of every chat and text that tells one;
    None: their own. ``echo``: chats repeat what they are asked. ``prefix_cache``: the tokens that the chat's model
    keeps of prompts and answers. ``tokens_per_piece``: how many an event of a streamed chat brings. ``block_size``:
    tokens of a block of the LLM engine, which serves chats and text completions alone; None: there is none.
    """
    if block_size is not None:
        kinds = {"/v1/chat/completions": OpenAiDialect, "/v1/completions": CompletionsDialect}
        return {
            path: kind(tokens, finish_reason, echo=echo, tokens_per_piece=tokens_per_piece, block_size=block_size)
            for path, kind in kinds.items()
        }
    return {
        "/invocations": PlainDialect(tokens),
        f"{SAGEMAKER}invocations": SageMakerDialect(tokens, finish_reason),
        f"{SAGEMAKER}invocations-response-stream": SageMakerStreamDialect(tokens, finish_reason),
        "/model/{id}/converse": ConverseDialect(tokens, finish_reason),
        "/model/{id}/converse-stream": ConverseStreamDialect(tokens, finish_reason),
        "/2015-03-31/functions/{name}/invocations": LambdaDialect(),
        "/v1/chat/completions": OpenAiDialect(
            tokens, finish_reason, echo=echo, prefix_cache=prefix_cache, tokens_per_piece=tokens_per_piece
        ),
        "/v1/completions": CompletionsDialect(tokens, finish_reason),
        "/v1/embeddings": EmbeddingsDialect(tokens),
        "/v1/responses": ResponsesDialect(tokens, finish_reason),
        "/v1/rerank": RerankDialect(tokens),
        "/rerank": RerankDialect(tokens),
        "/v2/models/{name}/infer": KServeDialect(),
        "/v2/models/{name}/versions/{version}/infer": KServeDialect(),
        "/v2/models/{name}/generate_stream": GenerateStreamDialect(tokens, finish_reason),
        "/v2/models/{name}/versions/{version}/generate_stream": GenerateStreamDialect(tokens, finish_reason),
        "/predictions/{name}": TorchServeDialect(),
    }


def at_once() -> list[Route[Answerer]]:
    """The routes beside the inference, answered whatever the servers do."""
    return [
        Route("GET", "/v1/models", lambda _: OpenAiDialect.models()),
        Route("GET", "/v2/health/ready", lambda _: KServeDialect.ready()),
        Route("GET", "/ping", lambda _: json_answer(200, {"status": "healthy"})),
    ]
