"""``benchmark plan``: flags, exit codes and the folder."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from inference_benchmarker import cli
from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.data.json_file import FOREIGN
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import INVALID
from inference_benchmarker.system.files import is_file
from server_capacity.experiments.proof.planned import read_planned
from server_capacity.planning.folder import save as save_plan
from server_capacity.planning.measured import Refused
from server_capacity.planning.totals import content
from server_capacity.results.capacity_folder import read, save
from server_capacity.results.ranking_folder import read as read_ranking
from server_capacity.results.ranking_folder import save as save_ranking
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, failed_row, row_of
from server_capacity.results.types.bounds import Endpoint
from tests.capacities import found, searched
from tests.mentions import mentions
from tests.rankings import CURVE, row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from server_capacity.results.types.ranking import RankedRow

ENDPOINT = {"name": "demo", "instance_type": "ml.m5.xlarge", "instances": 1, "kind": "variant", "variant": "AllTraffic"}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def capacity(folder: Path, low: float = 100.0, endpoint: dict[str, Any] | None = None, **more: Any) -> Path:
    folder.mkdir(parents=True)
    interval = {"low": low, "high": low * 1.1}
    save(folder, searched(**{"rate": low * 1.05, "interval": interval, "endpoint": endpoint or ENDPOINT, **more}))
    return folder


def plan(*arguments: str) -> int:
    return cli.main(["plan", *arguments, "--output-dir", "out"])


def only_plan(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    (folder,) = (tmp_path / "out").glob("*_plan")
    return folder, json.loads((folder / "fleet_plan.json").read_text())


def test_a_plan_is_printed_written_and_reported_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity(tmp_path / "c")

    assert plan("c", "--target-rps", "1000", "--price", "ml.m5.xlarge=0.23") == 0

    printed = capsys.readouterr().out
    first = "15 instances of ml.m5.xlarge can serve 1,000/s (10 without headroom) for $3.45/h."
    first += " Autoscaling: 2 to 15 instances."
    assert printed.splitlines()[0] == first
    folder, data = only_plan(tmp_path)
    assert data["headline"] == first
    assert printed == (folder / "fleet_plan.txt").read_text()
    assert sorted(each.name for each in folder.iterdir()) == sorted(
        [*data["files"], "fleet_plan.html", "fleet_plan.json", "fleet_plan.txt", "fleet_plan_capacity.png"]
    )
    assert {"scalable_target.json", "scaling_policy.json", "hpa.yaml", "keda.yaml"} <= set(data["files"])
    assert data["endpoints"][0]["correlation"] is None
    assert cli.main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == printed.replace("out/", str(tmp_path / "out") + "/")
    assert cli.main(["report", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == data


@pytest.mark.parametrize(
    ("change", "remarks"),
    [
        (is_file, 0),
        (lambda file: file.write_text(file.read_text().replace('"low": 100.0', '"low": 50.0')), 1),
        (lambda file: file.write_text("{"), 1),
        (lambda file: save(file.parent, searched(rate=175.0)), 1),
        (lambda file: file.unlink(), 0),
    ],
    ids=["same", "changed", "damaged", "another", "gone"],
)
def test_a_plan_says_that_its_search_was_changed_since(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], object], remarks: int
) -> None:
    search = capacity(tmp_path / "c")
    assert plan("c", "--target-rps", "1000") == 0
    folder, data = only_plan(tmp_path)
    printed = capsys.readouterr().out.replace("out/", str(tmp_path / "out") + "/")
    assert "built_on" not in data
    change(search / "capacity.json")

    assert cli.main(["report", str(folder)]) == 0
    stored = capsys.readouterr()
    assert stored.out == printed, "its numbers are those of the search as it was"
    assert stored.err.count("c is no longer the search that the plan was made from") == remarks
    assert len(read_planned(folder).warnings) == remarks


def test_json_is_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity(tmp_path / "c")
    assert plan("c", "--target-rps", "1000", "--json") == 0
    assert json.loads(capsys.readouterr().out) == only_plan(tmp_path)[1]


def test_the_type_may_be_given(tmp_path: Path) -> None:
    capacity(tmp_path / "c", endpoint={"name": "local"})
    assert plan("c", "--target-rps", "1000", "--instance-type", "my.box", "--price", "my.box=0.1") == 0
    assert mentions(only_plan(tmp_path)[1]["headline"], "15 instances", "my.box", "1,000/s")


def test_without_a_price_it_is_said_how_to_give_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity(tmp_path / "c")
    assert plan("c", "--target-rps", "1000") == 0
    assert "No cost: give --price" in capsys.readouterr().out


def rank(folder: Path, *rows: RankedRow) -> None:
    """A ranking of these rows, beside the folders of their searches."""
    endpoint = decoded(ENDPOINT, Endpoint)
    made = [replace(each, endpoint=endpoint, seconds_to_create=endpoint.seconds_to_create) for each in rows]
    for each in made:
        capacity(folder / str(each.capacity), curve=CURVE, rate=each.rate, interval=encoded(each.interval))
    save_ranking(folder, ranking(made, Aim()))


def test_a_ranking_is_planned_by_its_first_row(tmp_path: Path) -> None:
    rank(tmp_path / "r", row("b", 100.0, 110.0), row("c", 50.0, 55.0))
    assert plan("r", "--target-rps", "1000") == 0
    assert only_plan(tmp_path)[1]["endpoints"][0]["capacity"] == "r/x_b_capacity"


def test_a_plan_of_a_ranking_inherits_what_the_ranking_leaves_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "the endpoint could not be created: no capacity in us-east-1a"
    broken = failed_row({"instance_type": "c"}, why, code=INVALID)
    rank(tmp_path / "r", row("b", 100.0, 110.0))
    save_ranking(tmp_path / "r", ranking([*read_ranking(tmp_path / "r").rows, broken], Aim()))

    assert plan("r", "--target-rps", "1000") == INVALID
    folder, data = only_plan(tmp_path)
    assert f"in its ranking c has no rank: {why}" in data["endpoints"][0]["warnings"]
    assert data["exit_code"] == INVALID
    assert why in " ".join(capsys.readouterr().out.split())
    assert read_planned(folder).exit_code == INVALID


def test_a_ranking_tells_what_to_deploy_what_ties_with_it_and_its_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = replace(row("ml.m5.xlarge", 100.0, 110.0, price=0.2), variant={"workers": "2"})
    second = row("ml.m5.xlarge", 99.0, 109.0, price=0.2)
    second = replace(second, variant={"workers": "1"}, capacity="x_1_capacity")
    rank(tmp_path / "r", first, second)

    assert plan("r", "--target-rps", "1000") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert mentions(printed, "15 instances", "ml.m5.xlarge", "workers=2", "1,000/s")
    assert "In the ranking workers=1 ties with workers=2." in printed
    assert "0.2 USD per hour of ml.m5.xlarge" in printed
    assert "(us-east-1, given with the ranking, 2026-11-23)" in printed
    assert "$3.00/h" in printed

    assert plan("r", "--target-rps", "1000", "--price", "ml.m5.xlarge=0.4") == 0
    assert "$6.00/h" in capsys.readouterr().out

    stored = tmp_path / "r" / "ranking.json"
    kept = json.loads(stored.read_text())
    del kept["digest"]
    price = kept["rows"][0]["price"]
    for wrong in ({"price": {**price, "per_hour": "x"}}, {"price": [1]}, {"tied_with": [9]}, {"variant": 5}):
        stored.write_text(json.dumps({**kept, "rows": [{**kept["rows"][0], **wrong}, *kept["rows"][1:]]}))
        assert plan("r", "--target-rps", "1000") == 2
        assert f"ranking.json: {FOREIGN}" in capsys.readouterr().err


def test_a_price_of_another_type_is_distinguished_from_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity(tmp_path / "c")
    assert plan("c", "--target-rps", "1000", "--price", "ml.c5.xlarge=0.2") == 0
    assert mentions(capsys.readouterr().out, "--price", "ml.c5.xlarge", "ml.m5.xlarge")
    capacity(tmp_path / "d", endpoint={"name": "local"})
    assert plan("d", "--target-rps", "1000", "--price", "ml.c5.xlarge=0.2") == 0
    printed = capsys.readouterr().out
    assert "the search does not know the instance type: give --instance-type ml.c5.xlarge." in " ".join(printed.split())
    assert "Taken as 1 instance: " in printed


def test_a_mix_has_a_folder_for_each_endpoint_one_cost_and_one_first_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity(tmp_path / "a")
    capacity(tmp_path / "b", 20.0)
    mix = [{"capacity": "a", "target_rps": 1000}, {"capacity": "b", "target_rps": 100, "name": "Other one"}]
    (tmp_path / "mix.json").write_text(json.dumps(mix))

    assert plan("--mix", "mix.json", "--price", "ml.m5.xlarge=0.2") == 0

    first = "2 endpoints: 23 instances can serve 1,100/s (15 without headroom) for $4.60/h."
    assert capsys.readouterr().out.splitlines()[0] == first
    folder, data = only_plan(tmp_path)
    assert data["cost"]["hour"] == pytest.approx(4.6)
    assert (folder / "demo" / "scaling_policy.json").is_file()
    assert (folder / "other-one" / "scaling_policy.json").is_file()


def test_what_was_measured_may_not_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity(tmp_path / "c", endpoint={**ENDPOINT, "kind": "multi-model"})
    assert plan("c", "--target-rps", "1000") == 1
    assert capsys.readouterr().out.startswith("No plan: demo: it was measured at 1 instance only, and a multi-model")
    assert only_plan(tmp_path)[1]["refused"]


def test_what_is_refused_has_the_exit_code_of_its_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that ended early, beside a good one."""
    capacity(tmp_path / "good")
    none: dict[str, Any] = {"rate": None, "interval": None, "outcome": "cannot_tell", "ended": "early", "exit_code": 3}
    none |= {"failures": ["The search ended early: x."], "endpoint": {**ENDPOINT, "name": "other"}}
    capacity(tmp_path / "early", **none)
    assert plan("good", "early", "--target-rps", "1000") == 3
    reported = capsys.readouterr().out.splitlines()[0]
    assert mentions(reported, "1 refused: early: the search found no capacity", "; its search ended early: x.")
    assert mentions(
        "; ".join(read_planned(only_plan(tmp_path)[0]).warnings), "refused early: the search found no capacity"
    )
    folder, data = only_plan(tmp_path)
    assert (data["exit_code"], len(data["endpoints"])) == (3, 1)
    assert cli.main(["report", str(folder)]) == 3


