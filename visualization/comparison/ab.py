"""A and B: the order in which their waves are sent, and the folder that holds them, with its ``ab.json``.

``pages.sides`` finds the two sides in such a folder again, and draws what changed on their page.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.data.digest import KEY as DIGEST
from inference_benchmarker.data.digest import WITHOUT, require_digest
from inference_benchmarker.data.json_file import UNREADABLE, foreign, read_json, write_with_digest
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK, worst_exit_code
from inference_benchmarker.plan.slo import MaxRegression
from inference_benchmarker.system.files import is_file, is_there
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.wave import reader
from inference_benchmarker.wave.provenance import built_on, require_built_on
from inference_benchmarker.wave.provenance import not_checked as built_on_not_checked
from inference_benchmarker.wave.run_dir import RunDir, cannot_write
from inference_benchmarker.wave.wave import Wave
from visualization.comparison.comparison import Side, compare
from visualization.comparison.ending import EXIT_CODES, Cut
from visualization.comparison.result import AbResult, Sent, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan
    from visualization.comparison.comparison import Comparison

KIND, FILE = "ab", "ab.json"
SIDES = ("A", "B")
NO_OUTCOME = "ab.json has no outcome: it could not be written, or its command was killed or still runs"
_VALID = {"VALID", "PENDING"}
"""The server's metrics may be asked for afterwards, and a limit on them is pending no more."""


def order(repeats: int, seed: int) -> Iterator[tuple[int, str]]:
    """The waves as (round, side): each round has both sides, in an order that is drawn.

    So a machine that gets slower meanwhile is slower for both.
    """
    draw = random.Random(seed)
    for number in range(repeats):
        for side in draw.sample(SIDES, 2):
            yield number, side


@dataclass(slots=True)
class Experiment:
    """All that is known of one comparison of A and B; ``what``: the endpoint of each side, as it was given."""

    folder: Path
    what: dict[str, str]
    repeats: int
    seed: int
    limits: tuple[str, ...] = ()
    strict: bool = False
    interrupted: bool = False
    given_up: str = ""
    """Why a side has no more waves; empty where it has all of them."""
    aborted: str = ""
    """What was measured of the wave that was aborted, and ended all; empty where none was."""
    sent: tuple[Sent, ...] = ()
    not_stored: str = ""
    """Why ``ab.json`` lacks the outcome; empty where it has it."""

    @property
    def is_given_up(self) -> bool:
        """Tells whether no more waves are sent, though some are missing."""
        return bool(self.given_up or self.aborted)

    def add(self, side: str, number: int, wave: Wave, *, counts: bool) -> None:
        """Take in a wave."""
        if wave.run_dir is None or not wave.run_dir.path.is_relative_to(self.folder):  # its disk is full
            raise BenchmarkError(
                f"{self.folder}: a wave could not be stored in it.", "Give another place with --output-dir."
            )
        run = wave.run_dir.path.relative_to(self.folder)
        self.sent = (*self.sent, Sent(side, number, str(run), wave.verdict.word, counts))

    @property
    def cut_off(self) -> bool:
        """Tells whether waves are missing for no reason that is stored: its command was killed, or is still at it."""
        return not (self.interrupted or self.is_given_up) and self._counted < self._planned

    @property
    def cut(self) -> Cut | None:
        """Its end where that is not the one that was planned; the gravest of several."""
        ends = {Cut(code, why, self._counted, self._planned): code for code, why in self._ends()}
        gravest = worst_exit_code(OK, *ends.values())
        return next((cut for cut, code in ends.items() if code == gravest), None)

    @property
    def _counted(self) -> int:
        return sum(each.counts for each in self.sent)

    @property
    def _planned(self) -> int:
        return self.repeats * len(SIDES)

    def _ends(self) -> Iterator[tuple[int, str]]:
        """All that ended it unlike its plan: an exit code, that of its wave where one was aborted, and why."""
        if self.interrupted:
            yield INTERRUPTED, ""
        if self.cut_off:
            yield INTERRUPTED, "cut off, or still running"
        if self.aborted:
            yield INVALID if self.sent[-1].verdict == "INVALID" else MISSED, f"aborted: {self.aborted}"
        if self.given_up:
            yield INVALID, self.given_up
        if self.not_stored:
            yield INVALID, f"not stored: {self.not_stored}"

    @property
    def cut_code(self) -> int:
        """The exit code of how it ended, whatever was measured."""
        return OK if self.cut is None else self.cut.exit_code

    @property
    def missing(self) -> str:
        """The sides that have no wave that counts: nothing can be compared then."""
        return " and ".join(side for side in SIDES if not any(each.side == side and each.counts for each in self.sent))

    def compare(self, waves: Mapping[str, Sequence[Wave]]) -> Comparison:
        """B compared with A; BenchmarkError where a side has no wave."""
        limits = [MaxRegression.parse(text) for text in self.limits]
        found = compare(waves["A"], waves["B"], limits, names=SIDES, strict=self.strict)
        base, new = (Side(side.name, side.waves, self.what[side.name]) for side in (found.base, found.new))
        return replace(found, base=base, new=new, unlike=(), cut=self.cut)  # the sides are what is compared

    def read(self) -> dict[str, Sequence[Wave]]:
        """The waves that count, from their run directories."""
        return {
            side: [Wave.load(self.folder / each.run) for each in self.sent if each.side == side and each.counts]
            for side in SIDES
        }

    def save(self, found: Comparison | None, exit_code: int | None) -> None:
        """Write ``ab.json``; without an exit code it is still going on."""
        result = AbResult(
            schema_version=SCHEMA_VERSION,
            what=self.what,
            repeats=self.repeats,
            seed=self.seed,
            limits=list(self.limits),
            strict=self.strict,
            interrupted=self.interrupted,
            given_up=self.given_up,
            aborted=self.aborted,
            waves=list(self.sent),
            exit_code=exit_code,
            comparison=None if found is None else result_of(found),
            built_on=built_on(self.folder, (self.folder / each.run for each in self.sent)),
        )
        try:
            write_with_digest(self.folder / FILE, encoded(result))
        except OSError as error:
            raise cannot_write(self.folder, error) from None


