"""The hosts of a wave as its spool reports them: what they are, their samples, and their clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.typed import require
from inference_benchmarker.facts.client_samples import Sample, Samples
from inference_benchmarker.facts.client_use import HostUse
from inference_benchmarker.facts.hosts import HostClock, HostFacts
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOST_FIELDS: dict[str, Any] = {
    "name": str,
    "workers": list[int],
    "versions": dict[str, str],
    "constants": dict[str, Any],
    "clock": dict[str, Any] | None,
    "lost": str | None,
}
_OF_A_NODE = ("node", "zone", "instance_type")  # which earlier versions did not write


class HostStates:
    """Takes what the primary writes down of hosts; of what it writes again the last holds."""

    def __init__(self) -> None:
        self._reported: list[dict[str, Any]] = []
        self._ahead_ns: list[int | None] = []
        self._samples: dict[str, Samples] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Take what is known of the hosts, or some samples of one and its workers."""
        if event["event"] == "hosts":
            self._take_hosts(event["hosts"], event["ahead_ns"])
        else:
            self._take_samples(event["host"], event["samples"])

    def _take_hosts(self, hosts: list[dict[str, Any]], ahead_ns: list[int | None]) -> None:
        """``ahead_ns``: by how much each worker's reports were ahead of their arrival."""
        require(ahead_ns, list[int | None], "ahead_ns")
        for host in hosts:
            for key, kind in _HOST_FIELDS.items():
                require(host[key], kind, f"host.{key}")
            for key in _OF_A_NODE:
                require(host.get(key), str | None, f"host.{key}")
        self._reported, self._ahead_ns = hosts, ahead_ns

    def _take_samples(self, host: str, samples: list[list[Any]]) -> None:
        found = [Sample(*values) for values in samples]
        require(found, list[Sample], "samples")
        of_host = self._samples.setdefault(host, Samples())
        for sample in found:
            of_host.add(sample)

    def name_of(self, worker: int) -> str | None:
        """The host of a worker; None where it is not known, as of a wave without hosts."""
        return next((host["name"] for host in self._reported if worker in host["workers"]), None)

    def facts(self, first_s: float, last_s: float, here: HostUse | None) -> tuple[HostFacts, ...]:
        """The facts of each host, with its use between two instants; ``here``: that of this host.

        ValueError, TypeError or KeyError where they are none that a wave leaves.
        """
        return tuple(self._facts(host, first_s, last_s, here) for host in self._reported)

    def _facts(self, fields: Mapping[str, Any], first_s: float, last_s: float, here: HostUse | None) -> HostFacts:
        use = here
        if fields["constants"]:
            samples = self._samples.get(fields["name"], Samples())
            use = HostUse.of(samples.within(first_s, last_s), **fields["constants"])
        clock = None if fields["clock"] is None else HostClock(**fields["clock"])
        if clock is not None:
            clock = HostClock(**{**fields["clock"], "ahead_s": self._ahead_s(fields["workers"], clock.uncertainty_s)})
            require(clock, HostClock, "clock")
        of_host = (fields["name"], tuple(fields["workers"]), fields["versions"], use, clock, fields["lost"])
        return HostFacts(*of_host, *(fields.get(key) for key in _OF_A_NODE))

    def _ahead_s(self, workers: list[int], uncertainty_s: float) -> float:
        ahead = [found for worker in workers if (found := self._ahead_ns[worker]) is not None]
        return max(max(ahead, default=0) / NS - uncertainty_s, 0.0)
