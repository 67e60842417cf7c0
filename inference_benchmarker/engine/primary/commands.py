"""The commands of the parent, as the primary obeys them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.locust.runtime import CHANGE
from inference_benchmarker.engine.primary.steering import Steering
from inference_benchmarker.wave.spool.spool import ABORTED, PLANNED

if TYPE_CHECKING:
    from inference_benchmarker.engine.primary.clocks import Clocks
    from inference_benchmarker.engine.primary.ending import Ending
    from inference_benchmarker.engine.primary.launcher_channel import Parent
    from inference_benchmarker.engine.primary.logbook import Logbook
    from inference_benchmarker.engine.primary.members import Members
    from inference_benchmarker.engine.primary.transport import Transport
    from inference_benchmarker.plan.plan import WavePlan


class Commands:
    """Obeys the parent, whose end is an abort.

    It says ``rate R`` or ``users N`` and ``end`` where the wave is steered, ``stop``, ``abort``, ``aborted WHY``
    (JSON), ``lost N``, and ``ping``, which is answered; of other hosts ``clocks`` and ``samples`` (JSON).
    """

    def __init__(
        self,
        plan: WavePlan,
        parent: Parent,
        *,
        members: Members,
        ending: Ending,
        transport: Transport,
        logbook: Logbook,
        clocks: Clocks,
    ) -> None:
        self._parent = parent
        self._members = members
        self._ending = ending
        self._transport = transport
        self._logbook = logbook
        self._clocks = clocks
        self._steering = Steering(plan)

    def obey(self) -> None:
        """Until the parent is gone."""
        for word, rest in self._parent.commands():
            match word:
                case "ping":
                    self._parent.tell("alive")
                case "lost":
                    self._members.lose(int(rest))
                case "rate" | "users":
                    self._change(rest)
                case "end":
                    self._ending.stop(PLANNED)
                case "stop":
                    self._ending.stop()
                case "clocks":
                    self._clocks.take(json.loads(rest))
                case "samples":
                    self._note_samples(**json.loads(rest))
                case "aborted":
                    self._ending.stop(ABORTED, aborted=json.loads(rest))
                case _:
                    self._ending.abort()
        self._ending.abort()

    def _note_samples(self, host: str, samples: list[Any]) -> None:
        if self._logbook.is_begun:
            self._logbook.note(event="host_samples", host=host, samples=samples)

    def _change(self, text: str) -> None:
        """Another rate or number of users, as the parent's pilot asks: written down before any worker hears of it."""
        if not self._logbook.is_begun or self._ending.is_asked:
            return
        try:
            change = self._steering.change(text, self._logbook.now() + self._clocks.lead_ns)
        except ValueError as error:
            self._parent.tell("unchanged", reason=str(error))
            return
        if change is not None:
            facts = {"at": change.at_ns, "rate": str(change.rate)}
            self._logbook.write(event="rate", **facts)
            self._transport.send(CHANGE, facts)
