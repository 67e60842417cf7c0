"""The requests of a plan's search, which its verification sends: what the flags leave open is taken from the plan."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from inference_benchmarker.cli.core.header_flags import of_user
from inference_benchmarker.cli.core.url_flags import ASKED
from inference_benchmarker.engine.pods.objects import FILES
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import is_file
from inference_benchmarker.system.packaged import HTTP_FILE, packaged, shown_path
from inference_benchmarker.url import (
    ADDRESS_SETTINGS,
    SEED_SETTING,
    SERVER_SETTINGS,
    address_of,
    endpoint_address,
    without_server,
)
from inference_benchmarker.wave.environment import sent_with, sha256_of
from inference_benchmarker.words.redact import redact
from server_capacity.planning.remarks import instances_text
from server_capacity.planning.searched_requests import (
    FACTORIES,
    LOCUST_FILE,
    URL,
    differences,
    hidden_in,
    others_of,
    requests_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from urllib.parse import SplitResult

    from inference_benchmarker.plan.plan import WavePlan
    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.results.types.plan import SearchedRequests

NOT_HELD = "it does not hold the settings and flags of its search's requests"
_OF_AN_ADDRESS = (*ADDRESS_SETTINGS, "API", "TEI")
"""Settings that an address alone gives."""


def take_requests(planned: Planned, options: dict[str, Any], addresses: list[str]) -> bool:
    """Fill in what the options leave open of the requests; tells whether they name an endpoint that is there.

    BenchmarkError where they do not fit the requests of the search. ``addresses`` loses the one that is taken.
    """
    is_there = bool(options["endpoint_name"] or addresses or options["url"])
    requests = planned.requests
    if options["factories_file"] is None and options["locust_file"] is None:
        _take_file(planned, options, addresses)
    is_there = is_there or _is_set(options)
    if requests is None:
        return is_there
    if options["factories_file"] is not None and _is_of_search(Path(options["factories_file"]), planned):
        given = _set_names(options)
        moved = _moved(planned, requests, options, addresses)
        kept = {**requests.settings, **moved, **_drawn(planned, requests, options)}
        hidden = hidden_in(requests.settings)
        _require_settings(planned, [name for name in hidden_in(kept) if name not in given])
        if is_of_url(Path(options["factories_file"])):
            _refuse(planned, [f"--set {name}" for name in given if name not in {*hidden, *ADDRESS_SETTINGS}])
        options["set"] = [*(f"{name}={value}" for name, value in kept.items()), *(options["set"] or ())] or None
    _take_flags(planned, requests, options)
    return is_there


def take_limits(planned: Planned, options: dict[str, Any]) -> None:
    """Take the limits of the plan where none are given."""
    if options["slo"] is None:
        _require(planned, ["--slo"] if hidden_in(dict.fromkeys(planned.limits)) else [], "--slo")
        options["slo"] = list(planned.limits)


def _take_flags(planned: Planned, requests: SearchedRequests, options: dict[str, Any]) -> None:
    names = {flag: flag.removeprefix("--").replace("-", "_") for flag in requests.flags}
    taken = {
        flag: texts
        for flag, texts in requests.flags.items()
        if flag not in (LOCUST_FILE, URL) and options[names[flag]] is None
    }
    missing = hidden_in(taken)
    _require(planned, missing, " and ".join(missing))
    for flag, texts in taken.items():
        options[names[flag]] = list(texts) if flag == "--expect" else texts[0]


def _set_names(options: Mapping[str, Any]) -> set[str]:
    return {text.partition("=")[0].strip() for text in options["set"] or ()}


def _refuse(planned: Planned, flags: Sequence[str]) -> None:
    """BenchmarkError where there are flags of requests, all of which the search has."""
    if flags:
        raise BenchmarkError(
            f"{', '.join(flags)}: --verify sends what the search of {planned.file} sent.",
            "Leave it out, or search with it first.",
        )


def _is_set(options: Mapping[str, Any]) -> bool:
    """Tells whether settings say where the endpoint is: those of a file that can make none."""
    if not options["set"] or options["factories_file"] is None:
        return False
    from server_capacity.provisioning.arguments import factory_arguments

    return factory_arguments(Path(options["factories_file"])).endpoint is None


def _take_file(planned: Planned, options: dict[str, Any], addresses: list[str]) -> None:
    """Take the file of the search; BenchmarkError where the options do not say where its requests are to go."""
    flags = {} if planned.requests is None else planned.requests.flags
    if LOCUST_FILE in flags:
        options["locust_file"] = str(_here(Path(flags[LOCUST_FILE][0])))
        if URL in flags and not (addresses or options["url"]):
            raise _no_address(planned, flags[URL][0])
        return
    if planned.factories_file is None:
        return
    file = _here(planned.factories_file)
    if is_of_url(file):
        _require_address(planned, options, addresses)
        if planned.requests is None:
            return  # the URL and its flags say all that is sent
    options["factories_file"] = str(file)


def _require_address(planned: Planned, options: Mapping[str, Any], addresses: list[str]) -> None:
    if options["endpoint_name"]:
        raise BenchmarkError(
            f"--endpoint-name {redact(options['endpoint_name'])}: the search of {planned.file} sent to a URL, and such "
            "requests name no endpoint.",
            f"Give the URL in its place: {_command(planned)}.",
        )
    if not (addresses or options["url"] or _set_names(options) & {*ADDRESS_SETTINGS}):
        settings = {} if planned.requests is None else planned.requests.settings
        raise _no_address(planned, address_of(settings) or "a URL")


def _no_address(planned: Planned, searched: str) -> BenchmarkError:
    fleet = instances_text(planned.aim.instances)
    are = "is" if planned.aim.instances == 1 else "are"
    return BenchmarkError(
        f"--verify {planned.file.parent}: its search sent to {searched}, and {fleet} {are} planned.",
        f"Give the URL of an endpoint that has them: {_command(planned)}.",
    )


def _command(planned: Planned) -> str:
    return f"benchmark capacity URL --verify {planned.file.parent}"


def _here(file: Path) -> Path:
    """The file; one that `benchmark URL` sends with is that of this installation, since a plan may be of another.

    One that pods searched with is at its place below the current folder, where it came from.
    """
    if name := _name_of_url(file):
        return packaged("factories", name)
    return file.relative_to(FILES) if file.is_relative_to(FILES) and not is_file(file) else file


def is_of_url(file: Path) -> bool:
    """Tells whether `benchmark URL` sends with a file."""
    return bool(_name_of_url(file))


def _name_of_url(file: Path) -> str:
    from inference_benchmarker.engine.endpoint.address_options import URL_FILES

    return next((name for name in URL_FILES if file.as_posix().endswith(f"/factories/{name}")), "")


def _is_of_search(file: Path, planned: Planned) -> bool:
    """Tells whether a file is the one that was searched with, by its path or its content."""
    searched = planned.factories_file
    digests = {} if planned.requests is None else planned.requests.digests
    is_same = searched is not None and file in (searched, _here(searched))
    return is_same or sha256_of(file) == digests.get(FACTORIES, "")


def _moved(
    planned: Planned, requests: SearchedRequests, options: dict[str, Any], addresses: list[str]
) -> dict[str, str]:
    """The settings of the address that is given in place of the one that was searched; it is taken.

    BenchmarkError where that asks for something else than the search did.
    """
    if not addresses and options["url"] is None:
        return {}
    _refuse(planned, [flag.flag for flag in ASKED if options[flag.name] is not None])
    text = addresses[0] if addresses else str(options["url"])
    searched = {name: value for name, value in requests.settings.items() if name in _OF_AN_ADDRESS}
    if address_of(searched) is None:
        file = shown_path(planned.factories_file or Path())
        raise BenchmarkError(
            f"{redact(text)}: the search of {planned.file} ran {file}, which takes no URL.",
            "Give --endpoint-name NAME, or --set NAME=VALUE where it has a setting for its address.",
        )
    address = endpoint_address(text)
    server = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
    rest = _without_server(searched)
    if address.path not in ("", "/") or address.query:
        asked = _described(address, planned, requests)
        if {name: redact(value) for name, value in asked.items()} != rest:
            raise BenchmarkError(
                f"{redact(text)}: the search of {planned.file} sent to {address_of(searched)}, and this is another "
                "path.",
                f"Give {server}{urlsplit(address_of(searched) or '').path}, or search with this URL first.",
            )
        rest = asked
    addresses.clear()
    options["url"] = None
    given = options["header"] or []
    own = {name: value for name, value in of_user(address).items() if not _gives(given, name)}
    options["header"] = [*(f"{name}: {value}" for name, value in own.items()), *given] or None
    return {name: server + value if name in SERVER_SETTINGS else value for name, value in rest.items()}


def _gives(headers: Sequence[str], name: str) -> bool:
    return any(text.partition(":")[0].strip().lower() == name.lower() for text in headers)


def _without_server(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of an address, of which the server is empty but for a path that it has."""
    return {
        name: (without_server(value) if name in SERVER_SETTINGS else value)
        for name, value in settings.items()
        if name in _OF_AN_ADDRESS
    }


