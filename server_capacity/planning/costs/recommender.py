"""The results of an Inference Recommender job, to stand beside what was measured here.

Its numbers are those of the moment at which invocations level out, so at saturation, and keep no limit of the user's:
https://docs.aws.amazon.com/sagemaker/latest/dg/inference-recommender-interpret-results.html
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.text import said
from server_capacity.metrics.aws_answers import NoAnswerError, pages, region_of
from server_capacity.results.types.ranking import Recommendation, Recommender

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTE = "Inference Recommender's own numbers, taken at saturation, where invocations level off: no limit is met there."
_METRICS = ("CostPerHour", "CostPerInference", "MaxInvocations", "ModelLatency", "CpuUtilization", "MemoryUtilization")


def recommendations(job: str, region: str | None = None) -> Recommender:
    """The job's rows, in its own words and units; BenchmarkError where it cannot be read."""
    where = region_of(region)
    if where is None:
        raise BenchmarkError(f"--recommender {job}: no AWS region is set.", "Set AWS_DEFAULT_REGION.")
    try:
        (answer,) = pages("sagemaker", where, "describe_inference_recommendations_job", {"JobName": job})
        return recommender_of(job, answer)
    except NoAnswerError as error:
        reason = str(error) or "there are no AWS credentials"
        raise BenchmarkError(f"--recommender {job}: {reason}.") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BenchmarkError(f"--recommender {job}: the answer has an unknown form ({type(error).__name__}).") from None


def recommender_of(job: str, answer: Mapping[str, Any]) -> Recommender:
    """The rows of an answer. ``rate`` is MaxInvocations, which is per minute, in requests/s."""
    return Recommender(
        job,
        str(answer.get("Status", "")),
        NOTE,
        said(str(answer.get("FailureReason") or ""), 300) or None,
        [_row(each) for each in answer.get("InferenceRecommendations") or []],
    )


def _row(recommendation: Mapping[str, Any]) -> Recommendation:
    endpoint, metrics = recommendation["EndpointConfiguration"], recommendation.get("Metrics") or {}
    model = recommendation.get("ModelConfiguration") or {}
    numbers = {name: _number(metrics.get(name)) for name in _METRICS}
    calls = numbers["MaxInvocations"]
    return Recommendation(
        endpoint.get("InstanceType"),
        endpoint.get("InitialInstanceCount"),
        {each["Key"]: each["Value"] for each in model.get("EnvironmentParameters") or []},
        rate=None if calls is None else calls / 60,
        **numbers,
    )


def _number(value: Any) -> float | None:
    """A number; None for one that is not there, which the job tells as NaN."""
    return None if value is None or not math.isfinite(float(value)) else float(value)
