"""The shipped examples against other people's servers: what the wave counts and times, and what they and the wire do.

Each server is installed into an environment of its own on first use (``server_environments.py``), a long way the first
time: PyTorch is installed and llama.cpp compiled. They serve a tiny model of random weights, or a sum; nothing comes
from a hub. A proxy between the two stamps the bytes, so that its own waking up is in what lies above the wire.
"""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly
from tests.performance.server_catalogue import SERVERS
from tests.performance.wire import Wire
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tests.performance.measure import Wave
    from tests.performance.server_process import Case, Counts, Running, Server
    from tests.performance.wire import Exchange

_SETTLE_S = 0.5  # until a server has counted what it has answered
_MOST_MS = 1.0  # above the wire
_HEAD = (
    *("server", "example", "load", "sent", "ok", "server's count", "tokens", "server's tokens"),
    *("connections", "above the wire"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What one wave came to, beside what the server and the wire say."""

    server: str
    case: Case
    wave: Wave
    counted: Counts
    exchanges: list[Exchange]

    @property
    def tokens(self) -> int | None:
        """Output tokens as the wave reports them: the server's usage, else the pieces that came."""
        for column in ("tokens_out", "chunks"):
            reported = self.wave.requests[column]
            if reported.notna().any():
                return int(reported.sum())
        return None

    @property
    def served_tokens(self) -> int | None:
        """As the server counted them, else as the wire saw its usage."""
        if self.counted.tokens is not None:
            return self.counted.tokens
        reported = [exchange.tokens_out for exchange in self.exchanges]
        return sum(filter(None, reported)) if any(reported) else None

    @property
    def above_ms(self) -> list[float]:
        """Of each request: TTFT, or latency of a whole answer, more than on the wire; nothing where none was read."""
        requests, exchanges = self.wave.requests, self.exchanges
        if len(requests) != len(exchanges):
            return []
        streams = requests["first_token"].notna().any()
        ended = requests["first_token" if streams else "done"]
        ours = (ended - requests["sent"])[requests["sent"].argsort()]
        theirs = [
            each.ttft_ns if streams else each.pieces[-1][0] - each.arrived_ns for each in exchanges if each.pieces
        ]
        if len(theirs) != len(ours) or None in theirs:
            return []
        return list((ours.to_numpy(dtype=np.float64) - np.array(theirs, dtype=np.float64)) / measure.NS_PER_MS)

    @property
    def connections(self) -> int:
        """How many were opened, as the wire saw them."""
        return sum(exchange.opened for exchange in self.exchanges)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Requests sent and succeeded as the wave tells them, and as the server counted them."""
        return self.wave.ledger("sent"), self.wave.ledger("ok"), self.counted.requests

    @property
    def cells(self) -> tuple[str, ...]:
        """Its line of the table."""
        case, above = self.case, self.above_ms
        load = f"{case.rate:g}/s" if case.concurrency is None else f"{case.concurrency} at once"
        ends = f"{np.median(above):.2f} ms, {max(above):.2f} at most" if above else "-"
        tokens = ("-" if count is None else f"{count:,}" for count in (self.tokens, self.served_tokens))
        connections = str(self.connections) if self.exchanges else "-"
        return self.server, case.example, load, *map(str, self.counts), *tokens, connections, ends

    def figures(self) -> Iterator[Figure]:
        """What must hold; a connection that is opened is in the time above the wire, which then has no target."""
        name = " ".join(self.cells[:3])
        off = max(self.counts) - min(self.counts) + abs((self.tokens or 0) - (self.served_tokens or 0))
        yield Figure(f"{name}: requests and tokens that differ", off, "", exactly(0))
        if self.above_ms:
            ours = "openai_package" not in self.case.example
            target = below(_MOST_MS) if ours and self.connections < len(self.exchanges) / 2 else None
            yield Figure(f"{name}: above the wire, p50", float(np.median(self.above_ms)), "ms", target)


def edited(example: str, constants: Mapping[str, Any]) -> str:
    """The example's text with other values of the constants at its top, as a user edits it."""
    text = (FACTORIES / f"{example}.py").read_text(encoding="utf-8")
    for name, value in constants.items():
        text, found = re.subn(rf"^{name} = .*$", f"{name} = {value!r}", text, count=1, flags=re.MULTILINE)
        if not found:
            raise RuntimeError(f"{example} has no constant {name}")
    return text


def send(case: Case, running: Running, seconds: float) -> tuple[Wave, list[Exchange]]:
    """A wave of the example, through the proxy where it speaks HTTP/1.1."""
    address = "SERVER" if case.example.startswith("http/") else "URL"
    how_long = round(seconds * case.rate)
    load = ("--client-rps", f"{case.rate:g}") if case.concurrency is None else ("--concurrency", str(case.concurrency))
    with Wire(running.port) as wire:
        place = {"ADDRESS": f"127.0.0.1:{running.port + 1}"} if case.grpc else {address: wire.url}
        copy = running.folder / "my_endpoint.py"
        copy.write_text(edited(case.example, {**place, **case.edits}), encoding="utf-8")
        wave = measure.run(copy, wire.url, 0, *load, "--num-requests", str(how_long))
        return wave, wire.take()


def measured(server: Server, folder: Path, seconds: float) -> Iterator[Row]:
    """A wave of each of the server's examples."""
    name = f"{server.name} {server.version()}"
    with server.running(folder) as running:
        for case in server.cases:
            before = case.counts(running)
            wave, exchanges = send(case, running, seconds)
            time.sleep(_SETTLE_S)
            yield Row(name, case, wave, case.counts(running).since(before), exchanges)


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = [_HEAD, ("---",) * len(_HEAD), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figures(seconds: float) -> list[Figure]:
    """Every server in turn; the table of all is printed before the figures."""
    with tempfile.TemporaryDirectory(prefix="real_servers_") as directory:
        folders = (Path(directory) / str(number) for number, _ in enumerate(SERVERS))
        rows = [
            row for server, folder in zip(SERVERS, folders, strict=True) for row in measured(server, folder, seconds)
        ]
    print(table(rows), end="\n\n", flush=True)
    return [figure for row in rows for figure in row.figures()]


PROGRAM = Program("examples against other people's servers", figures, seconds=15, quick_seconds=4)

if __name__ == "__main__":
    PROGRAM.main()
