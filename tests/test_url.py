"""Tests of the check of addresses."""

from __future__ import annotations

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.url import endpoint_address, http_address, url_problem


@pytest.mark.parametrize("url", ["http://h", "https://h:443/a?b=c", "http://[::1]:8/", "http://127.0.0.1:8080/v1"])
def test_an_address_has_a_scheme_and_a_host(url: str) -> None:
    assert http_address(url) is not None
    assert url_problem("--url", url) == ""


@pytest.mark.parametrize(
    "url", ["", "h:80", "ftp://h", "http://", "http:///p", "http://h p", "http://h:99999", "http://[", "http://h\n", 7]
)
def test_anything_else_is_none(url: object) -> None:
    assert http_address(url) is None


def test_a_password_is_not_repeated() -> None:
    assert "hunter2pass" not in url_problem("--url", "ftp://me:hunter2pass@h")


@pytest.mark.parametrize("sign", ["/", "?", "#", " "])
def test_a_password_that_makes_it_no_address_is_not_repeated_either(sign: str) -> None:
    with pytest.raises(BenchmarkError) as raised:
        endpoint_address(f"http://me:hunter2{sign}pass@h:80/a")
    said = "'http://[hidden]@h:80/a' is not a valid endpoint URL. In a password, signs are written as %XX"
    assert str(raised.value).startswith(said)
