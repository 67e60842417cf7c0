"""The requests of a search as its plan keeps them, and in which of them another wave differs. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from inference_benchmarker.answer_size import DEFAULT_ANSWER_SIZE
from inference_benchmarker.facts.wave_facts import OF_MODULES, OF_SETTINGS
from inference_benchmarker.system.packaged import shown_path
from inference_benchmarker.url import SEED_SETTING, SERVER_SETTINGS, without_server
from inference_benchmarker.words.redact import HIDDEN, redact
from inference_benchmarker.words.text import one_line
from server_capacity.results.types.plan import SearchedRequests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan

    Flags = dict[str, list[str]]

FACTORIES = ""
"""The name of the factories file among the digests."""
MODULE = ".py"
"""The end of a module's name among them; a setting's has no point."""
LOCUST_FILE, URL = "--locust-file", "--url"
_HIDDEN_WORD = r"[^\s\"'&,;{}]+"


def requests_of(plan: WavePlan, environment: Mapping[str, Any]) -> SearchedRequests:
    """The requests of a wave. ``environment``: as ``plan.json`` has it, of which anything may be missing."""
    digests: dict[str, Any] = {
        FACTORIES: environment.get("file_sha256"),
        **_object(environment.get(OF_SETTINGS)),
        **_object(environment.get(OF_MODULES)),
    }
    headers = environment.get("headers")
    return SearchedRequests(
        settings={name: redact(value) for name, value in plan.factory_settings.items()},
        flags={flag: [redact(text) for text in texts] for flag, texts in _flags_of(plan) if texts},
        headers=[str(name) for name in headers] if isinstance(headers, list) else [],
        digests={name: digest for name, digest in digests.items() if isinstance(digest, str)},
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _flags_of(plan: WavePlan) -> Iterator[tuple[str, list[str]]]:
    """The flags that shape a request or a client, with the texts that they were or can be given with."""
    retries, most = plan.retries, plan.max_answer_size
    yield LOCUST_FILE, _texts(plan.locust_file)
    yield URL, _texts(plan.url)
    yield "--request-timeout", _texts(plan.request_timeout_s)
    yield "--client-timeout", _texts(retries.timeout_s)
    yield "--client-retries", _texts(retries.retries or None)
    yield "--backoff", _texts(None if retries.backoff.kind == "none" else retries.backoff.text)
    yield "--max-answer-size", _texts(None if most == DEFAULT_ANSWER_SIZE else most)
    yield "--max-in-flight", _texts(plan.max_in_flight)
    yield "--model-mix", _texts(None if plan.model_mix is None else plan.model_mix.text)
    yield "--expect", [each.text for each in plan.expect]


def _texts(value: object) -> list[str]:
    return [] if value is None else [str(value)]


def differences(
    searched: SearchedRequests, file: Path | None, now: SearchedRequests, now_file: Path | None
) -> Iterator[str]:
    """Clauses on everything in which the requests of a wave, made with ``now_file``, are not those of the search.

    A file whose digest one side does not know is the same where both have its name.
    """
    old, new = searched.digests.get(FACTORIES), now.digests.get(FACTORIES)
    if now_file != file and (old != new or new is None):
        yield f"{_shown(now_file)} in place of {_shown(file)}"
        return  # whose settings are others'
    if _was_changed(old, new):
        yield f"{_shown(now_file)} was changed since the search"
    for name, digest in now.digests.items():
        if name.endswith(MODULE) and _was_changed(searched.digests.get(name), digest):
            yield f"{one_line(name)}, which {_shown(now_file)} imports, was changed since the search"
    yield from _of_settings(searched, now)
    for flag in {**searched.flags, **now.flags}:
        was, given = searched.flags.get(flag, []), now.flags.get(flag, [])
        if not _are_same(was, given) and flag not in (URL, LOCUST_FILE):
            shown = f"another {flag}" if given and hidden_in({flag: was}) else f"{flag} {_listed(given)}"
            yield f"{shown} in place of {_listed(was)}"
    yield from (f"header {name}, which was not sent" for name in others_of(now.headers, searched.headers))


def _of_settings(searched: SearchedRequests, now: SearchedRequests) -> Iterator[str]:
    for name in {**searched.settings, **now.settings}:
        was, given = searched.settings.get(name), now.settings.get(name)
        if was == given and _was_changed(searched.digests.get(name), now.digests.get(name)):
            yield f"the file of {name} was changed since the search"
        if not _asks_the_same(name, was, given):
            shown = f"another {name}" if given is not None and HIDDEN in (was or "") else f"{name}={_value(given)}"
            yield f"{shown} in place of {_value(was)}"  # which may have a secret that nothing hides by its form


def _was_changed(old: str | None, new: str | None) -> bool:
    return old is not None and new is not None and old != new


def _asks_the_same(name: str, was: str | None, given: str | None) -> bool:
    """Tells whether a setting is the same but for the server that is asked, and for words that are drawn anew."""
    if name in SERVER_SETTINGS:
        return _is_same(without_server(was or ""), without_server(given or ""))
    return name == SEED_SETTING or _is_same(was, given)


def _is_same(was: str | None, given: str | None) -> bool:
    """Tells whether two values are the same but for the secrets that were hidden in the first one."""
    if was is None or given is None or HIDDEN not in was:
        return was == given
    return was == HIDDEN or re.fullmatch(_HIDDEN_WORD.join(map(re.escape, was.split(HIDDEN))), given) is not None


def _are_same(were: list[str], given: list[str]) -> bool:
    return len(were) == len(given) and all(map(_is_same, were, given))


def others_of(headers: Iterable[str], others: Iterable[str]) -> list[str]:
    """The names of headers that are not among others, in whatever case."""
    known = {name.lower() for name in others}
    return [name for name in headers if name.lower() not in known]


def hidden_in(values: Mapping[str, Any]) -> list[str]:
    """The names of those that held a secret, however deep: it is hidden, and what stands for it must not be sent."""
    return [name for name, value in values.items() if HIDDEN in f"{name} {value}"]


def _shown(file: Path | None) -> str:
    return "no factories file" if file is None else shown_path(file)


def _listed(texts: list[str]) -> str:
    return one_line(", ".join(texts)) or "none"


def _value(text: str | None) -> str:
    return "the file's own" if text is None else one_line(text) or "nothing"
