"""STS's GetCallerIdentity: the account of the embedded endpoint. STS speaks AWS's Query protocol, which is XML."""

from __future__ import annotations

from urllib.parse import parse_qs

from inference_benchmarker.embedded.aws.aws_json import ACCOUNT
from inference_benchmarker.embedded.http.messages import Answer, Request

_ANSWER = f"""<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetCallerIdentityResult><Arn>arn:aws:iam::{ACCOUNT}:user/demo</Arn><UserId>demo</UserId><Account>{ACCOUNT}</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>""".encode()


def is_meant(request: Request) -> bool:
    """Tells whether a request asks who the caller is."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return False
    return parse_qs(bytes(request.body)).get(b"Action") == [b"GetCallerIdentity"]


def answer() -> Answer:
    """The same answer for all credentials: no policy can deny it."""
    return Answer(200, _ANSWER, "text/xml", {})
