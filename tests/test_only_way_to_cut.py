"""Foreign text is shortened in few places, which hide secrets before they cut: half of a secret is one, and not found.

A slice of a text anywhere else is listed with the reason why no secret is cut in half there.
"""

from __future__ import annotations

import ast
import base64
import logging
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.clients.body_excerpt import shown
from inference_benchmarker.clients.decoding import decoder_of
from inference_benchmarker.engine.endpoint.expected import _Said
from inference_benchmarker.engine.endpoint.source import describe_error
from inference_benchmarker.engine.hosts.preparing import _last_of
from inference_benchmarker.errors import LostProcessError
from inference_benchmarker.export import push
from inference_benchmarker.records.error_key import error_key
from inference_benchmarker.records.response import Response
from inference_benchmarker.system.out_of_resources import out_of_resources
from inference_benchmarker.words.redact import beginning, excerpt, part, quoted, redact, written
from inference_benchmarker.words.text import one_line, said
from server_capacity.metrics.aws_failures import first_line
from server_capacity.metrics.cloudwatch import autoscaling
from server_capacity.metrics.cloudwatch.log_lines import LineCounts
from server_capacity.metrics.prometheus.block import Credentials
from server_capacity.metrics.prometheus.exposition import parse
from server_capacity.metrics.prometheus.web import Web
from server_capacity.planning.costs import recommender
from tests.case import case
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGES = ("inference_benchmarker", "server_capacity", "client_capacity", "visualization")
SERVERS = "inference_benchmarker/embedded/"  # what they take apart they made themselves
ALLOWED = {
    # The few places.
    "inference_benchmarker/words/redact.py:beginning text[:limit + spare]": "is the place itself",
    "inference_benchmarker/words/redact.py:beginning clean[:limit - 1]": "is the place itself",
    "inference_benchmarker/words/redact.py:excerpt clean[:limit]": "is the place itself",
    "inference_benchmarker/engine/endpoint/expected.py:_Said.shown repr(self.value)[:_LOOKED_AT]": "is cut again",
    "inference_benchmarker/engine/worker/canaries.py:Canaries._show text[:_LOOKED_AT]": "is cut again",
    "inference_benchmarker/words/text.py:one_line line[:limit - 1]": "cuts a beginning, of which each secret is hidden",
    # What is cut was hidden just before.
    "inference_benchmarker/engine/hosts/preparing.py:_last_of redact(said).strip().splitlines()[-most:]": "is hidden",
    "inference_benchmarker/engine/hosts/preparing.py:_last_of plain(line.strip())[:300]": "is a line of that",
    "inference_benchmarker/engine/hosts/ssh.py:SshTransport._add_words word[:500]": "is of HiddenLines",
    "inference_benchmarker/engine/processes/child_logs.py:_Log.words line[:500]": "is of a log, or cleaned",
    "inference_benchmarker/engine/processes/child_logs.py:_Log._put_long_line "
    "line[:max(len(line) - MOST_UNDECIDED, 0)]": "is cleaned",
    "inference_benchmarker/engine/processes/child_logs.py:_cut line[:LONGEST_LINE]": "is cleaned",
    "inference_benchmarker/records/names.py:Names._shown text[:MAX_NAME_LENGTH - len(end)]": "is hidden",
    "client_capacity/calibration.py:_check log.read_text(errors='replace')[-2000:]": "is of a log",
    "server_capacity/aiperf/making.py:make_requests log.read_text(encoding='utf-8', errors='replace')[-2000:]": "is of "
    "a log",
    "server_capacity/aiperf/installation.py:failure said[-_LAST_LINES:]": "is hidden",
    "inference_benchmarker/engine/processes/child_logs.py:_Log._put_long_line "
    "line[:max(len(line) - MOST_UNDECIDED, 0)][:LONGEST_LINE]": "is cleaned",
    "server_capacity/metrics/cloudwatch/log_lines.py:_lines event[:_MOST_OF_AN_EVENT // 2]": "is hidden",
    "server_capacity/metrics/cloudwatch/log_lines.py:_lines line[:_MOST_OF_A_LINE]": "is hidden",
    "inference_benchmarker/report/load_sections.py:_calibration_lines "
    "facts.calibration['lines'][:_MAX_ROWS]": "are lines",
    "inference_benchmarker/words/text.py:shortened text[-(most // 2):]": "is of a result: secrets are hidden",
    "inference_benchmarker/words/text.py:shortened text[:most // 2 - 1]": "is of a result: secrets are hidden",
    # What is cut is a number, a column, or a name of our own.
    "inference_benchmarker/data/json_text.py:_number text[:_MOST_DIGITS]": "is a number",
    "inference_benchmarker/data/typed.py:_parts str(key)[:40]": "is a key of a result, in which secrets are hidden",
    "inference_benchmarker/plan/replay.py:Replay.from_json data['speed'][:100]": "is a number",
    "inference_benchmarker/recording/clock.py:_iso_reader.read text[:20]": "is a time",
    "inference_benchmarker/system/files.py:forget_drafts path.name[:200]": "is of a file of ours",
    "inference_benchmarker/system/files.py:replacing path.name[:200]": "is of a file of ours",
    "server_capacity/experiments/ranking/preflight.py:count_problems str(number)[:40]": "is a number",
    "server_capacity/planning/kubernetes.py:label _NO_LABEL.sub('-', name.lower()).strip('-')[:63]": "is in a manifest "
    "that is asked for",
    "visualization/run_page/timeline_figures.py:_column "
    "table.get(column, [])[:max(int(last_s), 1) if column in _WHOLE else None]": "is a column",
    # What is cut is looked at, and shown nowhere; or it is cut again, by one of the few places.
    "inference_benchmarker/engine/processes/child_logs.py:_Log._end_of_last "
    "text[:text.find('\\n', len(text) - most - 1) + 1]": "is looked at",
    "inference_benchmarker/words/secret_encodings.py:_begun text[-_SHORT:]": "is looked at",
    "server_capacity/metrics/cloudwatch/log_lines.py:kind_of line[:_MOST_OF_A_KIND]": "is looked at",
    "server_capacity/metrics/cloudwatch/log_lines.py:looks_like_error line[:_MOST_OF_A_KIND]": "is looked at",
    "server_capacity/provisioning/cleanup_file.py:read file.read(MOST_BYTES + 1)[:MOST_BYTES]": "is looked at",
    "inference_benchmarker/engine/worker/raised.py:_shown repr(value)[:_READ]": "is cut again, to a small part",
    "inference_benchmarker/engine/worker/raised.py:_shown value[:_READ]": "is cut again, to a small part",
    "inference_benchmarker/engine/endpoint/expected.py:_Said.shown self.value[:_LOOKED_AT]": "is cut again",
    "inference_benchmarker/facts/probe.py:_text value[:_READ]": "is cut again, to a small part",
    "inference_benchmarker/records/prompts.py:_is_data text[:_LONG]": "is looked at",
    "inference_benchmarker/records/prompts.py:_sum data[:_SAMPLES]": "is looked at",
    "inference_benchmarker/records/prompts.py:_sum data[-_SAMPLES:]": "is looked at",
    "inference_benchmarker/clients/body_excerpt.py:shown data[:_LOOKED_AT]": "is cut again, to a small part",
}


