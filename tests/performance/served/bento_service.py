"""A service for BentoML: the sum of some numbers."""

from __future__ import annotations

import bentoml


@bentoml.service(traffic={"timeout": 20}, workers=1)
class Sums:
    """What the http example sends is added up."""

    @bentoml.api(route="/invocations")
    def sums(self, id: int, features: list[float]) -> dict[str, float]:  # noqa: A002 - the payload's key
        """One request."""
        return {"id": id, "sum": sum(features)}