def test_what_is_refused_of_a_ranking_says_what_its_exit_code_is_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The variant that was searched has no capacity, and the command was interrupted before the other one."""
    none: dict[str, Any] = {"rate": None, "interval": None, "outcome": "not_kept", "exit_code": 1, "reason": "none"}
    folder = tmp_path / "r"
    searched_one = read(capacity(folder / "x_capacity", clean_up="failed", **none))
    rows = [
        row_of({"kind": "a"}, "x_capacity", searched_one, None, Aim()),
        failed_row({"kind": "b"}, "The command ended before it was measured.", "interrupted"),
    ]
    save_ranking(folder, ranking(rows, Aim(), interrupted=True))
    assert plan("r", "--target-rps", "1000") == 130
    assert mentions(
        capsys.readouterr().out.splitlines()[0],
        "No plan: r: the search found no capacity: No rate meets p99<100ms: none; its search: ",
        "something that was created for it was not removed",
        "; its ranking was interrupted.",
    )


def test_two_counts_of_one_endpoint_are_one_plan(tmp_path: Path) -> None:
    several = {**ENDPOINT, "kind": "multi-model", "instances": None}
    capacity(tmp_path / "c", endpoint=several)
    capacity(tmp_path / "d", 250.0, endpoint=several)
    assert plan("c", "d", "--target-rps", "200", "--instances", "1,3", "--utilisation", "100%") == 0
    assert only_plan(tmp_path)[1]["endpoints"][0]["chosen"]["instances"] == 3


def test_stages_and_recordings_give_bounds(tmp_path: Path) -> None:
    capacity(tmp_path / "c")
    counts = (600, 6000, 60)
    rows = [f"{60 * minute + 60 * place / count:.4f}" for minute, count in enumerate(counts) for place in range(count)]
    (tmp_path / "r.csv").write_text("\n".join(["timestamp", *rows, "180.5"]) + "\n")
    assert plan("c", "--replay", "r.csv", "--utilisation", "0.5") == 0
    made = only_plan(tmp_path)[1]["endpoints"][0]
    assert (made["target_rps"], made["peak_rps"], made["least_rps"]) == (100, 100, 1)
    assert (made["chosen"]["instances"], made["chosen"]["maximum"]) == (2, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("c", "No load: give --target-rps R, --stages or --replay."),
        ("--target-rps 5", "Give the folder of a search"),
        ("none --target-rps 5", "none: is not the folder of a search"),
        ("c --target-rps 0 --utilisation 0 --spare -1", "--target-rps must be from"),
        ("c --target-rps 0 --utilisation 0 --spare=-1", "--utilisation must be from 5% to 100%"),
        ("c --target-rps 5 --growth 20%/min", "Give --seconds-to-create."),
        ("c --target-rps 5 --growth 10", "--growth 10 is 1000%/min. Give 10%/min, or 1000%/min if you mean it."),
        ("c --target-rps 5 --utilisation 70", "from 5% to 100%, not 7000%: did you mean 70%?"),
        ("c --target-rps 5 --growth much", "--growth must be the growth of the load"),
        ("c --target-rps 5 --stages 5:3s --replay x.csv", "Give either --replay or --stages, not both."),
        ("c --target-rps 5 --window +1s..+2s", "--window is for --replay."),
        ("c --target-rps 5 --minimum 3 --maximum 2", "--minimum must not be above --maximum."),
        ("c --target-rps 1000 --maximum 3", "--maximum 3 is too few for demo: 1,000/s need 15 instances"),
        ("c --target-rps 5 --instances 4", "--instances 4: c was measured with 1."),
        ("c --target-rps 5 --instance-type x", "--instance-type x: c was measured with ml.m5.xlarge."),
        ("c --target-rps 5 --instances 1,2", "--instances has 2 counts for 1 searches"),
        ("c --target-rps 5 --routing best", "--routing must be random or least_outstanding"),
        ("c --target-rps 5 --price x", "--price must be TYPE=USD"),
        ("c --mix none.json", "Give either folders or --mix, not both"),
        ("c --target-rps 5 --targets 3", "Unrecognized arguments: --targets"),
    ],
)
def test_bad_input_is_exit_code_2_and_makes_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    capacity(tmp_path / "c")
    assert plan(*arguments.split()) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_endpoints_of_two_regions_are_two_plans(tmp_path: Path) -> None:
    for name, region in (("a", "us-east-1"), ("b", "eu-west-1")):
        capacity(tmp_path / name, endpoint={**ENDPOINT, "arguments": {"model": "x"}, "region": region})
    (tmp_path / "p.json").write_text('{"us-east-1": {"ml.m5.xlarge": 0.1}, "eu-west-1": {"ml.m5.xlarge": 0.9}}')
    assert plan("a", "b", "--target-rps", "1000", "--price-file", "p.json") == 0
    assert mentions(only_plan(tmp_path)[1]["missing"], "2 endpoints", "1,000/s")
    costs = [each["cost"]["hour"] for each in only_plan(tmp_path)[1]["endpoints"]]
    assert costs == pytest.approx([1.5, 13.5])


def test_copies_have_no_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity(tmp_path / "c", endpoint={**ENDPOINT, "kind": "inference-component"})
    assert plan("c", "--target-rps", "1000", "--price", "ml.m5.xlarge=0.2") == 0
    assert "No cost of copies" in capsys.readouterr().out
    assert only_plan(tmp_path)[1]["cost"] is None


def test_a_folder_that_nothing_was_written_to_goes(tmp_path: Path) -> None:
    folder = tmp_path / "x_plan"
    folder.mkdir(mode=0o555)
    with pytest.raises(BenchmarkError, match="cannot be written"):
        save_plan(folder, content([], [Refused("x")], created="", utilisation=0.7, spare=1), {"no/such/parent": "x"})
    assert not folder.exists()


def test_a_plan_that_cannot_be_stored_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capacity(tmp_path / "c")

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("server_capacity.planning.folder.replace_file", full)
    assert plan("c", "--target-rps", "1000") == 3
    out, err = capsys.readouterr()
    assert "1,000/s" in out.splitlines()[0]
    assert err.endswith("cannot be written (No space left on device). The results exist only in the printed text.\n")
    assert not list((tmp_path / "out").iterdir())
    assert plan("c", "--target-rps", "1000", "--json") == 3
    assert json.loads(capsys.readouterr().out)["exit_code"] == 0


@pytest.mark.parametrize(
    "forged",
    [{"servers": 0}, {"servers": -4}, {"services_s": ["a"]}, {"services_s": [[1.0]]}, {"services_s": [-1.0]}, 5],
    ids=str,
)
def test_a_forged_model_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], forged: Any) -> None:
    twin = {**found()["twin"], "services_s": [0.02], "limit": "p99<100ms"}
    limits = [{"expression": "p99<100ms", "bound": 0.1, "allowed": 0.01}]
    file = capacity(tmp_path / "c", twin=twin, limits=limits) / "capacity.json"
    known = twin | forged if isinstance(forged, dict) else forged
    file.write_text(json.dumps({**json.loads(file.read_text()), "twin": known}))
    assert plan("c", "--stages", "5:1m", "--seconds-to-create", "60") == 2
    error = capsys.readouterr().err
    assert f"capacity.json: {FOREIGN}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"schema_version": 99}', '{"schema_version": 1}'])
def test_a_forged_plan_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "fleet_plan.json").write_text(text)
    assert cli.main(["report", "p"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "more",
    [
        {"interval": {"low": "x", "high": 3}},
        {"endpoint": {**ENDPOINT, "instance_type": 5}},
        {"endpoint": [1]},
        {"where_time_went": {"mean_s": "x"}},
        {"waves": {"confirmation": 5}},
        {"resources": {"all": [{"metric": "CPUUtilization", "demand_s": "x", "at_low": 1}]}},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_forged_search_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: dict[str, Any]
) -> None:
    file = capacity(tmp_path / "c") / "capacity.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **more}))
    assert plan("c", "--target-rps", "1000") == 2
    error = capsys.readouterr().err
    assert f"capacity.json: {FOREIGN}" in error
    assert error.count("\n") == 1