def _described(address: SplitResult, planned: Planned, requests: SearchedRequests) -> dict[str, str]:
    """The settings of an address, without its server, as `benchmark URL` would make them for such requests."""
    from inference_benchmarker.engine.endpoint.address_options import AddressOptions
    from inference_benchmarker.engine.endpoint.addressed import describe

    is_plain = planned.factories_file is None or planned.factories_file.as_posix().endswith(HTTP_FILE)
    asked = AddressOptions(method=requests.settings.get("METHOD"), content_type="" if is_plain else None)
    return _without_server(describe(address, asked, []).settings)


def _drawn(planned: Planned, requests: SearchedRequests, options: dict[str, Any]) -> dict[str, str]:
    """A new seed for what a URL's requests draw with one: what was asked before may be in the server's cache."""
    if SEED_SETTING not in requests.settings or not is_of_url(planned.factories_file or Path()):
        return {}
    options["seed"] = options["seed"] or str(secrets.randbelow(1 << 32))
    return {SEED_SETTING: options["seed"]}


def _require_settings(planned: Planned, missing: list[str]) -> None:
    of_url = [name for name in missing if name in ADDRESS_SETTINGS]
    _require(planned, missing, "the whole URL" if of_url else " ".join(f"--set {name}=VALUE" for name in missing))


