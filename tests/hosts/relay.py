"""A relay of TCP that can be slow and that can be cut without a word."""

from __future__ import annotations

import asyncio
import random
import threading
from contextlib import suppress

_PIECE = 1 << 16
_WAITING_PIECES = 64  # more of them stop the sender, as a full path does


class Relay:
    """Stands before ``target`` (address, port); listens on ``address`` at ``port`` from the start until ``close``.

    A thread of its own forwards. Its timers are as good as an event loop's: what is delayed comes up to 1 ms later.
    """

    def __init__(self, address: str, target: tuple[str, int]) -> None:
        self._target = target
        self._delay_s = self._jitter_s = 0.0
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._thread.start()
        listening = asyncio.start_server(self._join, address, 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.port: int = self._server.sockets[0].getsockname()[1]

    def delay(self, delay_s: float, jitter_s: float = 0.0) -> None:
        """From now on each piece comes ``delay_s`` later, each way, and up to ``jitter_s`` more; order stays."""
        self._delay_s, self._jitter_s = delay_s, jitter_s

    def cut(self) -> None:
        """Nothing comes through any more; no connection is closed, and what was sent is kept until ``mend``."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def mend(self) -> None:
        """End a cut."""
        self._loop.call_soon_threadsafe(self._flows.set)

    def close(self) -> None:
        """Close every connection; a second time does nothing."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            await self._flows.wait()
            there, back = await asyncio.open_connection(*self._target)
            writers.append(back)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._forward(reader, back))
                both.create_task(self._forward(there, writer))
        except* (OSError, asyncio.CancelledError):
            pass  # the connection is over, and its two ends hear of it below
        finally:
            for end in writers:
                end.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_WAITING_PIECES)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._take(reader, pieces))
            both.create_task(self._give(pieces, writer))

    async def _take(self, reader: asyncio.StreamReader, pieces: asyncio.Queue[tuple[float, bytes]]) -> None:
        due = 0.0
        data = b"-"
        while data:
            data = await reader.read(_PIECE)
            late = self._delay_s + random.uniform(0, self._jitter_s)
            due = max(due, self._loop.time() + late)
            await pieces.put((due, data))

    async def _give(self, pieces: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            due, data = await pieces.get()
            await asyncio.sleep(due - self._loop.time())
            await self._flows.wait()
            if not data:
                with suppress(OSError):
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()