TAKEN_APART = {
    "is the place itself": (
        "inference_benchmarker/words/text.py:one_line",
        "inference_benchmarker/words/text.py:folded",
        "inference_benchmarker/words/text.py:_folded",
        "inference_benchmarker/words/text.py:_cell_folded",
        "inference_benchmarker/words/redact.py:",
        "inference_benchmarker/words/secret_encodings.py:_own_lines",
    ),
    "is hidden, in the whole of it": (
        "inference_benchmarker/cli/capacity/plan_flags.py:_questions",
        "inference_benchmarker/cli/capacity/vary_flags.py:asked_of",
        "inference_benchmarker/cli/compare/pareto_flags.py:asked_of",
        "inference_benchmarker/cli/compare/ab_flags.py:_described",
        "inference_benchmarker/cli/dispatch.py:_guarded",
        "inference_benchmarker/cli/core/terminal.py:_Passing.show",
        "inference_benchmarker/cli/kubernetes/bringing_home.py:_say_rest",
        "inference_benchmarker/engine/pods/follower.py:Follower._hear",
        "inference_benchmarker/engine/pods/kubectl.py:_words_of",
        "inference_benchmarker/cli/core/terminal.py:print_report",
        "inference_benchmarker/cli/core/terminal.py:say",
        "inference_benchmarker/cli/live/screen.py:Screen.print",
        "inference_benchmarker/engine/hosts/preparing.py:_last_of",
        "inference_benchmarker/engine/processes/child_logs.py:HiddenLines._given",
        "inference_benchmarker/engine/processes/child_logs.py:_Log._put",
        "inference_benchmarker/engine/processes/child_logs.py:_Log._put_long_line",
        "inference_benchmarker/engine/processes/child_logs.py:_Log._write",
        "inference_benchmarker/engine/processes/child_logs.py:_Log.words",
        "inference_benchmarker/engine/processes/child_logs.py:_cut",
        "inference_benchmarker/engine/worker/check.py:_failure",
        "inference_benchmarker/engine/worker/check.py:ask",
        "inference_benchmarker/engine/worker/raised.py:traceback_text",
        "inference_benchmarker/report/screen.py:_command_lines",  # a command with a secret is not proposed
        "inference_benchmarker/system/out_of_resources.py:_last_line",
        "inference_benchmarker/wave/frames.py:Selection.__init__",
        "server_capacity/aiperf/installation.py:failure",
        "server_capacity/aiperf/tokenizer.py:Tokenizer._failure_text",
        "server_capacity/metrics/aws_failures.py:first_line",
        "server_capacity/metrics/cloudwatch/log_lines.py:_lines",
        "server_capacity/provisioning/performing.py:_run",
        "server_capacity/results/text/ranking_headline.py:_shortened",
    ),
    "is of a report, whose foreign words are hidden": (
        "inference_benchmarker/cli/live/screen.py:fitted",
        "inference_benchmarker/cli/wave/replay.py:_Described.to_text",
        "inference_benchmarker/report/check.py:Check._lines",
        "inference_benchmarker/report/client_table.py:host_lines",
        "inference_benchmarker/report/screen.py:server_in_short",
        "inference_benchmarker/report/text.py:_diagnosis_section",
        "inference_benchmarker/report/text.py:_limits_section",
        "inference_benchmarker/report/text.py:_times",
        "inference_benchmarker/words/wording.py:_narrow",
        "client_capacity/worker_saturation.py:steps_table",
        "server_capacity/experiments/proof/text.py:_folded",
        "server_capacity/experiments/server_side/time_breakdown.py:time_breakdown",
        "server_capacity/planning/text.py:_folded",
        "server_capacity/results/text/model.py:folded_sentence",
        "server_capacity/results/text/capacity.py:_notes",
        "server_capacity/results/text/capacity.py:_windows",
        "server_capacity/results/text/ranking.py:_folded",
        "visualization/comparison/report.py:_fitted",
        "visualization/comparison/report.py:to_text",
        "visualization/matplotlib_charts/pictures.py:_title",
        "visualization/pareto/text.py:to_text",
        "visualization/run_page/words.py:lines",
    ),
    "is our own help": (
        "inference_benchmarker/cli/core/arguments.py:_Help._format_usage",
        "inference_benchmarker/cli/core/arguments.py:_Help._split_lines",
        "inference_benchmarker/cli/core/arguments.py:_fitted",
        "inference_benchmarker/cli/core/examples.py:_about",
        "inference_benchmarker/cli/core/examples.py:_paragraphs",
        "inference_benchmarker/cli/core/examples.py:_wrapped",
    ),
    "is read, and shown nowhere as it is": (
        "inference_benchmarker/clients/signing.py:Signer.sign",
        "inference_benchmarker/engine/hosts/preparing.py:_reply",
        "inference_benchmarker/plan/hosts.py:hosts_in_lines",
        "inference_benchmarker/words/secret_encodings.py:_values",
        "visualization/figures/aiperf_export.py:read_table",
        "inference_benchmarker/system/procfs.py:_cgroup_places",
        "inference_benchmarker/system/procfs.py:_memory_left",
        "inference_benchmarker/system/procfs.py:_sockets",
        "inference_benchmarker/system/procfs.py:_throttled_s",
        "inference_benchmarker/system/procfs.py:cpu_seconds",
    ),
    "was searched for secrets, file by file": ("inference_benchmarker/engine/pods/yaml_text.py:_lines",),
    "is on a host, where no secret is known": ("inference_benchmarker/engine/hosts/unpacking.py:_filled",),
    "waits for the next line": ("server_capacity/provisioning/maker.py:Spoken.write",),
}
"""Why no secret is legible at the places where a text is put on one line, taken apart or folded: by reason."""


