"""A program: LitServe, a model server of others, with two models that note what reached them.

/invocations adds numbers up; /v1/chat/completions, by LitServe's OpenAISpec, says some words. It is started as
``python -m tests.lit_models PORT FOLDER``; the notes are JSON lines in the folder.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import litserve

if TYPE_CHECKING:
    from collections.abc import Iterator

PAUSE_S = 0.002  # before each word


class Sums(litserve.LitAPI):
    """The sum of each payload's features."""

    def setup(self, device: str) -> None:
        """There is no model to load."""

    def predict(self, request: dict[str, Any]) -> dict[str, Any]:
        """Note the payload, and answer."""
        note("sums", **request)
        return {"id": request["id"], "sum": sum(request["features"])}


class Words(litserve.LitAPI):
    """Answers of one to five words, in turn."""

    def setup(self, device: str) -> None:  # noqa: ARG002 - there is no device
        """There is no model to load."""
        self._turn = count()

    def predict(self, request: Any) -> Iterator[dict[str, Any]]:
        """Note the request, and the instant before which no word leaves; the last word comes with the usage."""
        arrived, prompt = time.monotonic_ns(), request.messages[0].content
        words = next(self._turn) % 5 + 1
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": words}
        first = arrived + int(PAUSE_S * 1e9)
        note("words", prompt=prompt, stream=request.stream, arrived=arrived, first=first, **usage)
        for word in range(words):
            time.sleep(PAUSE_S)
            yield {"role": "assistant", "content": f"word{word} ", **(usage if word == words - 1 else {})}


def note(model: str, **row: Any) -> None:
    with (Path(sys.argv[2]) / model).open("a") as log:
        log.write(json.dumps(row) + "\n")


def main() -> None:
    models = [Sums(api_path="/invocations"), Words(spec=litserve.OpenAISpec())]
    server = litserve.LitServer(models, accelerator="cpu")
    server.run(
        host="127.0.0.1", port=int(sys.argv[1]), num_api_servers=1, generate_client_file=False, log_level="warning"
    )


if __name__ == "__main__":
    main()
