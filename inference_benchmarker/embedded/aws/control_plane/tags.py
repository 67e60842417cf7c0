"""The tags of what was made: AddTags, ListTags and DeleteTags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from inference_benchmarker.embedded.aws.control_plane.registry import invalid
from inference_benchmarker.embedded.aws.paging import page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.embedded.aws.aws_json import Caller, Operation

_MOST = 50


class _Covered(Protocol):
    def has_arn(self, arn: str) -> bool: ...


class Tags:
    """The operations, on the resources of the registries that are covered."""

    def __init__(self) -> None:
        self._registries: list[_Covered] = []
        self._tags: dict[str, dict[str, str]] = {}
        self.operations: Mapping[str, Operation] = {
            "AddTags": self._add,
            "ListTags": self._list,
            "DeleteTags": self._delete,
        }

    def cover(self, registry: _Covered) -> None:
        """Its resources have tags."""
        self._registries.append(registry)

    def put(self, arn: str, request: dict[str, Any]) -> None:
        """Those that a request gives to a new resource."""
        self._tags[arn] = {tag["Key"]: tag["Value"] for tag in request.get("Tags") or ()}

    def drop(self, arn: str) -> None:
        """The resource is no more."""
        self._tags.pop(arn, None)

    def _add(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        tags = self._of(request)
        tags |= {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        if len(tags) > _MOST:
            raise invalid(f"There are {len(tags)} tags: a resource has {_MOST} at most.")
        self._tags[request["ResourceArn"]] = tags
        return {"Tags": _tag_list(tags)}

    def _list(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        bad_token = invalid("The next token is of no earlier answer.")
        size = request.get("MaxResults", _MOST)
        return page("Tags", _tag_list(self._of(request)), request.get("NextToken"), size, bad_token)

    def _delete(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        gone = request["TagKeys"]
        self._tags[request["ResourceArn"]] = {key: value for key, value in self._of(request).items() if key not in gone}
        return {}

    def _of(self, request: dict[str, Any]) -> dict[str, str]:
        arn = request["ResourceArn"]
        if not any(registry.has_arn(arn) for registry in self._registries):
            raise invalid(f'Could not find resource "{arn}".')
        return dict(self._tags.get(arn, {}))


def _tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
