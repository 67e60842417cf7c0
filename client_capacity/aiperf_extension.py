"""The payloads of a factories file in a file that aiperf reads, for those who run aiperf themselves.

``benchmark --aiperf`` needs none of this: it makes aiperf's requests from the same payloads.
"""

from __future__ import annotations

import json
from pathlib import Path

from inference_benchmarker.engine.endpoint.factories_file import load_payloads
from inference_benchmarker.engine.endpoint.json_bodies import json_body
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import FOR_ANYBODY, replacing


def payload_factory_to_jsonl(factories_file: str | Path, output_path: str | Path) -> Path:
    """Write a line for each pre-computed payload, as it is sent (aiperf's ``custom-dataset-type`` ``raw_payload``).

    Calls payload_factory in this process; returns the path. BenchmarkError for payloads that are built for each
    request, or that are no JSON objects; nothing is written then.
    """
    payloads = load_payloads(Path(factories_file))
    if payloads is None:
        raise BenchmarkError(
            f"{factories_file}: payloads are built per request, so there is no list of them.",
            'Return {"pre_computed": True, "input": [...]}, or run `benchmark --aiperf`, which builds them.',
        )
    lines = [json.dumps(json_body(payload, index)) for index, payload in enumerate(payloads)]
    path = Path(output_path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, mode=FOR_ANYBODY) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be written ({error.strerror}).", "Give another place.") from None
    return path
