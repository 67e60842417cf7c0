"""The conditions of a wave: all that shapes its requests or their times, and is no change of the endpoint. Pure.

They are the fields of its plan, so that a field that is added to that is one of them unless it is listed here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.wave_facts import OF_MODULES, OF_SETTINGS
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.plan import DEFAULT_MAX_IN_FLIGHT, WavePlan
from inference_benchmarker.url import ADDRESS_SETTINGS, SALT_SETTING, SEED_SETTING
from inference_benchmarker.words.text import one_line, shortened
from inference_benchmarker.words.wording import duration_text, pluralize, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from inference_benchmarker.plan.replay import Replay
    from inference_benchmarker.wave.wave import Wave

_LONG = 40  # of a value
OF_NO_EFFECT = {
    "bounds": "a longer wave has more of the same requests",
    "factories_file": "its content is compared, wherever it lies",
    "locust_file": "its content is compared, wherever it lies",
    "factory_settings": "they are compared one by one",
    "payload_arguments": "they are compared one by one",
    "endpoint_name": "it is the endpoint that is compared",
    "url": "it is the endpoint that is compared",
    "seed": "each wave has its own",
    "first_payload": "each wave of several has its own, so that none repeats another's payloads",
    "load_timeout_s": "it ends before the first request",
    "success_threshold": "it judges what was measured",
    "slos": "they judge what was measured",
    "server_limits": "they judge what was measured",
    "goodput": "it judges what was measured",
    "abort_on": "a wave that was aborted says so",
    "abort": "a wave that was aborted says so",
    "port": "it is Locust's own",
    "ui": "it is Locust's own",
    "sample_client_hw": "it is asked of the hosts, beside the requests",
    "records": "the precision of percentiles stands beside them",
    "debug": "it is in the logs",
    "output_dir": "it is where the wave is stored",
    "name": "it is a name",
}
"""The fields of a plan that are no condition, each with its reason."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A property of a plan in words. Two waves have it in common where ``key`` is equal."""

    key: Any
    text: str


class _Digest:
    """That of what was read of a file; one that an earlier version did not take may be any."""

    __slots__ = ("text",)
    __hash__ = None  # type: ignore[assignment] # equal to several that are not equal to each other

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Digest) and (not (self.text and other.text) or self.text == other.text)


def differences(waves: Sequence[Wave], asked_for: Collection[str] = ()) -> Iterator[str]:
    """A clause for each condition that waves do not have in common: what it was, once for each kind of it.

    ``asked_for``: the conditions that are to differ.
    """
    conditions = [_conditions(wave.plan) for wave in waves]
    for name in (each for each in conditions[0] if each not in asked_for):
        if texts := _apart(found for each in conditions if (found := each[name]) is not None):
            yield " and ".join(texts)
    for what, given in (
        ("the settings", _settings(waves)),
        ("the payload arguments", [wave.plan.payload_arguments or {} for wave in waves]),
    ):
        if names := _names_apart(given):
            yield f"{what} {', '.join(names)}"
    if names := _names_apart([dict.fromkeys(_headers(wave), True) for wave in waves]):
        yield f"the headers {', '.join(names)}"
    if len({str(wave.environment.get("file_sha256")) for wave in waves}) > 1:
        yield "the content of the factories (or Locust) file"
    if names := _names_apart(_modules(waves)):
        yield f"the content of {', '.join(names)}"


def in_words(waves: Sequence[Wave]) -> list[dict[str, Condition]]:
    """All that ``differences`` compares, of each wave by name; a wave that has nothing of a name is without it."""
    found = [{name: each for name, each in _conditions(wave.plan).items() if each} for wave in waves]
    arguments = [wave.plan.payload_arguments or {} for wave in waves]
    headers = [{f"header {name}": True for name in _headers(wave)} for wave in waves]
    files = [{"factories file": wave.environment.get("file_sha256")} for wave in waves]
    modules = _modules(waves)
    kinds: list[tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]] = [
        (_settings(waves), [wave.plan.factory_settings for wave in waves]),
        (arguments, arguments),
        (headers, headers),
        (files, _marks(files)),
        (modules, _marks(modules)),
    ]
    for values, shown in kinds:
        for each, given, texts in zip(found, values, shown, strict=True):
            each |= {name: _of_name(name, value, texts[name]) for name, value in given.items() if value is not None}
    return found


