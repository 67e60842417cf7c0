"""Access logs of nginx, Apache and AWS load balancers: the fields of a line, and how long its request took."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from inference_benchmarker.recording.clock import iso_ns
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LOG_NAMES = (
    "remote_addr",
    "remote_user",
    "time_local",
    "request",
    "method",
    "path",
    "status",
    "body_bytes_sent",
    "http_referer",
    "http_user_agent",
    "duration",
)
# The fields of an Application Load Balancer's line and of a Classic one's, in their order, as AWS documents them.
_TIMES = ("request_processing_time", "target_processing_time", "response_processing_time")
ALB_NAMES = (
    *("type", "time", "elb", "client", "target", *_TIMES, "elb_status_code", "target_status_code", "received_bytes"),
    *("sent_bytes", "request", "user_agent", "ssl_cipher", "ssl_protocol", "target_group_arn", "trace_id"),
    *("domain_name", "chosen_cert_arn", "matched_rule_priority", "request_creation_time", "actions_executed"),
    *("redirect_url", "error_reason", "target_list", "target_status_code_list", "classification"),
    *("classification_reason", "conn_trace_id"),
)
CLB_NAMES = (
    *("timestamp", "elb", "client", "backend", "request_processing_time", "backend_processing_time"),
    *("response_processing_time", "elb_status_code", "backend_status_code", "received_bytes", "sent_bytes"),
    *("request", "user_agent", "ssl_cipher", "ssl_protocol"),
)
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(rf"(\S+) \S+ (.+?) \[([^\]]{{15,40}})\] {_QUOTED} (\d{{3}}|-) (\d+|-)(?: {_QUOTED} {_QUOTED})?(.*)")
_DURATION = re.compile(r"(?:^|\s)(?:\w+=)?\"?(\d+(?:\.\d+)?)\"?(?=\s|$)")
_ALB = re.compile(r"(?:https?|h2|grpcs?|wss?) \d{4}-\d\d-\d\dT\S+ \S+ \S+:\d+ ")
_CLB = re.compile(r"\d{4}-\d\d-\d\dT\S+ \S+ \S+:\d+ (?:\S+:\d+|-) (?:-1|[\d.]+) ")


def is_log(line: str) -> bool:
    """Tells whether it is a line of nginx or Apache."""
    return _LINE.fullmatch(line) is not None


def is_alb(line: str) -> bool:
    """Tells whether it is a line of an Application Load Balancer."""
    return _ALB.match(line) is not None


def is_clb(line: str) -> bool:
    """Tells whether it is a line of a Classic Load Balancer."""
    return _CLB.match(line) is not None


def log_fields(line: str) -> list[str | None] | None:
    """The fields of a line of nginx or Apache, in the order of ``LOG_NAMES``; None for another line."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    address, user, time, request, status, size, referer, agent, rest = match.groups()
    method, _, path = request.partition(" ")
    duration = _DURATION.search(rest)
    fields = [address, user, time, request, method, path.rpartition(" ")[0] or path, status, size, referer, agent]
    return [*fields, None if duration is None else duration[1]]


def stamps_ends(durations: Iterable[str | None]) -> bool:
    """Tells whether the lines are nginx's, which stamps the end of a request: its $request_time has a fraction.

    Apache stamps the begin (%t of https://httpd.apache.org/docs/2.4/mod/mod_log_config.html); its %D and %T are whole.
    """
    return any("." in each for each in durations if each is not None)


def alb_duration_ns(time: str, fields: Sequence[str | None]) -> int:
    """The ns before its time at which an Application Load Balancer had received the request."""
    created = fields[ALB_NAMES.index("request_creation_time")]
    if created not in (None, "", "-"):
        return iso_ns(time) - iso_ns(str(created))
    seconds = [fields[ALB_NAMES.index(name)] for name in _TIMES]
    return sum(round(float(each) * NS) for each in seconds if each not in (None, "", "-", "-1"))
