"""``--interactive``: a person at the keys changes the rate of the wave."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.engine.pilot import End, Order, Rate
from inference_benchmarker.plan.load import MAX_STAGES
from inference_benchmarker.plan.stage import LEAST_RATE, MAX_RATE
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.wave.spool.spool_state import SpoolState

MERGED_NS = NS // 20
HINT_NS = 5 * NS
MEANING = "Keys: + and - by 10%, 2 doubles, / halves, q ends."
_TENTH = Decimal("1.1")
_FACTORS = {"+": _TENTH, "=": _TENTH, "-": 1 / _TENTH, "_": 1 / _TENTH, "2": Decimal(2), "/": Decimal("0.5")}


class KeyPilot:
    """Answers each key at once: what it did, or why nothing, stands in the line that is shown.

    A key acts at once, before the start at the start; those that follow within 50 ms are one change. - takes back
    what + did.
    """

    def __init__(self, pressed: Callable[[], str], rate: Decimal, show: Callable[[str], None]) -> None:
        self._pressed = pressed
        self._show = show
        self._wanted = self._ordered = rate
        self._changes = 0
        self._next_ns = -(1 << 62)
        self._hint = ""
        self._hint_until = 0
        self._ended = False
        self._shown = ""

    def orders(self, _spool_state: SpoolState, now_ns: int) -> list[Order]:
        """The orders of the keys that were pressed."""
        if now_ns >= self._hint_until:
            self._hint = ""
        pressed = (self._press(key, now_ns) for key in self._keys())
        found: list[Order] = [order for order in pressed if order is not None]
        if not self._ended and self._wanted != self._ordered and now_ns >= max(self._next_ns, 0):
            found.append(self._change(now_ns))
        self._answer()
        return found

    def _keys(self) -> str:
        """Those that were pressed; where the terminal is gone, nobody can end the wave any more, so it ends."""
        try:
            return self._pressed()
        except EOFError:
            return "q"

    @property
    def line(self) -> str:
        """The rate that is wanted, and what the keys mean or a word on the last one."""
        return self._hint if self._ended else f"Target {self._wanted:,f}/s. {self._hint or MEANING}"

    def _press(self, key: str, now_ns: int) -> End | None:
        if self._ended:
            return None
        if key in ("q", "Q"):
            self._ended = True
            self._tell("Ending: waiting for requests in flight.", NS << 30)
            return End()
        if key not in _FACTORS:
            self._tell(f"{key if key.isprintable() else 'That'} has no meaning here; keys are + - 2 / q.", now_ns)
        elif self._changes == MAX_STAGES - 1:
            self._tell(f"It was changed {self._changes:,} times, which is the limit.", now_ns)
        else:
            self._want(rounded(self._wanted * _FACTORS[key]), now_ns)
        return None

    def _want(self, rate: Decimal, now_ns: int) -> None:
        self._wanted = min(max(rate, LEAST_RATE), Decimal(MAX_RATE))
        self._hint = ""
        if now_ns < 0:
            self._tell("It applies from the start of the wave.", now_ns)
        if rate != self._wanted:
            self._tell("This is the maximum." if rate > self._wanted else "This is the minimum.", now_ns)

    def _change(self, now_ns: int) -> Rate:
        self._ordered = self._wanted
        self._changes += 1
        self._next_ns = now_ns + MERGED_NS
        return Rate(self._wanted)

    def _tell(self, hint: str, now_ns: int) -> None:
        self._hint, self._hint_until = hint, now_ns + HINT_NS

    def _answer(self) -> None:
        if self.line != self._shown:
            self._shown = self.line
            try:
                self._show(self._shown)
            except Exception:  # a line that cannot be shown is no reason to lose a wave
                self._show = _nobody


def rounded(rate: Decimal) -> Decimal:
    """A rate as a person would say it: three significant digits, and no more than a millionth of a request."""
    return (Decimal(f"{rate:.2e}").quantize(LEAST_RATE) if rate < 1 else Decimal(f"{rate:.2e}")).normalize() + 0


def _nobody(_: str) -> None:
    """Nobody looks any more."""