def _of_name(name: str, value: Any, shown: Any) -> Condition:
    """A setting and the like, which may be there without a value of its own."""
    bare = value == "" or value is True
    return Condition(value, one_line(name if bare else f"{name} {shortened(str(shown), _LONG)}"))


def _marks(digests: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{name: str(digest)[:8] for name, digest in each.items()} for each in digests]


def loads_apart(waves: Iterable[Wave]) -> list[str]:
    """The loads of waves where they are not one."""
    return _apart(load_of(wave.plan) for wave in waves)


def _apart(conditions: Iterable[Condition]) -> list[str]:
    """The words of conditions that are not all one; else none."""
    distinct: list[Condition] = []
    for each in conditions:
        if all(each.key != other.key for other in distinct):
            distinct.append(each)
    texts = [each.text for each in distinct]
    return [] if len(texts) < 2 else list(dict.fromkeys(texts)) if len(set(texts)) > 1 else [f"{texts[0]}, unlike"]


def _conditions(plan: WavePlan) -> dict[str, Condition | None]:
    """All of a plan by the names of its fields, in words of their own first."""
    own: dict[str, Condition | None] = {name: words(plan) for name, words in _WORDS.items()}
    others = {each.name for each in fields(plan)} - OF_NO_EFFECT.keys() - own.keys()
    return own | {name: _plain(plan, name) for name in sorted(others)}


def _plain(plan: WavePlan, name: str) -> Condition:
    value = getattr(plan, name)
    return Condition(value, f"{name.replace('_', ' ')} {one_line(str(value))}")


def load_of(plan: WavePlan) -> Condition:
    """The load that it offers."""
    load = plan.load
    if not isinstance(load, OpenLoop):
        users = ", ".join(f"{each.users} for {each.duration_s.normalize():f} s" for each in load.populations)
        return Condition(load, f"{load.text} ({users})" if users else load.text)
    if load.replay is not None:
        return _recorded(load.replay)
    return Condition(replace(load, think=None), f"{load.text.replace(' requests', '')} {load.arrivals}")


def _recorded(replay: Replay) -> Condition:
    """The part of a recording that was sent: files of one name may be of other days."""
    found = replay.recording
    if found is None:
        return Condition(replay, f"{replay.text} recorded")
    first = found.first_ns // max(found.spread_ns, 1)  # the seed spreads what is in a unit of the recorded times
    key = (replay.speed, replay.window, found.size_bytes, found.rows, first, _Digest(found.times_sha256))
    mark = f"times {found.times_sha256[:8]}" if found.times_sha256 else f"{found.size_bytes:,} bytes"
    length, most = duration_text(float(found.length_s)), f"at most {found.peak_rps:,}/s"
    requests = pluralize(found.rows, "request", "requests")
    return Condition(key, f"{replay.text} recorded ({requests} in {length}, {most}, {mark})")


def _workers(plan: WavePlan) -> Condition:
    where = f" on {', '.join(host.text for host in plan.hosts.hosts)}" if plan.hosts else ""
    text = pluralize(plan.workers, "worker", "workers") + where
    return Condition(text, text)


def _think(plan: WavePlan) -> Condition | None:
    """The time between turns; in a closed loop it is part of the load."""
    think = plan.load.think
    text = "no time between turns" if think is None else f"{think.text} between turns"
    return Condition(think, text) if isinstance(plan.load, OpenLoop) else None


def _talks(plan: WavePlan) -> Condition:
    """The recorded conversations that are sent; two files of one name differ in what was found in them."""
    talks = plan.conversations
    if talks is None:
        return Condition(None, "no recorded conversations")
    recorded = talks.recorded
    name = one_line(talks.file.name)
    if recorded is None:
        return Condition(name, f"the conversations of {name}")
    digest = recorded.turns_sha256
    mark = f", turns {digest[:8]}" if digest else ""
    text = f"the conversations of {name} ({recorded.conversations:,} in {recorded.size_bytes:,} bytes{mark})"
    return Condition((name, replace(recorded, turns_sha256=""), _Digest(digest)), text)


