"""The wave that options describe, as pods are to send it: its command line there, and the files that go with it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.file_flags import VARIABLE, settings_in
from inference_benchmarker.cli.wave.pods_flags import OF_PODS, PODS_FLAGS
from inference_benchmarker.cli.wave.server_metrics import blocks_of
from inference_benchmarker.cli.wave.wave import wave_of
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.system.given import resolved
from inference_benchmarker.words.redact import hidden, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from inference_benchmarker.cli.core.arguments import Parser
    from inference_benchmarker.engine.hosts.shipping import Cargo
    from inference_benchmarker.engine.pods.pods import Pods
    from inference_benchmarker.plan.plan import WavePlan

JOIN_TIMEOUT_S = 600
"""For which pods wait for each other where nobody said: images have to be pulled."""

_NOT_THERE = ("config", "kubernetes", "output_dir", *(flag.name for flag in PODS_FLAGS[OF_PODS]), "pass_env")
_BEFORE_A_FILE = {
    "endpoint_config": "",
    "replay": "",
    "conversations": "",
    "body": "@",
    "expect": "schema:",
    "verify": "",
}
_WRITTEN_SECRET = re.compile(r"[:=]\s*['\"]\[hidden\]")  # in a program, where other words are names of variables
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class WaveForPods:
    """A wave of pods. ``words``: of the command line there; ``files``: by their path below the current folder there.

    ``lacking``: variables that are set here, that it reads, and that nobody passes. ``most_waves``: how many of them
    the command sends at the most.
    """

    plan: WavePlan
    words: tuple[str, ...]
    files: Mapping[str, Path]
    lacking: tuple[str, ...]
    most_waves: int = 1


@dataclass(frozen=True, slots=True)
class CommandForPods:
    """A command that pods run. ``name``: its words after ``benchmark``. ``plan_of``: the plan of its waves.

    That is made from the words after its name; BenchmarkError with what is wrong with them.
    """

    name: tuple[str, ...]
    plan_of: Callable[[list[str]], WavePlan]


WAVE = CommandForPods((), wave_of)


def wave_for_pods(
    parser: Parser, options: Mapping[str, Any], addresses: Sequence[str], command: CommandForPods, pods: Pods
) -> WaveForPods:
    """The wave or waves that were asked for, checked as any are. BenchmarkError with what is wrong."""
    there = options_there(options, pods)
    plan = command.plan_of([*addresses, *words_of(parser, {**there, **options_here(options)})])
    cargo = cargo_to_pods(plan)
    files, values = other_files(options)
    if options["locust_file"] is not None or is_own_file(options["factories_file"]):
        files |= files_of(cargo)
        values |= cargo.places
    else:
        files |= {str(path): path for path in plan.hosts.with_files}
    settings = [*settings_here(plan), *(options["set"] or ())] or None
    words = (*command.name, *addresses, *words_of(parser, {**there, **values, "set": settings}))
    refuse_secrets(words)
    asked = [name for block in blocks_of(options["endpoint_config"], plan.server_limits) for name in block.variables]
    return WaveForPods(plan, words, files, lacking_of(plan, [*cargo.asked, *asked], words))


def options_there(options: Mapping[str, Any], pods: Pods) -> dict[str, Any]:
    """The options of a wave as its pods get them, but for its files."""
    return {
        **options,
        **dict.fromkeys(_NOT_THERE),
        "hosts": ",".join(pods.senders),
        "workers": options["workers"] or str(pods.pods),
        "join_timeout": options["join_timeout"] or str(JOIN_TIMEOUT_S),
    }


def options_here(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that stand beside those here, where the wave is only checked: what is sent is said there."""
    return {
        "host_keys": "own.json",
        "listen": "127.0.0.1:5557",
        "pass_env": options["pass_env"],
        "quiet": not options.get("interactive"),
    }


def cargo_to_pods(plan: WavePlan) -> Cargo:
    """The files and variables that its workers need."""
    from inference_benchmarker.engine.hosts.shipping import cargo_of

    factories, locust = plan.factories_file, plan.locust_file
    return cargo_of(
        replace(plan, factories_file=factories and resolved(factories), locust_file=locust and resolved(locust))
    )


def files_of(cargo: Cargo) -> dict[str, Path]:
    """The files that its workers need, by their path below the current folder there."""
    return {place.partition("/")[2]: path for place, path in cargo.files}


