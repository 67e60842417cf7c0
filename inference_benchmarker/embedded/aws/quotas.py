"""Service Quotas of SageMaker: how many instances of each type all endpoints may have together.

The codes are made up, and stay the same for a name. Every other quota of SageMaker's is unknown here.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import ACCOUNT, AwsError, Caller, Service
from inference_benchmarker.embedded.aws.paging import page
from inference_benchmarker.embedded.instance_types import known_types, quota
from inference_benchmarker.embedded.synthetic_types import MOST_INSTANCES

if TYPE_CHECKING:
    from inference_benchmarker.embedded.config import EndpointConfig

TARGET_PREFIX = "ServiceQuotasV20190624"
_SERVICE = "sagemaker"
_MOST = 100


class ServiceQuotas:
    """The operations: those of the account, and AWS's defaults."""

    def __init__(self, config: EndpointConfig) -> None:
        self._applied = {kind: quota(config, kind) for kind in known_types(config)}
        operations = {
            "GetServiceQuota": lambda request, caller: self._get(request, caller, defaults=False),
            "ListServiceQuotas": lambda request, caller: self._list(request, caller, defaults=False),
            "GetAWSDefaultServiceQuota": lambda request, caller: self._get(request, caller, defaults=True),
            "ListAWSDefaultServiceQuotas": lambda request, caller: self._list(request, caller, defaults=True),
        }
        self.service = Service("servicequotas", operations)

    def _get(self, request: dict[str, Any], caller: Caller, *, defaults: bool) -> dict[str, Any]:
        code = request["QuotaCode"]
        found = [each for each in self._quotas(request, caller, defaults=defaults) if each["QuotaCode"] == code]
        if not found:
            raise AwsError("NoSuchResourceException", f"The request failed because the quota {code} is unknown here.")
        return {"Quota": found[0]}

    def _list(self, request: dict[str, Any], caller: Caller, *, defaults: bool) -> dict[str, Any]:
        found = self._quotas(request, caller, defaults=defaults)
        size = request.get("MaxResults", _MOST)
        if not 1 <= size <= _MOST:
            raise AwsError("IllegalArgumentException", f"MaxResults is {size}: it must be from 1 to {_MOST}.")
        bad_token = AwsError("InvalidPaginationTokenException", "The next token is of no earlier answer.")
        return page("Quotas", found, request.get("NextToken"), size, bad_token)

    def _quotas(self, request: dict[str, Any], caller: Caller, *, defaults: bool) -> list[dict[str, Any]]:
        if request["ServiceCode"] != _SERVICE:
            raise AwsError("NoSuchResourceException", f"The service {request['ServiceCode']} is unknown here.")
        return [_described(kind, MOST_INSTANCES if defaults else most, caller) for kind, most in self._applied.items()]


def _described(kind: str, most: int, caller: Caller) -> dict[str, Any]:
    name = f"{kind} for endpoint usage"
    code = f"L-{zlib.crc32(name.encode()):08X}"
    return {
        "ServiceCode": _SERVICE,
        "ServiceName": "Amazon SageMaker",
        "QuotaArn": f"arn:aws:servicequotas:{caller.region}:{ACCOUNT}:{_SERVICE}/{code}",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": float(most),
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
