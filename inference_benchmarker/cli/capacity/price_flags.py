"""The flags that say what an instance costs, of every command that tells of money."""

from __future__ import annotations

from inference_benchmarker.cli.core.flags import Flag

PRICE_FLAGS = [
    Flag(
        "--price",
        "TYPE=USD",
        "what an hour of an instance of a type costs; once for each type (default: AWS's price list, where there are "
        "credentials)",
        repeatable=True,
    ),
    Flag(
        "--price-file",
        "FILE",
        "prices from JSON, {TYPE: USD} or {REGION: {TYPE: USD}}, or from AWS's own index.json of AmazonSageMaker",
    ),
]