def _model_mix(plan: WavePlan) -> Condition:
    text = "no mix of models" if plan.model_mix is None else f"the models {plan.model_mix.text}"
    return Condition(text, text)


def _expected(plan: WavePlan) -> Condition:
    texts = ", ".join(each.text for each in plan.expect)
    return Condition(plan.expect, f"answers as {texts}" if texts else "nothing expected of answers")


def _retries(plan: WavePlan) -> Condition:
    retries = plan.retries
    waits = "" if retries.timeout_s is None else f"clients that wait {duration_text(float(retries.timeout_s))}"
    again = f"{pluralize(retries.retries, 'retry', 'retries')}, backoff {retries.backoff.text}"
    return Condition(retries, ", ".join(filter(None, [waits, again])) if retries.asked else "no client retries")


def _request_timeout(plan: WavePlan) -> Condition:
    most = plan.request_timeout_s
    text = "no request timeout" if most is None else f"a request timeout of {duration_text(float(most))}"
    return Condition(most, text)


def _in_flight(plan: WavePlan) -> Condition:
    most = DEFAULT_MAX_IN_FLIGHT if plan.max_in_flight is None else plan.max_in_flight
    return Condition(most, f"at most {most:,} in flight")


_WORDS: dict[str, Callable[[WavePlan], Condition | None]] = {
    "load": load_of,
    "workers": _workers,
    "hosts": lambda _: None,  # with the workers
    "warmup_s": lambda plan: Condition(plan.warmup_s, f"{plan.warmup_s.normalize():f} s of warm-up"),
    "think": _think,
    "conversations": _talks,
    "model_mix": _model_mix,
    "expect": _expected,
    "retries": _retries,
    "request_timeout_s": _request_timeout,
    "max_in_flight": _in_flight,
    "max_answer_size": lambda plan: Condition(
        plan.max_answer_size, f"answers of at most {size_text(plan.max_answer_size)}"
    ),
    "drain_timeout_s": lambda plan: Condition(
        plan.drain_timeout_s, f"{plan.drain_timeout_s.normalize():f} s for the last answers"
    ),
}
"""The words of the conditions that have some of their own, in the order in which they are listed."""


def _settings(waves: Sequence[Wave]) -> list[dict[str, Any]]:
    """Those of the factories file but where they send to, which is what is compared; of a file its content.

    The seed of conversations is each wave's own, as that of its arrivals is, and so is the word of a fresh cache.
    """
    digests = [wave.environment.get(OF_SETTINGS) for wave in waves]
    known = [each if isinstance(each, dict) else {} for each in digests]  # what is stored may be anybody's
    everywhere = {name for name in known[0] if all(name in each for each in known)}
    alike = {SALT_SETTING: ""} | dict.fromkeys((*ADDRESS_SETTINGS, SEED_SETTING))
    return [
        {name: files[name] if name in everywhere else alike.get(name, text) for name, text in given.items()}
        for files, given in zip(known, (wave.plan.factory_settings for wave in waves), strict=True)
    ]


def _modules(waves: Sequence[Wave]) -> list[dict[str, Any]]:
    """The digests of the modules of the factories file; none where a wave does not know its own."""
    known = [wave.environment.get(OF_MODULES) for wave in waves]
    all_know = all(isinstance(each, dict) for each in known)
    return [each if all_know and isinstance(each, dict) else {} for each in known]


def _headers(wave: Wave) -> list[str]:
    """The names of its headers, in one case; what is stored may be anybody's."""
    names = wave.environment.get("headers")
    return [one_line(name).title() for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _names_apart(given: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of which not all have the same value."""
    names = dict.fromkeys(name for each in given for name in each)
    return [name for name in names if any(each.get(name) != given[0].get(name) for each in given)]