def slices(source: str) -> set[tuple[str, str]]:
    """The slices of texts in a module that leave a beginning or an end: in which function, and how it is written."""
    found = _Slices()
    found.visit(ast.parse(source))
    return found.found


TEXTS = frozenset(
    (
        *(
            "text",
            "line",
            "said",
            "reason",
            "word",
            "words",
            "message",
            "label",
            "key",
            "name",
            "detail",
            "shown",
            "stderr",
        ),
        *("stdout", "clean", "error", "value", "data", "body", "event", "what", "label", "method", "listen", "log"),
    )
)
"""Names of what may be a text of somebody else."""
GIVING = frozenset(
    (
        *("str", "repr", "ascii", "decode", "read_text", "read", "join", "strip", "rstrip", "lstrip", "error_text"),
        *("plain", "plain_lines", "ordinary", "redact", "without", "splitlines", "format", "get"),
    )
)
"""Functions and methods that give a text, or its lines."""
LEAST = 20
"""Characters from which on a cut is one of a text to be shown; less are of a prefix or a date."""


class _Slices(ast.NodeVisitor):
    def __init__(self) -> None:
        self._within: list[str] = []
        self.found: set[tuple[str, str]] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._within.append(node.name)
        self.generic_visit(node)
        self._within.pop()

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815 - ast's names

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.generic_visit(node)
        part = node.slice
        if isinstance(part, ast.Slice) and _is_text(node.value) and _is_cut(part):
            self.found.add((".".join(self._within), ast.unparse(node)))


