"""Refusals, as an API server states them."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """A request that is refused: the Status object that says so."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def status(self) -> dict[str, Any]:
        """The object of kind Status."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


def not_found(resource: str, name: str) -> ApiError:
    """There is no such object."""
    return ApiError(404, "NotFound", f'{resource} "{name}" not found', name=name, kind=resource)


def forbidden(resource: str, name: str, why: str) -> ApiError:
    """Somebody may not do this, or a rule of the namespace refuses the object."""
    return ApiError(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', name=name, kind=resource)


def invalid(kind: str, name: str, why: str) -> ApiError:
    """The object is none that Kubernetes takes: ``why`` is a field and, after a colon, what is wrong with it."""
    field, _, message = why.partition(": ")
    causes = [{"reason": "FieldValueInvalid", "field": field, "message": message}]
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {why}', name=name, kind=kind, causes=causes)