def is_own_file(text: str | None) -> bool:
    """Tells whether a factories file is one of the user's: the examples that can be named are in every image."""
    return text is not None and Path(text).expanduser().is_file()


def settings_here(plan: WavePlan) -> list[str]:
    """The settings that this environment gives a factories file, and does not pass."""
    found = [] if plan.factories_file is None else settings_in(plan.factories_file, os.environ)
    passed = tuple(f"{name.removeprefix(VARIABLE)}=" for name in plan.hosts.pass_env if name.startswith(VARIABLE))
    return [each for each in found if not each.startswith(passed)]


def lacking_of(plan: WavePlan, asked: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """The variables of this environment that files ask for or words name, each once, and that nobody passes."""
    named = [name for word in words for pair in _REFERENCE.findall(word) for name in pair]
    every = dict.fromkeys([*asked, *named])
    return tuple(name for name in every if name in os.environ and name not in plan.hosts.pass_env)


def other_files(options: Mapping[str, Any]) -> tuple[dict[str, Path], dict[str, Any]]:
    """The files that other flags name, by their place there, and the values of those flags there."""
    files: dict[str, Path] = {}
    values: dict[str, Any] = {}
    problems = []
    for name, before in _BEFORE_A_FILE.items():
        value = options.get(name)
        given = value if isinstance(value, list) else [value]
        for text in filter(None, given):
            path = Path(text.removeprefix(before)).expanduser().absolute()
            if not text.startswith(before):
                continue
            if not path.is_relative_to(Path.cwd()) or ".." in path.parts:
                problems.append(f"--{name.replace('_', '-')} {text}: give a file below the current folder.")
            else:
                place = str(path.relative_to(Path.cwd()))
                files[place] = path
                there = [f"{before}{place}" if each == text else each for each in values.get(name, given)]
                values[name] = there
    refuse(problems)
    return files, values


def words_of(parser: Parser, options: Mapping[str, Any]) -> Iterator[str]:
    """The options as a command line."""
    for name, flag in parser.flags.items():
        value = options[name]
        if flag.metavar is None:
            yield from [flag.flag] if value else []
        elif value is not None:
            yield from (f"{flag.flag}={each}" for each in (value if isinstance(value, list) else [value]))


def refuse_secrets(words: Sequence[str]) -> None:
    """No word that is printed may be a secret; ``$NAME`` is none."""
    shown = {word: _REFERENCE.sub("", word) for word in words}
    found = [word.partition("=")[0] for word, text in shown.items() if hidden(text) != text]
    what = [each if each.startswith("-") else "The URL" for each in found]
    kept = "put it into a variable, write $NAME where the flag takes it, and give --pass-env NAME"
    refuse([f"{each} has a secret that would be printed: {kept}." for each in what])


def read_files(files: Mapping[str, Path], pods: Pods) -> dict[str, bytes]:
    """The content of the files. BenchmarkError where it holds a secret of this environment, or a ConfigMap does not."""
    from inference_benchmarker.engine.pods.objects import MOST_BYTES
    from inference_benchmarker.words.wording import size_text

    try:
        sizes = {place: path.stat().st_size for place, path in sorted(files.items())}
        if sum(sizes.values()) > MOST_BYTES:
            raise BenchmarkError(
                f"The files of this wave have {size_text(sum(sizes.values()))}, and a ConfigMap takes "
                f"{size_text(MOST_BYTES)}.",
                f"Put {max(sizes, key=sizes.__getitem__)} into the image (COPY in a Dockerfile, FROM {pods.image}), "
                "and name its path there.",
            )
        found = {place: files[place].read_bytes() for place in sizes}
    except OSError as error:
        raise BenchmarkError(f"{error.filename}: cannot be read ({error.strerror}).") from None
    secret = [place for place, content in found.items() if without(text := content.decode(errors="replace")) != text]
    kept = "read the variable there, and give --pass-env NAME"
    refuse([f"{each} has the value of a secret variable, which would be printed: {kept}." for each in secret])
    return found


def may_hold_secrets(files: Mapping[str, bytes]) -> list[str]:
    """The files with what looks like a secret of any kind, by their place."""
    texts = {place: content.decode(errors="replace") for place, content in files.items()}
    return [place for place, text in texts.items() if _looks_secret(text, is_program=place.endswith(".py"))]


def _looks_secret(text: str, *, is_program: bool) -> bool:
    shown = hidden(text)
    return _WRITTEN_SECRET.search(shown) is not None if is_program else shown != text
