"""AWS's JSON protocol: what is answered to a target that no service has, and what an error's headers say."""

import json
from typing import Any

import pytest

from inference_benchmarker.embedded.aws.aws_json import AwsError, AwsJson, Caller, Service
from inference_benchmarker.embedded.http.messages import Answer, Request

SIGNED = "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/x/aws4_request"


def refuse(data: dict[str, Any], caller: Caller) -> dict[str, Any]:
    raise AwsError("Refused", f"{data} in {caller.region}")


def answer(target: str, *, query_compatible: bool = False) -> Answer:
    services = {"Mine": Service("mine", {"Do": refuse}, query_compatible)}
    headers = {"x-amz-target": target, "authorization": SIGNED}
    return AwsJson(services, access_denied=False).answer(Request("POST", "/", "", "HTTP/1.1", headers, body=b"{}"))


@pytest.mark.parametrize("target", ["Other.Do", "Mine.Undo", ""])
def test_a_target_that_nobody_has_is_unknown(target: str) -> None:
    found = answer(target)
    assert (found.status, json.loads(found.body)["__type"]) == (404, "UnknownOperationException")
    assert "x-amzn-query-error" not in found.headers


@pytest.mark.parametrize(("query_compatible", "expected"), [(True, "Refused;Sender"), (False, None)])
def test_an_error_has_the_code_of_the_query_protocol_where_its_service_spoke_that(
    query_compatible: bool, expected: str | None
) -> None:
    found = answer("Mine.Do", query_compatible=query_compatible)
    assert (found.status, json.loads(found.body)["message"]) == (400, "{} in eu-west-1")
    assert found.headers.get("x-amzn-query-error") == expected