def is_ab(folder: Path) -> bool:
    """Tells whether a folder is one of A and B."""
    return is_there(folder / FILE)


def exit_code_of(experiment: Experiment) -> int:
    """The exit code of the command that made what ``load`` has read, also of one that never stored it."""
    stored = read_json(experiment.folder / FILE)["exit_code"]
    return experiment.cut_code if stored is None else int(stored)


def not_checked(folder: Path) -> Iterator[str]:
    """Clauses on what an earlier version stored no digest of, and on waves that are gone."""
    data = read_json(folder / FILE)
    if DIGEST not in data:
        yield WITHOUT
    if below := built_on_not_checked(folder, data):
        yield below


def _require_as_stored(experiment: Experiment, sent: Sent) -> None:
    """Check what is said of a wave against its own files, where they are there; ValueError where they disagree."""
    run_dir = RunDir(experiment.folder / sent.run)
    if not is_file(run_dir.summary):
        return
    stored = reader.read_facts(run_dir.summary)
    if sent.verdict != stored["verdict"] and not {sent.verdict, stored["verdict"]} <= _VALID:
        raise ValueError(f"{sent.run} is {stored['verdict']}, not {sent.verdict}")
    cut = stored["interrupted"] or stored.get("aborted") is not None
    if sent.counts != (stored["verdict"] in _VALID and not cut):
        what = "was interrupted or aborted" if cut else f"is {stored['verdict']}"
        raise ValueError(f"{sent.run} is listed as {'usable' if sent.counts else 'unusable'}, but {what}")
    plan, (other,) = reader.read_plan(run_dir), set(SIDES) - {sent.side}
    if _is_to(plan, experiment.what[other]) and not _is_to(plan, experiment.what[sent.side]):
        raise ValueError(f"{sent.run} was sent to {experiment.what[other]}, which belongs to side {other}")


def _is_to(plan: WavePlan, what: str) -> bool:
    """Tells whether a side as it was given, ``f.py (KIND=a)``, is what a wave was sent to."""
    endpoint, _, own = what.removesuffix(")").partition(" (")
    server = str(plan.factory_settings.get("SERVER") or "/")
    if not (str(plan.factories_file).endswith(endpoint.removeprefix("./")) or endpoint.startswith(server)):
        return False
    given, others = f", {own}, ", []  # not split: a value may have commas of its own, and read as another setting
    for name, value in sorted(plan.factory_settings.items(), key=lambda setting: -len(setting[1])):
        rest = given.replace(f", {name}={value}, ", ", ", 1)
        others += [name] if rest == given else []
        given = rest
    return not any(f", {name}=" in given for name in others)


def _require_code(experiment: Experiment, ab_result: AbResult) -> None:
    """Check the exit code against the comparison that it is of; ValueError where it is another one."""
    if ab_result.exit_code is None:  # it is still going on, or was killed
        return
    code = worst_exit_code(
        experiment.cut_code, OK if ab_result.comparison is None else EXIT_CODES[ab_result.comparison.outcome]
    )
    if ab_result.exit_code != code:
        raise ValueError(f"its exit code is {ab_result.exit_code}, but what it compares means {code}")


def _require_once(sent: Sequence[Sent], digests: Mapping[str, str]) -> None:
    """ValueError where one wave counts twice, under its name or under another one."""
    if twice := [run for run, number in Counter(each.run for each in sent).items() if number > 1]:
        raise ValueError(f"{twice[0]} is listed twice")
    names: dict[str, str] = {}
    for each in sent:
        digest = digests.get(each.run) if each.counts else None
        if digest is not None and names.setdefault(digest, each.run) != each.run:
            raise ValueError(f"{each.run} is the same wave as {names[digest]}")


def _of(folder: Path, ab_result: AbResult) -> Experiment:
    return Experiment(
        folder,
        {side: ab_result.what[side] for side in SIDES},
        ab_result.repeats,
        ab_result.seed,
        tuple(ab_result.limits),
        ab_result.strict,
        ab_result.interrupted,
        ab_result.given_up,
        ab_result.aborted,
        tuple(ab_result.waves),
        NO_OUTCOME if ab_result.exit_code is None else "",
    )


def load(folder: Path) -> Experiment:
    """Read a folder; BenchmarkError for what is none."""
    data = read_json(folder / FILE)
    try:
        require_digest(data)
        stored = decoded(data, AbResult)
        experiment = _of(folder, stored)
        sent = experiment.sent
        outside = [each.run for each in sent if {"", ".", ".."} & {*each.run.split("/")}]
        refuse([f"{folder / FILE}: {run!r} is not below its folder." for run in outside])
        _require_once(sent, stored.built_on or {})
        require_built_on(folder, data)
        for each in sent:
            _require_as_stored(experiment, each)
    except UNREADABLE as error:
        raise foreign(folder / FILE, error) from None
    if experiment.missing and not experiment.cut_code:
        raise BenchmarkError(f"{folder}: no wave of {experiment.missing} is usable.", "Nothing can be compared.")
    try:
        _require_code(experiment, stored)
    except UNREADABLE as error:
        raise foreign(folder / FILE, error) from None
    return experiment
