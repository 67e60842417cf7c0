"""The resources of one kind by name, and AWS's refusals where one is missing or is there already."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from inference_benchmarker.embedded.aws.aws_json import ACCOUNT, AwsError, Caller
from inference_benchmarker.embedded.aws.paging import page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MOST = 100
_NAME = re.compile("[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


def invalid(message: str) -> AwsError:
    """SageMaker's answer to a request that it does not take."""
    return AwsError("ValidationException", message)


@dataclass(slots=True, kw_only=True)
class Resource:
    """Something that was made. ``content``: what it was made with; instants are epoch seconds."""

    name: str
    created_at: float
    content: dict[str, Any] = field(default_factory=dict)
    changed_at: float = 0.0
    status: str = ""

    def __post_init__(self) -> None:
        self.changed_at = self.changed_at or self.created_at

    @property
    def shown_status(self) -> str:
        """Its status in SageMaker's words."""
        return self.status

    @property
    def shown_change(self) -> float:
        """When it changed last."""
        return self.changed_at


R = TypeVar("R", bound=Resource)


class Registry(Generic[R]):
    """``word`` is AWS's for the kind, ``member`` what its members begin with, ``kind`` its part of an ARN."""

    def __init__(self, word: str, member: str, kind: str) -> None:
        self.word = word
        self.member = member
        self._kind = kind
        self._found: dict[str, R] = {}

    def __iter__(self) -> Iterator[R]:
        return iter(list(self._found.values()))

    def get(self, name: str) -> R | None:
        """The one of that name, if there is one."""
        return self._found.get(name)

    def find(self, name: str, caller: Caller) -> R:
        """The one of that name. Raises AwsError."""
        found = self._found.get(name)
        if found is None:
            raise self.missing(name, caller)
        return found

    def missing(self, name: str, caller: Caller) -> AwsError:
        """AWS's words for a name that nothing has."""
        return invalid(f'Could not find {self.word} "{self.arn(name, caller)}".')

    def known(self, name: str, caller: Caller) -> AwsError:
        """AWS's words for a name that something has already."""
        return invalid(f'Cannot create already existing {self.word} "{self.arn(name, caller)}".')

    def add(self, made: R, caller: Caller) -> str:
        """Take it in: its ARN. Raises AwsError where the name is taken, or is none."""
        if not _NAME.fullmatch(made.name):
            at = self.member[0].lower() + self.member[1:] + "Name"
            pattern = f"Member must satisfy regular expression pattern: ^{_NAME.pattern}$"
            raise invalid(f"1 validation error detected: Value '{made.name}' at '{at}' failed to satisfy: {pattern}")
        if made.name in self._found:
            raise self.known(made.name, caller)
        self._found[made.name] = made
        return self.arn(made.name, caller)

    def remove(self, name: str, caller: Caller) -> R:
        """Take it out. Raises AwsError."""
        found = self.find(name, caller)
        del self._found[name]
        return found

    def arn(self, name: str, caller: Caller) -> str:
        """The ARN of a name."""
        return f"arn:aws:sagemaker:{caller.region}:{ACCOUNT}:{self._kind}/{name.lower()}"

    def has_arn(self, arn: str) -> bool:
        """Tells whether the ARN, of whatever region, is of one of these."""
        kind, _, name = arn.rpartition(":")[2].partition("/")
        return kind == self._kind and any(each.lower() == name for each in self._found)

    def page(self, found: Iterable[R], request: dict[str, Any], caller: Caller, *, changes: bool) -> dict[str, Any]:
        """The page of a list that is asked for; ``changes``: when each changed last and its status stand in it."""
        asked = [self._listed(each, caller, changes=changes) for each in _ordered(_asked_for(found, request), request)]
        size = request.get("MaxResults", _MOST)
        if not 1 <= size <= _MOST:
            raise invalid(f"MaxResults is {size}: it must be from 1 to {_MOST}.")
        bad_token = invalid("The next token is of no earlier answer.")
        return page(f"{self.member}s", asked, request.get("NextToken"), size, bad_token)

    def _listed(self, made: R, caller: Caller, *, changes: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {
            f"{self.member}Name": made.name,
            f"{self.member}Arn": self.arn(made.name, caller),
            "CreationTime": made.created_at,
        }
        if changes:
            fields |= {"LastModifiedTime": made.shown_change, f"{self.member}Status": made.shown_status}
        return fields


def _asked_for(found: Iterable[R], request: dict[str, Any]) -> list[R]:
    contains, status = request.get("NameContains", "").lower(), request.get("StatusEquals")
    after, before = request.get("CreationTimeAfter", 0), request.get("CreationTimeBefore", float("inf"))
    return [
        each
        for each in found
        if contains in each.name.lower() and status in (None, each.shown_status) and after <= each.created_at <= before
    ]


def _ordered(found: Sequence[R], request: dict[str, Any]) -> list[R]:
    """Newest first unless asked for otherwise, as SageMaker does."""
    by = request.get("SortBy", "CreationTime")

    def key(made: R) -> tuple[Any, ...]:
        return {"Name": (made.name,), "Status": (made.shown_status,)}.get(by, (made.created_at,))

    return sorted(found, key=key, reverse=request.get("SortOrder", "Descending") == "Descending")
