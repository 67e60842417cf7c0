"""Waves in mid-run as the live view sees them: given second by second, drawn on a terminal of any size."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO

from inference_benchmarker import Bounds, OpenLoop, Stage
from inference_benchmarker.cli.live.live_lines import LiveFigure, rows
from inference_benchmarker.cli.live.progress import PanelView
from inference_benchmarker.cli.live.screen import Screen
from inference_benchmarker.facts.server_metric import LiveMetric
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from tests.waves import MS, closed_plan, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

STEADY = open_plan("200", "60")
STAGES = "calm=50:20s, 50..400:30s, spike=600:15s, 400..0:10s"
STAGED = replace(STEADY, load=OpenLoop(stages=tuple(map(Stage.parse, STAGES.split(", ")))), bounds=Bounds(Decimal(75)))
STEERED = replace(STEADY, load=OpenLoop(Decimal(100), steered=True), bounds=Bounds())


def around(ms: float, count: int) -> list[int]:
    return Histogram.of(round(ms * MS * math.exp(0.3 * math.sin(9 * number))) for number in range(count)).to_json()


class Scene:
    """A wave so far, of seconds that are given one by one."""

    def __init__(self, plan: WavePlan) -> None:
        self.plan = plan
        self.state = SpoolState([], 1)
        self.sent = self.over = self.seconds = 0

    def second(self, sent: int, ok: int, *, ms: float = 40, lag_ms: float = 0.2, **more: Any) -> Scene:
        """One more second, latency and lag of which are around so many ms."""
        more = {"ended": min(ok + sum(more.get("failed", [])[1::2]), sent), **more}
        times = {"latency": around(ms, ok), "response_time": around(ms + lag_ms, ok), "lag": around(lag_ms, sent)}
        names = ["", "HttpError 503", "ReadTimeout"]
        self.state.feed.merge([{"s": self.seconds, "n": 0, "sent": sent, "ok": ok, **times, **more}], names)
        self.seconds += 1
        failed = self.state.feed.failed.total()
        self.sent += sent
        self.over += ok
        self.state.workers[0].ledger = Ledger(sent=self.sent, ok=self.over, failed=failed)
        self.state.workers[0].at = self.seconds * NS
        return self

    def drawn(self, width: int, foot: str = "", *, colours: bool = False) -> str:
        """Its panel as it is written on a terminal."""
        stream = io.StringIO()
        view = PanelView(self.plan, Sized(stream, width, colours=colours), [Server()] if foot else [])
        view.update(self.state, self.seconds * NS)
        return stream.getvalue()

    def lines(self, width: int, foot: str = "") -> list[str]:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.drawn(width, foot)).strip("\r").splitlines()

    def value(self, name: str) -> str:
        return next(row.value for row in self.rows() if row.name == name)

    def rows(self) -> list[LiveFigure]:
        return rows(self.plan, self.state)


class Sized(Screen):
    """A terminal of so many columns."""

    def __init__(self, stream: TextIO, width: int, height: int = 50, *, colours: bool = False) -> None:
        super().__init__(stream, colours=colours)
        self.width, self.height = width, height

    def size(self) -> tuple[int, int]:
        return self.width, self.height


class Server:
    """A source with two metrics of the moment."""

    def latest(self) -> list[LiveMetric]:
        return [LiveMetric("vllm:num_requests_waiting", 12.0), LiveMetric("queue_time", 0.0312, "Seconds")]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} asks or waits")


def steady() -> Scene:
    scene = Scene(STEADY)
    for second in range(40):
        scene.second(200, 198 if second else 180, ms=40 + 5 * math.sin(second))
    return scene


def staged() -> Scene:
    scene = Scene(STAGED)
    for second in range(58):
        rate = round(STAGED.load.rate_at(second + 0.5)) if isinstance(STAGED.load, OpenLoop) else 0
        scene.second(
            rate, min(rate, 420), ms=40 if rate < 420 else 60 * (second - 40), failed=[1, 1] if rate > 400 else []
        )
    return scene


def behind() -> Scene:
    """The client falls behind, and errors come."""
    scene = Scene(STEADY)
    for second in range(30):
        scene.second(150, 100, ms=40 + 2 * second, lag_ms=9 + 3 * second, failed=[1, 30, 2, 5])
    return scene


def streamed() -> Scene:
    scene = Scene(closed_plan(16, "60", None))
    for second in range(50):
        pieces: dict[str, Any] = {
            "ttft": around(120 + second, 20),
            "itl": around(18, 600),
            "tpot": around(18, 20),
            "tokens": 640 + 40 * (second % 5),
        }
        scene.second(20, 20, ms=900, **pieces)
    return scene


def nothing() -> Scene:
    return Scene(STEADY)


SCENES = {"steady": steady, "staged": staged, "behind": behind, "streamed": streamed, "nothing": nothing}
