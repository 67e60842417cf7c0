"""An endpoint's address on the command line, with the flags that go with it, or a shipped example's name.

Both become a factories file and its settings, so that whatever takes a factories file takes these, too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.chat_flags import take_conversations, with_mix
from inference_benchmarker.cli.core.file_flags import VARIABLE, settings_in, take_file
from inference_benchmarker.cli.core.flags import read_flags
from inference_benchmarker.cli.core.header_flags import headers_of, of_environment, of_user
from inference_benchmarker.cli.core.url_flags import ASKED
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.conversation import CACHE_SETTINGS
from inference_benchmarker.system.packaged import HTTP_FILE, packaged
from inference_benchmarker.url import ADDRESS_SETTINGS, SEED_SETTING, endpoint_address
from inference_benchmarker.words.redact import HEADERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence

    from inference_benchmarker.cli.core.flags import Flag
    from inference_benchmarker.engine.endpoint.address_options import Described

_KEYS = ("BENCHMARK_API_KEY", "OPENAI_API_KEY")
_HOST = r"(\[[\da-f:]+\]|[\w-]+(\.[\w-]+)*)"
_ADDRESS = re.compile(rf"[a-z+]{{2,12}}:/|{_HOST}:\d+(/|$)|localhost(/|$)", re.IGNORECASE)


def looks_like_address(word: str) -> bool:
    """Tells whether a bare word of the command line is meant as an address."""
    return _ADDRESS.match(word) is not None


def without_addresses(arguments: list[str], flags: Mapping[str, Flag]) -> tuple[list[str], list[str]]:
    """The arguments without the bare addresses among them, and those."""
    rest: list[str] = []
    found: list[str] = []
    takes = False
    for argument in arguments:
        bare = not takes and not argument.startswith("-") and looks_like_address(argument)
        (found if bare else rest).append(argument)
        flag = flags.get(argument.removeprefix("--").replace("-", "_"))
        takes = argument.startswith("--") and "=" not in argument and (flag is None or flag.metavar is not None)
    return rest, found


def too_many(addresses: Sequence[str]) -> list[str]:
    """The sentence that says so, where there are several."""
    return [f"Give one URL, not {len(addresses)}."] if len(addresses) > 1 else []


def take_endpoint(
    options: dict[str, Any], problems: list[str], addresses: list[str], environment: MutableMapping[str, str]
) -> Described | None:
    """Make an address, or an example's name, a factories file with settings; those of the environment are added.

    Headers go to the environment, where the processes that send find them.
    """
    problems += too_many(addresses)
    described = None
    if addresses and options.get("locust_file") and options["url"] is None:
        options["url"] = addresses.pop()  # the host of its users
    if is_addressed(options, addresses):
        described = _of_address(addresses[0] if addresses else options["url"], options, problems, environment)
    else:
        take_file(options, problems, environment)
    if options["factories_file"] is not None:
        settings = [*settings_in(Path(options["factories_file"]), environment), *(options["set"] or ())]
        options["set"] = settings or None
    return described


def is_addressed(options: Mapping[str, Any], addresses: Sequence[str]) -> bool:
    """Tells whether an address names the endpoint: a bare one, or ``--url`` where nothing else does."""
    others = ("factories_file", "locust_file", "aiperf_only", "demo")
    return bool(addresses) or (options.get("url") is not None and not any(options.get(name) for name in others))


def _of_address(
    text: str, options: dict[str, Any], problems: list[str], environment: MutableMapping[str, str]
) -> Described | None:
    """Parse the flags of an address, resolve what it is, and apply that to the options; None where it is no good."""
    from inference_benchmarker.engine.endpoint.address_options import AddressOptions
    from inference_benchmarker.engine.endpoint.addressed import describe

    problems += _contradictions(options)
    take_conversations(text, options)
    asked = AddressOptions(
        **read_flags(ASKED, options, problems).values,
        recorded=options.get("conversations"),
        cache=options["cache"] if options.get("cache") in CACHE_SETTINGS else None,
    )
    own = headers_of(options["header"] or (), environment, problems)
    headers = {**of_environment(environment, problems), **own}
    described = None
    try:
        address = endpoint_address(text)
        headers = {**headers, **of_user(address), **own}
        described = describe(address, asked, problems)
        if options.get("model_mix") is not None:
            described = with_mix(described, asked, options["model_mix"], problems)
        if described.models is not None and not problems:
            described = _with_its_model(
                described, headers, environment, asks_as_given=_tells_more(options, environment)
            )
    except BenchmarkError as error:
        problems.append(str(error))
    if headers:
        environment[HEADERS] = json.dumps(headers)
    if described is not None and described.is_seeded:
        described = described.with_seed(options.get("seed"))
        if "seed" in options:  # the wave's own, so that another wave's seed is that of its requests, too
            options["seed"] = described.settings[SEED_SETTING]
    _apply(described, options, problems)
    return None if problems else described


def _contradictions(options: Mapping[str, Any]) -> Iterator[str]:
    """The flags that an address leaves no room for."""
    for name in ("factories_file", "locust_file", "demo", "endpoint_name"):
        if options.get(name):
            yield f"Give either a URL or {_flag(name)}, not both."
    if options["header"] and _is_for_aiperf(options):
        yield "--header: aiperf would show it among its arguments; leave one of them out."


def _apply(described: Described | None, options: dict[str, Any], problems: list[str]) -> None:
    """Put the file and the settings of an address into the options; where none is known, another stands for the file.

    So that no file is missing beside what is wrong with the address.
    """
    if not options["factories_file"] and not options.get("locust_file"):
        options["factories_file"] = str(packaged("factories", described.file if described else HTTP_FILE))
    settings = described.settings if described else {}
    lines = (text.partition("=")[0].strip() for text in options["set"] or ())
    problems += [
        f"--set {name}: the URL already sets it; change it there."
        for name in lines
        if name in ADDRESS_SETTINGS and settings
    ]
    options["set"] = [*(f"{name}={value}" for name, value in settings.items()), *(options["set"] or ())]
    options["url"] = described.server if described and _is_for_aiperf(options) else None


def _is_for_aiperf(options: Mapping[str, Any]) -> bool:
    return bool(options.get("aiperf") or options.get("aiperf_only"))


def _tells_more(options: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Tells whether the user says what else requests ask for."""
    given = (text.partition("=")[0].strip() for text in options["set"] or ())
    return f"{VARIABLE}MORE" in environment or "MORE" in given


def _with_its_model(
    described: Described, headers: Mapping[str, str], environment: Mapping[str, str], *, asks_as_given: bool
) -> Described:
    from inference_benchmarker.engine.endpoint.served_models import only_model

    assert described.models is not None
    key = next((environment[name] for name in _KEYS if environment.get(name)), None)
    authorization = {} if key is None else {"Authorization": f"Bearer {key}"}
    model = only_model(described.models, {**authorization, **headers})
    described = described.with_model(model.name).with_counted_pieces(model.owner)
    return described if asks_as_given else described.with_whole_answers(model.owner)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
