"""The flags that say what an instance costs, of every command that tells of money."""

from __future__ import annotations

from inference_benchmarker.cli.core.flags import Flag

PRICE_FLAGS = [
    Flag(
        "--price",
        "TYPE=USD",
        "hourly price of an instance of this type, repeatable (default: AWS's price list, if there are credentials)",
        repeatable=True,
    ),
    Flag(
        "--price-file",
        "FILE",
        "prices as JSON, {TYPE: USD} or {REGION: {TYPE: USD}}, or AWS's own index.json of AmazonSageMaker",
    ),
]
