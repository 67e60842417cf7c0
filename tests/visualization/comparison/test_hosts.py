"""Runs from other hosts are not runs under the same conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inference_benchmarker.plan.hosts import Hosts, hosts_in
from tests.hosted import hosted
from visualization.comparison.comparison import compare

BASE = hosted(np.full((12, 30), 0.1), (1, 1))


def test_other_hosts_are_reported_as_a_difference() -> None:
    new = replace(BASE, plan=replace(BASE.plan, hosts=Hosts(hosts_in("load1*1,far*1"))))
    said = "2 workers on load1*1, load2*1 and 2 workers on load1*1, far*1"
    assert any(said in each for each in compare([BASE], [new]).unlike)
    assert not any("workers" in each for each in compare([BASE], [BASE]).unlike)
