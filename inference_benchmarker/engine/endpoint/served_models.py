"""Asks a server with OpenAI's API which models it has, before a wave: its list names what a request may ask for."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import TYPE_CHECKING, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.in_time import in_time
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_S = 10.0
_MOST_BYTES = 1 << 22
_SHOWN = 10


class _NoRedirect(HTTPRedirectHandler):
    """Goes nowhere else: the headers are meant for the server that the user named, and so are the requests."""

    def redirect_request(self, *_: object) -> None:
        """Make no request of it, so that it is an error."""


class ServedModel(NamedTuple):
    """A model as a server lists it; ``owner`` is mostly the name of the software: vllm, sglang, llamacpp."""

    name: str
    owner: str = ""


def only_model(address: str, headers: Mapping[str, str]) -> ServedModel:
    """The one model that the list at ``address`` has. Raises BenchmarkError where there is none, or are several."""
    models = _listed(address, headers)
    if len(models) == 1:
        return models[0]
    names = [model.name for model in models]
    if not names:
        raise BenchmarkError(f"{address} lists no model.", "Name it with --model.")
    more = "" if len(names) <= _SHOWN else f" and {len(names) - _SHOWN} more"
    shown = ", ".join(map(said, names[:_SHOWN]))
    raise BenchmarkError(f"The server has several models: {shown}{more}.", "Choose one with --model.")


def _listed(address: str, headers: Mapping[str, str]) -> list[ServedModel]:
    """Its models, each name once. Raises BenchmarkError for what is no such list."""
    request = Request(address, headers={"Accept": "application/json", **headers})  # noqa: S310 - http or https
    try:
        listed = json.loads(in_time(lambda: _answer(request), TIMEOUT_S))
        models = {str(each["id"]): str(each.get("owned_by") or "") for each in listed["data"]}
    except HTTPError as error:
        elsewhere = error.headers.get("Location")
        at = f" and sends on to {said(elsewhere, 200)}" if elsewhere else ""
        hint = "a key is missing or wrong" if error.code == 401 else ""
        raise _no_model(address, f"it answered {error.code}{at}", hint) from None
    except TimeoutError:
        raise _no_model(address, f"its answer was not complete within {TIMEOUT_S:g} s") from None
    except (URLError, OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        hint = "is the server running there" if isinstance(reason, ConnectionRefusedError) else ""
        raise _no_model(address, said(str(getattr(reason, "strerror", None) or reason), 200), hint) from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _no_model(address, "its answer is not a list of models") from None
    return [ServedModel(*each) for each in models.items()]


def _answer(request: Request) -> bytes:
    with build_opener(ProxyHandler({}), _NoRedirect).open(request, timeout=2 * TIMEOUT_S) as answer:
        return bytes(answer.read(_MOST_BYTES))


def _no_model(address: str, reason: str, hint: str = "") -> BenchmarkError:
    doubt = f" ({hint}?)" if hint else ""
    return BenchmarkError(
        f"No --model is given, and none could be read from {address}: {reason}{doubt}.", "Give --model NAME."
    )