def _require(planned: Planned, missing: list[str], again: str) -> None:
    """BenchmarkError where there are names of what held a secret and is not given again."""
    if missing:
        raise BenchmarkError(
            f"--verify {planned.file.parent}: {', '.join(missing)} held a secret, which no plan stores.",
            f"Give {again} again.",
        )


def require_headers(planned: Planned, plan: WavePlan) -> None:
    """BenchmarkError where a header of the search is not given: its value is stored nowhere."""
    searched = [] if planned.requests is None else planned.requests.headers
    missing = others_of(searched, requests_of(plan, sent_with(plan, os.environ)).headers)
    if missing:
        again = " ".join(f"--header '{name}: VALUE'" for name in missing)
        raise BenchmarkError(
            f"--verify {planned.file.parent}: its search sent {', '.join(missing)}, and no header's value is stored.",
            f"Give {again} again.",
        )


def differing(planned: Planned, plan: WavePlan) -> tuple[str, ...]:
    """Clauses on everything in which the requests of a plan's verification are not those of its search."""
    return (*_of_name(plan), *_of_requests(planned, plan))


def _of_name(plan: WavePlan) -> Iterator[str]:
    """A clause on a name that says nothing of where the requests go."""
    from inference_benchmarker.engine.endpoint.source import ignores_name

    file = plan.factories_file
    if plan.endpoint_name is not None and file is not None and ignores_name(file):
        yield f"the name {redact(plan.endpoint_name)}, which {shown_path(file)} does not use"


def _of_requests(planned: Planned, plan: WavePlan) -> tuple[str, ...]:
    if planned.requests is None:
        return ()
    now = requests_of(plan, sent_with(plan, os.environ))
    locust = planned.requests.flags.get(LOCUST_FILE)
    searched = Path(locust[0]) if locust else planned.factories_file
    return tuple(differences(planned.requests, searched, now, plan.factories_file or plan.locust_file))
