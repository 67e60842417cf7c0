"""The shipped examples of sessions, judged by what the embedded endpoint saw of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.embedded.running import EndpointConfig, start
from tests.shipped import FACTORIES, run_example

if TYPE_CHECKING:
    from pathlib import Path

# The flags that make an example quick, the routes that its requests must arrive at, and the labels of its turns.
EXAMPLES: dict[str, tuple[tuple[str, ...], set[str], set[str]]] = {
    "factories_by_url": (("TURNS=3", "SHARED_PREFIX=50:groups=3"), {"/v1/chat/completions"}, set()),
    "factories_chat": (("THINK_S=0.05",), {"/v1/chat/completions"}, set()),
    "factories_agent": (("TOOL_S=0.01", "SLOW_S=0.1"), {"/v1/chat/completions"}, {"plan", "step", "summary"}),
    "factories_recorded": (("OUTPUT_TOKENS=5",), {"/v1/chat/completions"}, set()),
    "factories_rag": (("THINK_S=0.05", "DOCUMENT_WORDS=300"), {"/v1/chat/completions"}, set()),
    "factories_workflow": (("READS_S=0.05",), {"/invocations", "/ping"}, {"log in", "ask", "fetch"}),
}
FEW = ("--client-rps", "20", "--num-requests", "10")


def test_no_example_of_sessions_is_forgotten() -> None:
    assert {path.stem for path in (FACTORIES / "conversations").glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "factories_chat")) for name in EXAMPLES]
)
def test_an_example_of_sessions_works_against_the_embedded_endpoint(name: str, tmp_path: Path) -> None:
    settings, routes, labels = EXAMPLES[name]
    flags = [flag for setting in settings for flag in ("--set", setting)]
    with start(EndpointConfig(service_s=0.001)) as endpoint:
        wave = run_example(f"conversations/{name}", endpoint.url, tmp_path, *flags, load=FEW)
        log = Counter(endpoint.arrivals()["route"])
    reported, ledger = wave.summary["sessions"], wave.summary["ledger"]
    assert (reported["started"], reported["completed"], ledger["failed"]) == (10, 10, 0), wave.summary["errors"]
    assert ledger["sent"] >= 20
    assert set(log) <= routes
    if "/ping" not in routes:
        assert log.total() == ledger["sent"]
        contexts = [row["context_tokens"] for row in reported["by_turn"]]
        assert contexts == sorted(contexts), "each turn sends what was said before it"
    assert {row["label"] for row in wave.summary["labels"]} - {"demo"} == labels
