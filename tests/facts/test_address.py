"""An address is shown with the kind of network that it is in."""

from __future__ import annotations

import pytest

from inference_benchmarker.facts.address import Address

SAGEMAKER = "runtime.sagemaker.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("address", "name", "kind"),
    [
        ("127.0.0.1", None, "loopback"),
        ("::1", "localhost", "loopback"),
        ("::ffff:127.0.0.1", None, "loopback"),
        ("10.0.3.7", SAGEMAKER, "vpc_endpoint"),
        ("fd00::1", SAGEMAKER, "vpc_endpoint"),
        ("10.0.3.7", "model.internal", "private"),
        ("192.168.0.1", None, "private"),
        ("172.31.0.1", None, "private"),
        ("100.64.0.1", None, "private"),
        ("fe80::1%eth0", None, "private"),
        ("52.95.110.1", SAGEMAKER, "public"),
        ("2600:1f18::1", None, "public"),
    ],
)
def test_the_kind_of_network(address: str, name: str | None, kind: str) -> None:
    found = Address(address, 443, name)
    assert found.kind == kind
    assert found.to_json() == {"address": address, "port": 443, "name": name, "kind": kind}
    assert f"{kind.partition('_')[0].replace('vpc', 'private')}: " in str(found)


def test_it_is_reported_with_its_name_and_port() -> None:
    assert str(Address("10.0.3.7", 443, SAGEMAKER)).startswith(f"{SAGEMAKER} at 10.0.3.7:443 (private: a VPC endpoint")
    assert str(Address("::1", 8080)) == "[::1]:8080 (loopback: this host)"
