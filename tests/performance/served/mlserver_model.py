"""A model for MLServer: the mean of a tensor's rows, or as a stream some words; it notes what reached it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, InferenceResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WORDS = 8


class Tiny(MLModel):
    """MLServer makes it, from model-settings.json."""

    async def load(self) -> bool:
        """There is nothing to load."""
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer ModelInfer and /infer."""
        tensor = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        _note(kind="infer", shape=tensor.shape)
        return InferenceResponse(
            model_name=self.name, outputs=[NumpyCodec.encode_output("output", tensor.mean(axis=1))]
        )

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        """Answer ModelStreamInfer and /generate_stream."""
        async for payload in payloads:
            _note(kind="stream", inputs=[tensor.name for tensor in payload.inputs])
            for number in range(WORDS):
                await asyncio.sleep(0.01)
                word = StringCodec.encode_output("output", [f"word{number} "])
                yield InferenceResponse(model_name=self.name, outputs=[word])


def _note(**row: object) -> None:
    with Path(os.environ["NOTES"]).open("a") as log:
        log.write(json.dumps(row) + "\n")