_SPLITS = ("partition", "rpartition", "split", "rsplit")
_FOLDS = ("wrap", "shorten", "folded", "wrapped", "cut")
_SOME = re.compile(r"\.\{\d*,\d{2,}\}")
_FROM_REPRLIB = ("reprlib", "Repr")


class _Apart(_Slices):
    """Finds what puts a text on one line, takes it apart at the end of lines, folds it, or keeps some of it."""

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if _is_joined(node) or _is_split(node) or _is_fold(node):
            self._add(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and _SOME.search(node.value):
            self._add(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in _FROM_REPRLIB:
            self._add(node)

    def _add(self, node: ast.expr) -> None:
        self.found.add((".".join(self._within), ast.unparse(node)))


def _is_joined(node: ast.Call) -> bool:
    """Whether it is ``" ".join(text.split())``."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(), attr="join"),
            args=[ast.Call(func=ast.Attribute(attr="split"), args=[])],
        ):
            return True
    return False


def _is_split(node: ast.Call) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="splitlines")):
            return True
        case ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant(value="\n" | "\r\n"), *_]):
            return name in _SPLITS
    return False


def _is_fold(node: ast.Call) -> bool:
    """Whether it is a call of a function that folds or cuts: of texts, with a width."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[ast.List() | ast.ListComp() | ast.Name(id="points"), *_]):
            return False  # of numbers
        case ast.Call(func=ast.Name(id=name)):
            return name in _FOLDS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="textwrap"))):
            return True
    return False


