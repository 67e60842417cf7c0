"""instances.jsonl: what a killed command leaves is shown, what somebody forged is shown or said in a sentence."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.cli import main
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.instances import INFERRED, Count, Followed, ScalingEvent, begun, count_row
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.files.instances_file import add_line, read_instances, write_instances
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from tests.hostile import DISGUISES, ESCAPES, TEXTS, VALUES, disguise, paths_of, with_value, without
from tests.waves import facts_of, make_run, spooled, stored, wave

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T0 = 1_700_000_000
COUNTS = (Count(T0 - 1, 1, 1, "InService"), Count(T0 + 0.5, 1, 3, "Updating"), Count(T0 + 1.5, 3, 3, "InService"))
EVENTS = (ScalingEvent(T0 + 0.4, "alarm", "alarm AlarmHigh fired"), ScalingEvent(T0 + 0.45, "asked", "x", 3, T0 + 1))
FOLLOWED = Followed("demo/AllTraffic", "DescribeEndpoint", COUNTS, EVENTS, ("Something was not reported.",))


def test_a_command_that_was_killed_leaves_what_it_had_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = spooled(tmp_path, ended=False)
    for line in (begun(FOLLOWED.of, FOLLOWED.source), *(count_row(FOLLOWED.of, count) for count in COUNTS)):
        assert add_line(run.instances, line)
    with run.instances.open("a") as file:
        file.write('{"of": "demo/AllTraffic", "count": {"at": 17')
    assert main(["report", str(run.path)]) == 3, "its primary was lost, too"
    out = capsys.readouterr().out
    assert "   Instances:        1 -> 3; no limit was missed; in service 1.5 s after the load rose\n" in out
    lines = (
        "0.0 s the load rose: 10 requests/s",
        "0.5 s +0.5 s 3 instances requested instead of 1",
        "3 instances served",
    )
    assert all(text in " ".join(out.split()) for text in lines)
    assert facts_of(run)["instances"]["followed"][0]["changes"] == [
        {"from": 1, "to": 3, "load_rose_s": 0, "alarm_s": None, "asked_s": 0.5, "served_s": 1.5}
    ]
    whole = Wave.load(run.path)
    assert whole.instances == (replace(FOLLOWED, events=(), remarks=()),)
    assert Wave.load(run.path).text() == whole.text()


def test_instances_that_did_not_change_are_shown_without_limits_that_nobody_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = spooled(tmp_path, ended=False)
    for line in (begun(FOLLOWED.of, FOLLOWED.source), count_row(FOLLOWED.of, COUNTS[0])):
        assert add_line(run.instances, line)
    main(["report", str(run.path)])
    assert "   Instances:        1 throughout\n" in capsys.readouterr().out


def test_inferred_instances_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = spooled(tmp_path, ended=False)
    for line in (begun(FOLLOWED.of, INFERRED), count_row(FOLLOWED.of, COUNTS[0])):
        assert add_line(run.instances, line)
    main(["report", str(run.path)])
    assert "   Instances:        1 throughout (inferred from SampleCount)\n" in capsys.readouterr().out


def test_a_wave_is_stored_with_what_was_counted_while_it_ran(tmp_path: Path) -> None:
    """So that the summary has it, whatever becomes of the waiting for what the server tells afterwards."""
    run = RunDir(tmp_path)
    for line in (begun(FOLLOWED.of, FOLLOWED.source), *(count_row(FOLLOWED.of, count) for count in COUNTS)):
        assert add_line(run.instances, line)
    made = wave([[0.01] * 10] * 3)
    save_plan(run, made.plan, {})
    made = writer.save(made, run)
    assert facts_of(run)["instances"] is not None
    assert json.loads(json.dumps(Wave.load(run.path).to_json())) == facts_of(run)
    assert made.instances == (replace(FOLLOWED, events=(), remarks=()),)


def test_a_wave_comes_back_with_its_instances(tmp_path: Path) -> None:
    made = wave([[0.01] * 10] * 3).with_instances([FOLLOWED])
    run = stored(made, tmp_path)
    back = Wave.load(run.path)
    assert back.instances == (FOLLOWED,)
    assert back.to_json() == facts_of(run)
    assert "   Something was not reported." in back.text().splitlines()
    assert {remark["code"] for remark in back.to_json()["diagnosis"]} == {"instances"}
    assert stored(wave([[0.01]]), tmp_path).instances.exists() is False


def test_a_run_without_them_has_none(tmp_path: Path) -> None:
    make_run(tmp_path / "run", 50)
    assert Wave.load(tmp_path / "run").to_json()["instances"] is None


def test_a_file_that_cannot_be_written_to_is_no_lost_wave(tmp_path: Path) -> None:
    assert add_line(tmp_path / "gone" / "instances.jsonl", {}) is False


@pytest.mark.parametrize("how", DISGUISES, ids=lambda how: how.__name__)
def test_what_is_no_file_is_said(
    how: Callable[[Path, Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, bystander = spooled(tmp_path), tmp_path / "bystander"
    bystander.write_text("{}")
    disguise(run.instances, how, bystander)
    assert main(["report", str(run.path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"benchmark: {run.instances}")


@pytest.mark.parametrize("text", [text for text in TEXTS if 0 < len(text) < 1_000_000])
def test_lines_that_are_none_of_ours_are_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "instances.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogatepass") + b"\n")
    with pytest.raises(BenchmarkError) as raised:
        read_instances(path)
    assert len(str(raised.value).splitlines()) == 1


def test_whatever_stands_in_a_line_it_is_shown_or_said(tmp_path: Path) -> None:
    draw, path = random.Random(3), tmp_path / "instances.jsonl"
    lines: list[dict[str, Any]] = list(FOLLOWED.lines())
    facts, outcomes = wave([[0.01] * 10] * 2), set()
    for _ in range(120):
        place = draw.randrange(len(lines))
        where = draw.choice(list(paths_of(lines[place])))
        forged = (
            without(lines[place], where)
            if where and draw.random() < 0.2
            else with_value(lines[place], where, draw.choice(VALUES))
        )
        changed = [*lines[:place], forged, *lines[place + 1 :]]
        path.write_text("".join(json.dumps(line) + "\n" for line in changed))
        try:
            said, outcome = facts.with_instances(read_instances(path)).text().splitlines(), "shown"
        except BenchmarkError as error:
            said, outcome = [str(error)], "said"
        assert all(line.isprintable() for line in said)
        outcomes.add(outcome)
    assert outcomes == {"said", "shown"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"of": "a", "remark": "x" * 10_000}], "has a line of 10,025 bytes"),
        ([{"of": "a", "remark": "x"}] * 5_001, "has 5,001 events and remarks of one server"),
        ([{"of": "a", "event": {"at": T0, "kind": "alarm", "text": ""}}] * 5_001, "has 5,001 events and remarks"),
        ([{"of": str(n), "source": "x"} for n in range(1_001)], "has 1,002 servers"),
    ],
)
def test_more_than_any_wave_leaves_is_refused(lines: list[dict[str, Any]], said: str, tmp_path: Path) -> None:
    path = tmp_path / "instances.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [{"of": "a", "source": "x"}, *lines]))
    with pytest.raises(BenchmarkError, match=said):
        read_instances(path)
    path.write_bytes(b"{}\n" * 600_001)
    with pytest.raises(BenchmarkError, match="has 600,001 lines"):
        read_instances(path)


def test_a_number_that_never_rests_fits_into_a_summary() -> None:
    counts = tuple(Count(T0 + place / 1000, place % 7, place % 5) for place in range(30_000))
    reported = (
        wave([[0.01] * 10] * 2).with_instances([replace(FOLLOWED, counts=counts)]).to_json()["instances"]["followed"]
    )
    assert 5_000 < len(reported[0]["steps"]) <= 10_000
    assert (reported[0]["steps"][0]["at_s"], reported[0]["steps"][-1]["at_s"] > 29) == (0, True)
    assert len(reported[0]["changes"]) <= 10_000


def test_no_name_of_a_server_colours_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "instances.jsonl"
    write_instances(path, [replace(FOLLOWED, of=ESCAPES.replace("\ud800", ""), remarks=(ESCAPES[:20],))])
    shown = wave([[0.01] * 10] * 2).with_instances(read_instances(path)).text()
    assert all(line.isprintable() for line in shown.splitlines())
