"""The exchanges with the clock of a host over a wave, as they come in; what they say is computed by ``clocks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.clocks import EXCHANGES, Exchange, best, clock_offset

if TYPE_CHECKING:
    from inference_benchmarker.engine.hosts.clocks import ClockOffset
    from inference_benchmarker.engine.hosts.transport import Message

_LEAST_NS = 500_000_000  # over which the two clocks of a host are compared: a look at both is good to some µs
_PPM = 1e6
_BURST_NS = 2_000_000_000  # from its first answer on, after which a burst over a long way is over, with a few of them
_FEW = 4
_CUT_NS = 1_000_000_000  # a round trip that no way has: the link was cut meanwhile, and the burst begins anew, once
_CLOSE_NS = 1_000_000  # the round trip of a host nearby; where each took longer, as on a busy machine, there are more
_MORE_NS = 500_000_000  # of them, for so long from the first answer on
_DRIFT_KNOWN = 100e-6  # to which a drift is known: two oscillators differ by 78 ppm in the median


class ClockWatch:
    """Holds the exchanges before a wave, during it and after it.

    ``burst`` begins those before, a second one those after. ``left``: how many of a burst are to come.
    """

    def __init__(self) -> None:
        self._bursts: list[list[Exchange]] = []
        self._during: list[Exchange] = []
        self._first: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        self._counts_from = 0
        self._was_cut = False
        self.left = 0

    def burst(self) -> None:
        """The next exchanges are made one after the other."""
        self._bursts.append([])
        self._was_cut = False
        self.left = EXCHANGES

    def take(self, answer: Message, returned: int) -> bool:
        """Take the answer to a question that came back then; True where the next question is to follow at once.

        Questions that were on the way when the first answer of a burst came, or the first one after a cut, do not
        count: behind a link that was cut they come back together, and hold each other up.
        """
        exchange = Exchange(answer["asked"], answer["heard"], answer["answered"], returned)
        self._last = (answer["answered"], answer["raw"])
        self._first = self._first or self._last
        if self.left:
            burst = self._bursts[-1]
            burst.append(exchange)
            is_cut = exchange.round_trip_ns > _CUT_NS and exchange.asked >= self._counts_from and not self._was_cut
            if len(burst) == 1 or is_cut:
                self._was_cut = is_cut
                self._counts_from = returned
            elif exchange.asked < self._counts_from:
                return False
            self.left -= 1
            elapsed = returned - self._counts_from
            if len(burst) >= _FEW and elapsed > _BURST_NS:
                self.left = 0
            elif not self.left and elapsed < _MORE_NS and best(burst).round_trip_ns > _CLOSE_NS:
                self.left = 1
        elif self._bursts:
            self._during.append(exchange)
        return self.left > 0

    def offset(self) -> ClockOffset | None:
        """The offset that the exchanges say so far; None before the first burst is whole."""
        before, *after = self._bursts or [[]]
        if not before or (self.left and not after):
            return None
        return clock_offset(before, self._during, after[-1] if after else ())

    def drift_ppm(self) -> float | None:
        """By how much it gains on ours; None while that is uncertain by more than the drift of any good clock."""
        offset = self.offset()
        if offset is None or offset.drift is None or len(self._bursts) < 2 or not self._bursts[-1]:
            return None
        elapsed = best(self._bursts[-1]).at_ns - offset.at_ns
        return _PPM * offset.drift if 2 * offset.uncertainty_ns < _DRIFT_KNOWN * elapsed else None

    def slew_ppm(self) -> float | None:
        """By how much CLOCK_MONOTONIC of that host gains on its CLOCK_MONOTONIC_RAW; None within the first moments."""
        if self._first is None or self._last is None or self._last[1] - self._first[1] < _LEAST_NS:
            return None
        gained = (self._last[0] - self._first[0]) - (self._last[1] - self._first[1])
        return _PPM * gained / (self._last[1] - self._first[1])
