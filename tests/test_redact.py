"""Redaction: a credential in any usual form is replaced, and what is none stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.redact import HIDDEN, redact, secret_values

SECRET = "Zq9xW8vU7tS6rQ5p"

LEAKS = [
    f"https://user:{SECRET}@host/path",
    f"https://{SECRET}@host",
    f"http://:{SECRET}@host",
    f"http://user:a@{SECRET}@host/x",
    f"redis://:{SECRET}@host:6379/0",
    f"POSTGRES://me:{SECRET}@db",
    f"Authorization: Bearer {SECRET}",
    f"authorization: bearer {SECRET}",
    f"{{'Authorization': 'Basic {SECRET}=='}}",
    f"api_key={SECRET}",
    f"api-key: {SECRET}",
    f'"apiKey": "{SECRET}"',
    f"x-api-key: {SECRET}",
    f"AWS_SECRET_ACCESS_KEY={SECRET}",
    f"X-Amz-Security-Token={SECRET}&X-Amz-Date=1",
    f"https://host/?X-Amz-Signature={SECRET}",
    f"password = {SECRET}",
    f"{{'password': '{SECRET}'}}",
    f"passwd:{SECRET}",
    f"client_secret={SECRET}",
    f"AKIA{SECRET.upper()}",
    f"ASIA{SECRET.upper()}",
    f"sk-{SECRET}",
    f"hf_{SECRET}",
    f"ghp_{SECRET}",
    f"eyJhbGciOiJIUzI1NiJ9.{SECRET}.{SECRET}",
]


@pytest.mark.parametrize("text", LEAKS)
def test_a_credential_is_replaced(text: str) -> None:
    clean = redact(f"before {text} after")
    assert SECRET.lower() not in clean.lower()
    assert HIDDEN in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred (ThrottlingException) when calling the InvokeEndpoint operation: Rate exceeded",
        "max_tokens=1024, tokens: 12",
        "https://host:8443/path?mail=a@b",
        "HTTP 503 for http://127.0.0.1:8080/invocations",
        "keyed by name, basic test",
        "ask-me-anything-about-this-text",
    ],
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert redact(text) == text


@given(st.sampled_from(LEAKS), st.text(max_size=20), st.text(max_size=20))
def test_redacting_twice_changes_nothing(leak: str, before: str, after: str) -> None:
    once = redact(f"{before} {leak} {after}")
    assert redact(once) == once


def test_given_secrets_go_wherever_they_stand() -> None:
    assert redact("a plain-word-secret b", ["plain-word-secret"]) == f"a {HIDDEN} b"


def test_secrets_are_values_of_variables_whose_names_say_so() -> None:
    environment = {
        "OPENAI_API_KEY": "abcdefgh1",
        "HF_TOKEN": "abcdefgh1-and-more",
        "db_password": "abcdefgh2",
        "DB_PASS": "abcdefgh3",
        "GPG_PASSPHRASE": "abcdefgh4",
        "SHORT_KEY": "short",
        "HOME": "/home/someone",
        "COMPASS_HOME": "/opt/compass",
    }
    values = secret_values(environment)
    assert values[0] == "abcdefgh1-and-more"
    assert sorted(values) == ["abcdefgh1", "abcdefgh1-and-more", "abcdefgh2", "abcdefgh3", "abcdefgh4"]
    assert redact("x abcdefgh1-and-more y", values) == f"x {HIDDEN} y"
