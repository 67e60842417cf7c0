"""A service for BentoML: the sum of some numbers, or as a stream some words."""

import asyncio
from collections.abc import AsyncGenerator

import bentoml


@bentoml.service(traffic={"timeout": 20}, workers=1)
class Sums:
    """Answers what the http examples send."""

    @bentoml.api(route="/invocations")
    def sums(self, id: int, features: list[float]) -> dict[str, float]:  # noqa: A002 - the payload's key
        """One request."""
        return {"id": id, "sum": sum(features)}

    @bentoml.api(route="/stream")
    async def words(self, id: int, prompt: str) -> AsyncGenerator[str, None]:  # noqa: A002 - the payload's key
        """One stream of server-sent events: the words of the prompt."""
        for word in prompt.split():
            await asyncio.sleep(0.01)
            yield f'data: {{"text": "{id}: {word} "}}\n\n'
        yield "data: [DONE]\n\n"
