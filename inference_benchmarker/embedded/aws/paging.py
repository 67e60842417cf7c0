"""Lists in pages: a token is the place at which the next page begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.embedded.aws.aws_json import AwsError

_PREFIX = "after/"


def page(
    name: str, found: Sequence[dict[str, Any]], token: str | None, size: int, bad_token: AwsError
) -> dict[str, Any]:
    """The page of that size that a token asks for, and the next token where there is more. Raises ``bad_token``."""
    place = (token or f"{_PREFIX}0").removeprefix(_PREFIX)
    if not (place.isascii() and place.isdigit()):
        raise bad_token
    end = int(place) + size
    more = {"NextToken": f"{_PREFIX}{end}"} if end < len(found) else {}
    return {name: found[int(place) : end], **more}
