"""The flags of `benchmark capacity --in users` and `--in sessions`, and what they say of the search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, parse_int
from inference_benchmarker.cli.wave.wave_flags import WAVE_FLAGS
from inference_benchmarker.plan.load import MAX_CONCURRENCY, ClosedLoop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.cli.core.flags import Reading
    from inference_benchmarker.plan.think import Think
    from server_capacity.search.settings import Settings

USERS, RPS, SESSIONS = "users", "rps", "sessions"
REQUESTS = "requests"
"""Another word for requests a second."""
_THINK_TIME = next(flag for flags in WAVE_FLAGS.values() for flag in flags if flag.name == "think_time")
_OF_USERS = {"think_time": "--think-time", "max_users": "--max-users", "start_users": "--start-users"}
_OF_RATES = {"arrivals": "--arrivals", "max_rps": "--max-rps", "start_rps": "--start-rps"}
_NOT_OF_USERS = {
    "--arrivals": "is not for a search in users, who send after their think time: use --think-time",
    "--max-rps": "is not for a search in users: use --max-users",
    "--start-rps": "is not for a search in users: use --start-users",
}

USER_FLAGS = [
    _THINK_TIME._replace(
        about="with --in users or sessions: pause between an answer and the next request (default: none): 5s, "
        "exponential:5s, uniform:2s..8s, lognormal:5s:0.5"
    ),
    Flag("--max-users", "N", "with --in users: the largest number to try", parse_int),
    Flag(
        "--start-users",
        "N",
        "with --in users: the first number to try (default: enough to send about one request per second)",
        parse_int,
    ),
]


def stray_flags(options: dict[str, Any]) -> Iterator[str]:
    """The problems of flags that are for the other kind of search."""
    in_users, in_sessions = options["in"] == USERS, options["in"] == SESSIONS
    for name, flag in (_OF_RATES if in_users else _OF_USERS).items():
        if options[name] is not None and not (in_sessions and name == "think_time"):
            yield f"{flag} {_NOT_OF_USERS[flag]}." if in_users else f"{flag} is for a search in users: add --in users."
    for name in ("max_users", "start_users"):
        text = str(options[name] or "1").strip()
        if in_users and text.isdecimal() and not 1 <= int(text) <= MAX_CONCURRENCY:
            yield f"{_OF_USERS[name]} must be from 1 to {MAX_CONCURRENCY:,}, not {text}."


def session_problems(options: dict[str, Any], *, sends_sessions: bool) -> Iterator[str]:
    """The problem of a search in one unit of arrivals in another one."""
    unit = options["in"] or RPS
    if sends_sessions and unit not in (USERS, SESSIONS):
        yield "The endpoint takes sessions of several turns: search with --in sessions, or with --in users."
    elif not sends_sessions and unit == SESSIONS:
        yield "--in sessions: give --turns N or --conversations FILE with a URL, or a file with a session_factory."
    elif not sends_sessions and unit == USERS and options["tier"]:
        yield (
            "--tier with --in users is for sessions: give --turns N, --conversations FILE or a session_factory, or "
            "search each tier with --slo."
        )
    if not sends_sessions:
        return
    if options["vary"]:
        yield "--vary ranks by requests/s: it sends single requests, and these are sessions."
    if options["verify"]:
        yield "--verify sends a plan's requests/s, and these are sessions."


def users_asked(given: Reading, settings: Settings) -> tuple[ClosedLoop, Settings]:
    """The load of a search in users, and its settings, whose rates are numbers of users."""
    think: Think | None = given.values["think"]
    most, first = given.values["max_users"], given.values["start_users"]
    return ClosedLoop(1, think, steered=True), replace(settings, max_rps=most, start_rps=first)
