"""An address that a request was sent to, and what kind of network it is in. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".aws", ".api.aws")
_WORDS = {
    "loopback": "loopback: this host",
    "private": "private: a network of your own",
    "vpc_endpoint": "private: a VPC endpoint, or a network of your own",
    "public": "public: over the internet, or within AWS's own network from there",
}


@dataclass(frozen=True, slots=True)
class Address:
    """A connection's other end: its address and port, and the name that was looked up for it, if one was."""

    address: str
    port: int
    name: str | None = None

    @property
    def kind(self) -> str:
        """``loopback``, ``private``, ``vpc_endpoint`` (private, under a name of AWS's) or ``public``."""
        place = ip_address(self.address.partition("%")[0])
        place = getattr(place, "ipv4_mapped", None) or place
        if place.is_loopback:
            return "loopback"
        if place.is_global:
            return "public"
        return "vpc_endpoint" if self.name and self.name.endswith(_AWS) else "private"

    def __str__(self) -> str:
        shown = f"[{self.address}]" if ":" in self.address else self.address
        name = f"{self.name} at " if self.name else ""
        return f"{name}{shown}:{self.port} ({_WORDS[self.kind]})"

    def to_json(self) -> dict[str, Any]:
        """Each fact by its name."""
        return {"address": self.address, "port": self.port, "name": self.name, "kind": self.kind}