def apart(source: str) -> set[tuple[str, str]]:
    """The calls in a module that take a text apart: in which function, and how they are written."""
    found = _Apart()
    found.visit(ast.parse(source))
    return found.found


def _is_cut(part: ast.Slice) -> bool:
    """Whether a slice leaves a beginning of some length, or an end of one."""
    if part.lower is None:
        return part.upper is not None and _is_long(part.upper)
    return part.upper is None and isinstance(part.lower, ast.UnaryOp) and _is_long(part.lower.operand)


def _is_long(size: ast.expr) -> bool:
    if isinstance(size, ast.Constant):
        return isinstance(size.value, int) and size.value >= LEAST
    return any(
        (isinstance(each, ast.Name) and (each.id.isupper() or each.id in ("limit", "most", "width")))
        or (isinstance(each, ast.Constant) and isinstance(each.value, int) and each.value >= LEAST)
        for each in ast.walk(size)
    )


def _is_text(value: ast.expr) -> bool:
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in TEXTS
        case ast.Subscript(value=inner, slice=part):
            return isinstance(part, ast.Constant) or _is_text(inner)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in GIVING
    return False


@cache
def product(look: Callable[[str], set[tuple[str, str]]] = slices) -> frozenset[str]:
    """Every slice of a text in the product, or what else is looked for."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    places = {str(path.relative_to(ROOT)): path for path in paths}
    return frozenset(
        f"{place}:{where} {written}"
        for place, path in places.items()
        if not place.startswith(SERVERS)
        for where, written in look(path.read_text(encoding="utf-8"))
    )


def test_every_cut_of_a_text_is_known() -> None:
    """Foreign text is shortened by ``excerpt``, ``beginning`` and ``quoted`` of redact.py, and by ``one_line``."""
    assert sorted(product() - ALLOWED.keys()) == []


def test_no_cut_is_allowed_that_is_not_there() -> None:
    assert sorted(ALLOWED.keys() - product()) == []


def test_every_place_is_known_that_takes_a_text_apart_or_folds_it() -> None:
    """Foreign text is put on one line by ``said`` and ``one_line``, which hide it before."""
    found = {place.partition(" ")[0] for place in product(apart)}
    assert sorted(found ^ {place for places in TAKEN_APART.values() for place in places}) == []


@pytest.mark.parametrize(
    "source",
    [
        '" ".join(text.split())',
        "said.splitlines()[0]",
        'str(error).partition("\\n")',
        'text.split("\\n", 1)[0]',
        "wrap(text, 80)",
        "textwrap.shorten(text, 80)",
        "Repr()",
        "reprlib",
        're.compile("reason: (.{1,80})")',
    ],
)
def test_what_takes_a_text_apart_is_seen(source: str) -> None:
    assert len(apart(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "text[:100]",
        'f"{text[:100]!r}"',
        "str(reason)[:500]",
        "line[:_LONGEST]",
        "line[: limit - 1]",
        "error_text(error)[:_MOST]",
        'log.read_text(encoding="utf-8")[-2000:]',
        "said.splitlines()[-_LAST:]",
        "data['speed'][:100]",
        "answer.body[:_SHOWN].decode()",
        "options.reason[:60]",
    ],
)
def test_a_cut_is_seen(source: str) -> None:
    assert len(slices(source)) == 1


@pytest.mark.parametrize("source", ["text[:4]", "text[5:]", "values[:-1]", "rows[:_MAX_ROWS]", "text[at : at + 20]"])
def test_what_is_no_cut_is_not(source: str) -> None:
    assert slices(source) == set()


SECRET = "Zq9xW8vU7tS6rQ5pN4mK3jH2gF1dS0aBvodlmrgqBvodl26p22ED1xkpvmrgqZvmrgqBvodl26p22ED1xkQvmr"
LINES = base64.encodebytes(SECRET.encode()).decode()
SPELLINGS = {
    "plain": (SECRET, SECRET),
    "base64 on lines": (LINES, LINES.replace("\n", "")),
    "hexadecimal": (SECRET.encode().hex(), SECRET.encode().hex()),
}
LEGIBLE = 8
"""Characters of a secret that tell something of it; of base64, up to two stay at either end."""


def _counted(text: str) -> object:
    counts = LineCounts()
    counts.add("stream", f"ERROR {text}")
    return counts.most_frequent()


def _pushed(text: str) -> object:
    reason = push._Reason()
    try:
        logging.getLogger("opentelemetry.exporter").error("Failed to export, code: 400, reason: %s", text)
    finally:
        reason.close()
    return reason.text


def _raised(act: Callable[[], object]) -> object:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - of any kind: its text is looked at
        act()
    return raised.value


def _response(**fields: Any) -> Response:
    return Response(**fields)


def _of_a_job(text: str) -> object:
    return recommender.recommender_of("job", {"FailureReason": text}).reason


def _activity(text: str) -> object:
    return [
        autoscaling._of_activity({"Description": text, "StatusCode": status, "StatusMessage": text}, 0.0)
        for status in ("Failed", "Successful")
    ]


def _on_one_line(text: str) -> str:
    return text.replace("\n", " ")


CUTS: dict[str, Callable[[str], object]] = {
    "beginning": lambda text: beginning(text, 100),
    "excerpt": lambda text: excerpt(text, 100),
    "quoted": quoted,
    "written": lambda text: written({"key": text}),
    "a line": lambda text: one_line(text, 100),
    "what is said": said,
    "a part": lambda text: part(f"first\n{text}\nlast", 6, 90),
    "the user's error": lambda text: describe_error(Path("file.py"), "importing it", ValueError("x" * 19_900 + text)),
    "a key of errors": lambda text: error_key(type("E", (Exception,), {"_benchmark_detail": "x" * 19_900 + text})()),
    "a short key of errors": lambda text: redact(error_key(type("E", (Exception,), {"_benchmark_detail": text})())),
    "AWS": lambda text: first_line(ValueError(text)),
    "a host out of resources": lambda text: out_of_resources(
        LostProcessError("it ended", f"{text} Cannot allocate memory")
    ),
    "Prometheus": lambda text: Web(Credentials(), {}).hide(text),
    "a line of a metrics page": lambda text: _raised(lambda: parse(f"up{{a= {text}")),
    "each line of a metrics page": lambda text: [
        parse(f"a 1\nup{{a= {text}", {"a", name}).broken for name in ("b", "up")
    ],
    "a collector": _pushed,
    "an encoding": lambda text: _raised(lambda: decoder_of(f"gzip, {text}")),
    "a scaling activity": _activity,
    "a recommender": _of_a_job,
    "a name of a metric": lambda text: _raised(lambda: _response(metrics={text: 1.0})),
    "a value of a metric": lambda text: _raised(lambda: _response(metrics={"a": text})),
    "metrics": lambda text: _raised(lambda: _response(metrics=[text])),
    "a count": lambda text: _raised(lambda: _response(tokens_in=text)),
    "a server's body": lambda text: shown(text.encode(), 100),
    "a log group": _counted,
    "an answer that is not as expected": lambda text: _Said(text, "str").shown,
    "an answer in bytes": lambda text: _Said(text.encode(), "bytes").shown,
    "a host's words": lambda text: _last_of(text, 2),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_no_half_of_a_secret_is_left_wherever_the_cut_is(
    cut: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", SECRET)
    for spelling, (written_so, legible) in SPELLINGS.items():
        parts = {legible[at : at + LEGIBLE] for at in range(len(legible) - LEGIBLE + 1)}
        for before in (0, 17, 60, 79, 90, 140, 181, 199, 260):
            text = str(cut("x" * before + " " + written_so + "y" * 400))
            with case(spelling, before, text):
                assert [each for each in parts if each in text] == []
