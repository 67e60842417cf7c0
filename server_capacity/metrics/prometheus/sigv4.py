"""AWS's signature (Signature Version 4, by botocore's signer) for what answers PromQL behind IAM.

Amazon Managed Service for Prometheus and CloudWatch's PromQL, where SageMaker's detailed observability is:
https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-APIReference-Prometheus-Compatible-Apis.html and
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL-Querying.html
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from inference_benchmarker.errors import BenchmarkError, refuse
from server_capacity.metrics.aws import REGION_HINT, credential_problems, credentials_hint, region_problems
from server_capacity.metrics.aws_failures import first_line
from server_capacity.metrics.prometheus.web import WebError

if TYPE_CHECKING:
    from server_capacity.metrics.prometheus.block import Signature

STREAM = "prometheus"
SERVICES = {"aps-workspaces": "aps", "monitoring": "monitoring"}
"""The name that a host of AWS begins with (a VPC endpoint's: after its own), and the service that it is signed for."""

PERMISSIONS = {"aps": "aps:QueryMetrics", "monitoring": "cloudwatch:GetMetricData and cloudwatch:ListMetrics"}
_HOST = re.compile(rf"(?:^|\.)({'|'.join(SERVICES)})(?:-fips)?\.([a-z]+(?:-[a-z]+)+-\d+)\.")


def of_host(url: str) -> tuple[str | None, str | None]:
    """The service and the region that an address of AWS names; None of any other."""
    found = _HOST.search((urlsplit(url).hostname or "").lower())
    return (SERVICES[found[1]], found[2]) if found else (None, None)


class Signer:
    """Signs GET requests for one block. BenchmarkError where credentials or region are missing or malformed.

    ``secrets``: what it last signed with, which AWS's answers may repeat.
    """

    def __init__(self, signature: Signature) -> None:
        import boto3
        from botocore.exceptions import BotoCoreError

        service, region = of_host(signature.url)
        self._service: str = signature.service or service or "aps"
        permission = PERMISSIONS.get(self._service, f"the queries of {self._service}")
        try:
            session = boto3.Session()
            self._region: str = signature.region or region or session.region_name or ""
            self._credentials = session.get_credentials()
        except (BotoCoreError, ValueError) as error:
            said = first_line(error)
            hint = credentials_hint(permission)
            raise BenchmarkError(f"Stream {STREAM}: the AWS configuration cannot be used ({said}).", hint) from None
        wrong = credential_problems(self._credentials, STREAM, permission)
        refuse([*wrong, *region_problems(self._region, STREAM, f'Give "region" in the block. {REGION_HINT}')])
        self.secrets: list[str] = []
        self.advice = (
            f"see that the credentials (`aws sts get-caller-identity`) may call {permission}, that this clock is "
            f'right, and that "region" {self._region} and "service" {self._service} are those of the URL'
        )

    def headers(self, url: str) -> dict[str, str]:
        """The headers that sign a GET of that address now. Raises WebError where no credentials can be had."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        request = AWSRequest("GET", url)
        try:
            credentials = self._credentials.get_frozen_credentials()  # which may have to be renewed
            SigV4Auth(credentials, self._service, self._region).add_auth(request)
        except BotoCoreError as error:
            said = first_line(error)
            raise WebError(f"AWS credentials cannot be had ({said})", unreachable=True) from None
        self.secrets = [value for value in (credentials.secret_key, credentials.token) if value]
        return dict(request.headers.items())
