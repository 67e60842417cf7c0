"""An endpoint as its address alone describes it: the shipped factories file that sends to it, and its settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from inference_benchmarker.engine.endpoint.address_body import body_settings, content_type_of, shown_body
from inference_benchmarker.engine.endpoint.address_options import (
    CHAT,
    RERANK,
    RESPONSES,
    AddressOptions,
    Described,
)
from inference_benchmarker.engine.endpoint.addressed_model import (
    OF_MEDIA,
    OF_SESSIONS,
    of_openai,
    of_rerank,
    of_responses,
)
from inference_benchmarker.system.packaged import HTTP_FILE
from inference_benchmarker.words.redact import quoted

if TYPE_CHECKING:
    from urllib.parse import SplitResult


_ROUTES = {
    "/chat/completions": CHAT,
    "/completions": "completions",
    "/embeddings": "embeddings",
    "/v1/responses": RESPONSES,
    "/rerank": RERANK,
}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OF_MODELS = ("model", "prompt", "input_tokens", "output_tokens", "turns", *OF_SESSIONS, "recorded", *OF_MEDIA)


def is_of_chats(address: SplitResult) -> bool:
    """Tells whether an address is one of OpenAI's chat API."""
    path = address.path.rstrip("/")
    return path.endswith(("/v1", "/chat/completions"))


def describe(address: SplitResult, asked: AddressOptions, problems: list[str]) -> Described:
    """The endpoint of an address and its flags; ``problems`` gets what is wrong with them."""
    server, path = f"{address.scheme}://{address.netloc.rpartition('@')[2]}", address.path.rstrip("/")
    route = next((route for route in _ROUTES if path.endswith(route)), "")
    is_api = bool(route) or path.endswith("/v1")
    if (asked.method or "POST").upper() == "POST" and asked.content_type is None and is_api:
        api = _ROUTES.get(route, CHAT)
        if api == RERANK:
            if asked.body is None and not address.query:
                return of_rerank(server, path.removesuffix(route), asked, problems)
            return _http(server, address, asked, problems)
        if api != RESPONSES:
            return of_openai(api, address._replace(netloc=server, path=path.removesuffix(route)), asked, problems)
        if asked.body is None and not address.query:
            return of_responses(server, path.removesuffix(route), asked, problems)
    return _http(server, address, asked, problems)


def _http(server: str, address: SplitResult, asked: AddressOptions, problems: list[str]) -> Described:
    if stray := asked.given(*_OF_MODELS):
        near = f" Did you mean {server}/v1?" if address.path in ("", "/") else ""
        problems.append(
            f"{', '.join(stray)}: only for an OpenAI-compatible API, at a URL that ends in /v1, /chat/completions, "
            f"/completions, /embeddings, /rerank or /v1/responses.{near}"
        )
    if asked.content_type is not None and asked.body is None:
        problems.append("--content-type describes a --body, and there is none.")
    if not (asked.content_type or "").isprintable():
        problems.append("--content-type has a line break or a character that no header may have.")
    method = asked.method or ("GET" if asked.body is None else "POST")
    if not _TOKEN.fullmatch(method):
        problems.append(f"--method must be one word, such as PUT, not {quoted(method)}.")
    body = body_settings(asked.body, problems) if asked.body is not None else {"BODY": ""}
    kind = asked.content_type or ("" if asked.body is None else content_type_of(body))
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    settings = {"SERVER": server, "PATH": path, "METHOD": method.upper(), "CONTENT_TYPE": kind, **body}
    text = f" with {shown_body(body)} ({kind})" if asked.body is not None else ""
    return Described(HTTP_FILE, settings, f"{method.upper()} {server}{path}{text}", server)
