"""Which route serves a request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Generic, TypeVar

from inference_benchmarker.embedded.http.messages import HttpError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Route(Generic[T]):
    """A method and a path, and what serves them. ``path`` is a template: ``{...}`` stands for one segment."""

    method: str
    path: str
    target: T


class Routes(Generic[T]):
    """The route table. A path without a template is found by one look-up."""

    def __init__(self, routes: list[Route[T]]) -> None:
        self._by_path: dict[str, dict[str, Route[T]]] = {}
        for route in routes:
            self._by_path.setdefault(route.path, {})[route.method] = route
        self._templates = [
            (re.compile(re.sub(r"\\{.*?\\}", "[^/]+", re.escape(path))), methods)
            for path, methods in self._by_path.items()
            if "{" in path
        ]

    def find(self, method: str, path: str) -> Route[T]:
        """The route; HEAD finds GET's. Raises HttpError 404 or 405."""
        methods = self._by_path.get(path) or self._match(path)
        if methods is None:
            raise HttpError(404, f"there is nothing at {path}")
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allow = ", ".join([*methods, "HEAD"] if "GET" in methods else methods)
            raise HttpError(405, f"{method} is not allowed at {path}; use {allow}", {"Allow": allow})
        return route

    def _match(self, path: str) -> dict[str, Route[T]] | None:
        return next((methods for pattern, methods in self._templates if pattern.fullmatch(path)), None)
