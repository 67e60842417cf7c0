"""``benchmark ab --kubernetes``: A and B with the load of pods, all waves in one Job."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.compare.ab_flags import EPILOG, add_own, asked_for, of_one_side, of_side, split
from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.kubernetes.asked_command import asked_command, in_pods_parser, own_flags
from inference_benchmarker.cli.wave.pods_flags import OF_PODS
from inference_benchmarker.cli.wave.pods_wave import (
    WaveForPods,
    cargo_to_pods,
    files_of,
    is_own_file,
    lacking_of,
    options_here,
    options_there,
    other_files,
    refuse_secrets,
    settings_here,
    words_of,
)
from inference_benchmarker.cli.wave.wave import wave_options
from inference_benchmarker.system.given import resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from inference_benchmarker.cli.kubernetes.asked_command import AskedCommand
    from inference_benchmarker.engine.hosts.shipping import Cargo
    from inference_benchmarker.engine.pods.pods import Pods

_ABOUT = """\
Sends the same load to A and B in turn, from the pods of a Kubernetes cluster, and
says in one line which is faster. All waves are one Job: its pods stay for all of
them, and its folder is fetched.

  benchmark ab old.py new.py --kubernetes --pods 4 --pod-image IMAGE \\
      --client-rps 100
"""


_TRIES = 2  # of a wave, at the most, in the mean of a side


@dataclass(frozen=True, slots=True)
class _Given:
    """The arguments. ``options``: of both sides; ``of_one``: words of one side; ``own``: words of the comparison."""

    sides: Sequence[str]
    options: Mapping[str, Any]
    of_one: Sequence[str]
    own: Sequence[str]

    def words(self, sides: Iterable[str], options: Mapping[str, Any], first: Iterable[str] = ()) -> list[str]:
        """A command line after ``ab``; ``first``: flags that the others override."""
        return [*sides, *first, *words_of(in_pods_parser(), options), *self.of_one, *self.own]


def ab(arguments: list[str]) -> AskedCommand:
    """A and B."""
    parser = ab_in_pods_parser()
    own, rest = parser.parse_known_args(arguments, Namespace(**dict.fromkeys(parser.flags)))
    given, sides = split(rest, in_pods_parser().flags)
    options, problems = wave_options(in_pods_parser(), [*of_side(given, "")], sides)
    options |= {name: value for name in (*parser.flags, "json", "quiet") if (value := getattr(own, name))}
    limits = [f"--max-regression={limit}" for limit in own.max_regression]
    words = [f"--repeats={own.repeats}", *limits, *(["--strict"] if own.strict else [])]
    describe = partial(_ab_for_pods, _Given(sides, options, [*of_one_side(given)], words))
    return asked_command(options, problems, describe, markdown=own.markdown, junit=own.junit)


def ab_in_pods_parser() -> Parser:
    """Its flags but for those of a wave, and its help."""
    parser = Parser(
        prog="benchmark ab --kubernetes",
        usage="benchmark ab A B --kubernetes --pods N [--repeats N] [options of benchmark]",
        description=_ABOUT,
        epilog=EPILOG,
        allow_abbrev=False,
    )
    parser.add_flags({OF_PODS: own_flags()})
    add_own(parser)
    return parser


def _ab_for_pods(given: _Given, pods: Pods) -> WaveForPods:
    """All waves of A and B, checked as any are. BenchmarkError with what is wrong."""
    there = options_there(given.options, pods)
    asked = asked_for(given.words(given.sides, {**there, **options_here(given.options)}))
    cargos = {side: cargo_to_pods(plan) for side, plan in asked.plans.items()}
    files, values = other_files(given.options)
    files |= {str(path): path for path in asked.plans["A"].hosts.with_files}
    places = _placed(dict(zip(asked.plans, given.sides, strict=True)), cargos, files)
    settings = [f"--set-{side.lower()}={each}" for side, plan in asked.plans.items() for each in settings_here(plan)]
    words = ("ab", *given.words(places, {**there, **values}, settings))
    refuse_secrets(words)
    variables = [name for cargo in cargos.values() for name in cargo.asked]
    plan = asked.plans["A"]
    return WaveForPods(plan, words, files, lacking_of(plan, variables, words), len(cargos) * _TRIES * asked.repeats)


def _placed(sides: Mapping[str, str], cargos: Mapping[str, Cargo], files: dict[str, Path]) -> list[str]:
    """The sides as they are named there; their files are added to the others.

    ``../old/f.py`` beside ``f.py`` is ``old/f.py`` there.
    """
    found = dict(sides)
    for side in sorted(sides, key=lambda each: _is_far(sides[each])):
        if is_own_file(sides[side]):
            cargo = cargos[side]
            own = {place: path for place, path in files_of(cargo).items() if files.get(place) != path}
            name = f"{cargo.base.name}/"
            above = next(
                each for each in ("", name, f"{side}/{name}") if {each + place for place in own}.isdisjoint(files)
            )
            files |= {f"{above}{place}": path for place, path in own.items()}
            found[side] = f"{above}{cargo.places['factories_file']}"
    return [*found.values()]


def _is_far(text: str) -> bool:
    """Tells whether a file is not below the current folder, and so has no place of its own there."""
    return not resolved(Path(text).expanduser()).is_relative_to(Path.cwd())
