"""The same plan for Kubernetes: a HorizontalPodAutoscaler and a KEDA ScaledObject, as YAML. Pure.

Both keep the requests/s of a pod at what the plan gives an instance. Neither can know how the metric is called there.
KEDA makes a HorizontalPodAutoscaler, whose behaviour governs how pods are removed; ``cooldownPeriod`` acts on the step
to zero alone, which is below the minimum.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from server_capacity.models.fleet.policies import STABLE_S
from server_capacity.planning.sizing import floored

if TYPE_CHECKING:
    from server_capacity.results.types.plan import EndpointPlan

METRIC, ADDRESS = "http_requests_per_second", "http://PROMETHEUS:9090"
_NO_LABEL = re.compile(r"[^a-z0-9-]+")

_HPA = """\
# {target} requests/s a pod, {minimum} to {maximum} pods. The Deployment {name}, and the metric {metric} of its pods,
# which an adapter (prometheus-adapter) must provide, need the names they have in your cluster.
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {quoted}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {quoted}
  minReplicas: {minimum}
  maxReplicas: {maximum}
  metrics:
    - type: Pods
      pods:
        metric:
          name: {metric}
        target:
          type: AverageValue
          averageValue: "{milli}m"
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 0
    scaleDown:
      stabilizationWindowSeconds: {stable}
"""

_KEDA = """\
# {target} requests/s a pod, {minimum} to {maximum} pods. The Deployment {name}, the address of Prometheus and the
# metric http_requests_total need the names they have in your cluster. There is no cooldownPeriod: it would act on
# scaling to zero only.
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {quoted}
spec:
  scaleTargetRef:
    name: {quoted}
  minReplicaCount: {minimum}
  maxReplicaCount: {maximum}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp:
          stabilizationWindowSeconds: 0
        scaleDown:
          stabilizationWindowSeconds: {stable}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: {address}
        query: {query}
        threshold: "{target}"
"""


def kubernetes_files(plan: EndpointPlan, deployment: str) -> dict[str, str]:
    """``hpa.yaml`` and ``keda.yaml`` of one endpoint, whose Deployment is called about so."""
    chosen, name = plan.chosen, label(deployment)
    per_pod = chosen.invocations_per_instance / 60
    query = f'sum(rate(http_requests_total{{deployment="{name}"}}[1m]))'
    values = {
        "name": name,
        "quoted": json.dumps(name),
        "metric": METRIC,
        "address": json.dumps(ADDRESS),
        "query": json.dumps(query),
        "minimum": chosen.minimum,
        "maximum": chosen.maximum,
        "target": f"{floored(per_pod):.15g}",
        "milli": max(1, int(1000 * per_pod)),
        "stable": round(STABLE_S),
    }
    return {"hpa.yaml": _HPA.format(**values), "keda.yaml": _KEDA.format(**values)}


def label(name: str) -> str:
    """A name as Kubernetes takes it: small letters, digits and dashes, 63 at most."""
    return _NO_LABEL.sub("-", name.lower()).strip("-")[:63].strip("-") or "endpoint"
