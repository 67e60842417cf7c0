"""``--ui``: Locust's web page while the wave runs, on loopback. It shows; the plan decides.

Its Stop button is one Ctrl-C; start, edit and reset are refused, since they would make the records lie. The
users it counts are the requests in flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import gevent
from flask import Response, jsonify, request

from inference_benchmarker.engine.locust.runtime import free_ports
from inference_benchmarker.url import names_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from locust.env import Environment

    from inference_benchmarker.records.record import Ledger

FIRST_PORT = 8089
_REFUSED = ("swarm", "reset_stats", "update_user")
_COLUMNS = ("worker", "in_flight", "sent", "ok", "failed", "dropped")


def serve_page(environment: Environment, ledgers: Callable[[], list[Ledger]], stop: Callable[[], None]) -> int:
    """Serve the page and return its port. ``ledgers`` gives each worker's counts, ``stop`` ends the wave early."""
    port: int = next(free_ports(FIRST_PORT))
    ui = environment.create_web_ui(host="127.0.0.1", port=port, delayed_start=True)
    ui.template_args |= {
        "extended_tabs": [{"title": "In flight", "key": "in_flight"}],
        "extended_tables": [
            {
                "key": "in_flight",
                "structure": [{"key": name, "title": name.replace("_", " ").capitalize()} for name in _COLUMNS],
            }
        ],
    }
    views = ui.app.view_functions
    for name in _REFUSED:
        views[f"locust.{name}"] = _refuse
    views["locust.stop"] = _stopping(stop)
    views["locust.request_stats"] = _with_requests_in_flight(views["locust.request_stats"], ledgers)
    ui.app.before_request(_refuse_others)
    ui.start()
    gevent.sleep(0)  # it listens before anybody learns of it
    return port


def _refuse() -> tuple[Response, int]:
    message = "The wave's plan sets the load; this page only shows it. Stop ends the wave early."
    return jsonify({"success": False, "message": message}), 409


def _stopping(stop: Callable[[], None]) -> Callable[[], Response]:
    def stop_wave() -> Response:
        stop()
        return jsonify({"success": True, "message": "Stopping: waiting for requests in flight."})

    return stop_wave


def _with_requests_in_flight(
    view: Callable[[], Response], ledgers: Callable[[], list[Ledger]]
) -> Callable[[], Response]:
    """Locust's statistics, with requests in flight where it counts users, and a row for each worker."""

    def request_stats() -> Response:
        report: dict[str, Any] = dict(view().get_json())
        counts = [{"worker": number, **ledger.to_json()} for number, ledger in enumerate(ledgers())]
        report["user_count"] = sum(row["in_flight"] for row in counts)
        report["extended_stats"] = [
            {"key": "in_flight", "data": [{name: row[name] for name in _COLUMNS} for row in counts]}
        ]
        return jsonify(report)

    return request_stats


def _refuse_others() -> tuple[str, int] | None:
    """A web page of another origin, open in the same browser, must neither read nor stop the wave.

    Its host name may lead to this address (DNS rebinding), so the name that was asked for must be this host's own. A
    browser says of each request whether another site made it; from such a one only a link to the page is followed.
    """
    if not names_loopback(request.headers.get("Host", "")):
        return "This page answers on 127.0.0.1 and localhost only.", 403
    origin = request.headers.get("Origin")
    own_origin = origin is None or urlsplit(origin).netloc == request.host
    own_site = request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin") or request.path == "/"
    return None if own_origin and own_site else ("This page answers its own origin only.", 403)
