"""The number of instances of a type that an account may have behind endpoints, and how to ask for more.

https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_ListServiceQuotas.html
"""

from __future__ import annotations

import math
import shlex
from functools import cache

from server_capacity.metrics.aws_answers import NoAnswerError, pages, region_of
from server_capacity.results.types.bounds import Quota

SERVICE = "sagemaker"


def quota(instance_type: str, region: str | None, needed: int) -> Quota | None:
    """The quota of a type's instances for endpoints, beside those ``needed``; None where it is unknown.

    What other endpoints of the account use is in the quota, too, and is not known here.
    """
    where = region_of(region) if instance_type.startswith("ml.") else None
    if where is None:
        return None
    name = f"{instance_type} for endpoint usage"
    try:
        found = _quotas(where).get(name)
    except (NoAnswerError, AttributeError, KeyError, TypeError, ValueError):
        return None
    if found is None:
        return None
    code, limit = found
    ask = increase(code, needed, where)
    return Quota(name, instance_type, where, code, limit, needed, enough=needed <= limit, increase=ask)


def increase(code: str, needed: int, region: str) -> str:
    """The command that asks AWS for a quota."""
    command = ("aws", "service-quotas", "request-service-quota-increase", "--service-code", SERVICE)
    return shlex.join([*command, "--quota-code", code, "--desired-value", str(needed), "--region", region])


@cache
def _quotas(region: str) -> dict[str, tuple[str, int]]:
    """Code and limit by name: AWS's defaults, and over them what applies to the account."""
    found: dict[str, tuple[str, int]] = {}
    for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
        for page in pages("service-quotas", region, operation, {"ServiceCode": SERVICE}):
            for row in page.get("Quotas") or []:
                if math.isfinite(row["Value"]):
                    found[str(row["QuotaName"])] = (str(row["QuotaCode"]), math.floor(row["Value"]))
    return found
