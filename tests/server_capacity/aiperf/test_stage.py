"""What may go wrong around a run of aiperf, and must not take its result along."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from server_capacity.aiperf import installation as aiperf
from server_capacity.aiperf.export import AiperfResult
from server_capacity.aiperf.installation import Installation
from server_capacity.aiperf.options import AiperfOptions
from server_capacity.aiperf.stage import AiperfStage, had_streams
from tests.counted import counted
from tests.fake_aiperf import STATISTICS, record
from tests.waves import make_run, streamed, wave

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.facts.instances import InstanceSource
    from inference_benchmarker.facts.server_metric import LiveMetric, ServerLog, ServerMetric


class Source:
    """A source that does what the test sets when it is asked."""

    def __init__(self, act: Callable[[], list[ServerMetric]]) -> None:
        self._act = act

    def warnings(self, seconds: float | None, *, ahead: bool = True) -> list[str]:
        del seconds, ahead
        return []

    def instances(self) -> list[InstanceSource]:
        return []

    def begin(self) -> None:
        """Nothing to watch."""

    def latest(self) -> list[LiveMetric]:
        return []

    def collect(self, *_: object) -> list[ServerMetric]:
        return self._act()

    def logs(self, *_: object) -> list[ServerLog]:
        return []


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def stage(tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> AiperfStage:
    """A stage whose aiperf leaves the export of one request."""

    def run(_installation: Any, _arguments: Any, folder: Path, *_: Any, **__: Any) -> bool:
        (folder / "profile_export.jsonl").write_text(json.dumps(record(1, 2)) + "\n")
        (folder / "profile_export_aiperf.json").write_text(json.dumps(STATISTICS))
        return False

    monkeypatch.setattr(aiperf, "run", run)
    installation = Installation(Path("aiperf"), Path("python3"))
    options = AiperfOptions(installation, "http://127.0.0.1:9", only=True, given={}, pause_s=None)
    plan = WavePlan(OpenLoop(Decimal(1)), Bounds(num_requests=1), output_dir=tmp_path)
    return AiperfStage(options, plan, "http://127.0.0.1:9", None, {}, said.append)


def interrupted() -> list[ServerMetric]:
    signal.raise_signal(signal.SIGINT)
    return []


def faulty() -> list[ServerMetric]:
    raise KeyError("Timestamps")


@pytest.mark.parametrize(("act", "rows"), [(interrupted, 0), (faulty, 1)])
def test_what_happens_while_the_metrics_are_fetched_loses_no_result(
    act: Callable[[], list[ServerMetric]], rows: int, stage: AiperfStage
) -> None:
    outcome = stage.follow(None, [Source(act)])
    assert (outcome.exit_code, outcome.problem) == (0, "")
    assert outcome.result is not None
    assert outcome.result.requests == 1
    assert len(outcome.result.server_metrics or ()) == rows
    assert AiperfResult.load(Path(outcome.result.folder)) == outcome.result


@pytest.mark.parametrize(("change", "expected"), [("changed", "was changed"), ("gone", "was taken away")])
def test_a_result_that_is_not_the_one_beside_its_wave_is_refused(
    change: str, expected: str, stage: AiperfStage, tmp_path: Path
) -> None:
    sent = make_run(tmp_path / "run", 20)
    at_once = replace(stage, options=replace(stage.options, pause_s=0.0))
    result = at_once.follow(sent, []).result
    assert result is not None
    folder = Path(result.folder)
    assert (AiperfResult.load(folder), Wave.load(tmp_path / "run").ledger.ok) == (result, 20)
    if change == "changed":
        replace(result, requests=5, ok=5).save()
    else:
        (folder / "summary.json").unlink()
    with pytest.raises(BenchmarkError, match=expected):
        AiperfResult.load(folder)


def test_a_result_that_cannot_be_stored_is_printed_all_the_same(
    stage: AiperfStage, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: AiperfResult) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(AiperfResult, "save", full)
    outcome = stage.follow(None, [])
    assert outcome.result is not None
    assert "No space left on device" in said[-1]


def test_a_tokenizer_that_aiperf_cannot_load_is_one_sentence_and_no_traceback(
    stage: AiperfStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_installation: Any, _arguments: Any, folder: Path, *_: Any, **__: Any) -> bool:
        (folder / aiperf.LOG).write_text(
            "Traceback\nTokenizerError: Failed to load tokenizer 'org/m': OSError: no\n" * 9
        )
        return False

    monkeypatch.setattr(aiperf, "run", run)
    outcome = stage.follow(None, [])
    assert outcome.exit_code == 3
    assert outcome.problem.startswith("aiperf could not load the tokenizer 'org/m'. Give the folder of one:")
    assert outcome.problem.endswith(f"{aiperf.LOG}.")
    assert "Traceback" not in outcome.problem
    assert "\n" not in outcome.problem


def test_a_disk_that_is_full_before_it_begins_is_a_reason_and_no_traceback(
    stage: AiperfStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(aiperf, "run", full)
    outcome = stage.follow(None, [])
    assert (outcome.exit_code, outcome.result) == (3, None)
    assert "No space left on device" in outcome.problem


@pytest.mark.parametrize("gaps", [(), (5, 5)])
def test_streams_are_seen_though_the_slowest_requests_failed(gaps: tuple[int, ...]) -> None:
    """Where requests were counted, the slowest are all that has a record."""
    failed = wave([[1.0] * 10], outcomes=["failed"] * 10, error=["ClientTimeout"] * 10)
    rows = [*failed.records, streamed(10, 20, gaps)]
    assert had_streams(replace(failed, counts=counted(rows))) is bool(gaps)
