from __future__ import annotations

import botocore.session
import pytest

from server_capacity.metrics.cloudwatch.instance_types import gpus, vcpus


@pytest.mark.parametrize(
    ("name", "cores", "graphics"),
    [
        ("ml.m5.large", 2, 0),
        ("ml.m5.xlarge", 4, 0),
        ("ml.m5.24xlarge", 96, 0),
        ("ml.r8g.medium", 1, 0),
        ("ml.t2.medium", 2, 0),
        ("ml.t2.2xlarge", 8, 0),
        ("ml.c4.4xlarge", 16, 0),
        ("ml.c4.8xlarge", 36, 0),
        ("ml.c5.9xlarge", 36, 0),
        ("ml.c6gn.16xlarge", 64, 0),
        ("ml.inf2.48xlarge", 192, 0),
        ("ml.trn1n.32xlarge", 128, 0),
        ("ml.p2.16xlarge", 64, 16),
        ("ml.p3.2xlarge", 8, 1),
        ("ml.p4de.24xlarge", 96, 8),
        ("ml.p5.4xlarge", 16, 1),
        ("ml.p5.48xlarge", 192, 8),
        ("ml.p6-b200.48xlarge", 192, 8),
        ("ml.dl1.24xlarge", 96, 8),
        ("ml.g4dn.12xlarge", 48, 4),
        ("ml.g5.xlarge", 4, 1),
        ("ml.g5.12xlarge", 48, 4),
        ("ml.g5.16xlarge", 64, 1),
        ("ml.g5.48xlarge", 192, 8),
        ("ml.g6e.24xlarge", 96, 4),
        ("ml.g7e.12xlarge", 48, 2),
        ("ml.g7e.24xlarge", 96, 4),
        ("ml.p6e-gb200.36xlarge", 144, None),
        ("ml.g99.xlarge", 4, None),
        ("ml.gr6.4xlarge", 16, None),
        ("ml.g5.2large", None, None),
        ("ml.g5.0xlarge", None, None),
        ("ml.m7i.metal-24xl", None, None),
        ("ml.c5.metal", None, None),
        ("m5.xlarge", None, None),
        ("ml.m5", None, None),
        ("ml.serverless", None, None),
        ("", None, None),
    ],
)
def test_what_a_name_says(name: str, cores: int | None, graphics: int | None) -> None:
    assert (vcpus(name), gpus(name)) == (cores, graphics)


def test_every_type_that_sagemaker_hosts_on() -> None:
    sagemaker = botocore.session.get_session().get_service_model("sagemaker")
    names = sagemaker.shape_for("ProductionVariantInstanceType").enum
    assert len(names) > 200
    assert [name for name in names if vcpus(name) is None] == []
    unknown = {name.split(".")[1] for name in names if gpus(name) is None}
    assert len([name for name in names if gpus(name) is not None]) > 0.95 * len(names), unknown
    assert {name.split(".")[1][0] for name in names if gpus(name)} <= set("pgd")
