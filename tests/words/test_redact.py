"""Redaction: a credential in any usual form is replaced, and what is none stays."""

from __future__ import annotations

import base64
import html
import json
import os
import random
import re
import string
import time
from functools import partial
from itertools import product
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.words import secret_encodings
from inference_benchmarker.words.redact import (
    ADDRESSES,
    ASKED_FOR,
    CUT,
    HEADERS,
    HIDDEN,
    asked_for,
    beginning,
    decided,
    excerpt,
    hidden,
    hide_values_of,
    looks_random,
    prepare,
    redact,
    secret_values,
    up_to_hosts,
    without,
)
from tests.case import case

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "Zq9xW8vU7tS6rQ5p"
CACHES = [each for each in vars(secret_encodings).values() if hasattr(each, "cache_info")]

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
    f"AUTHORIZATION: BEARER {SECRET}",
    f"Proxy-Authorization: Basic {SECRET}",
    f"authorization: {SECRET}",
    f"Authorization: Custom {SECRET}",
    f"('Authorization', 'Bearer {SECRET}')",
    f"(b'x-api-key', b'{SECRET}')",
    f"{{b'X-API-KEY': b'{SECRET}'}}",
    f"Authorization=Bearer%20{SECRET}",
    f"AWS4-HMAC-SHA256 Credential={SECRET}/20260101/eu-west-1/x/aws4_request, Signature={SECRET}",
    f"https://host/?X-Amz-Credential={SECRET}%2F20260101&X-Amz-Security-Token={SECRET}",
    f"https://host/?key={SECRET}&a=b",
    f"https://host/?sv=1&sig={SECRET}",
    f"https://host/?a=1&auth={SECRET}",
    f"https://host/api/f?code={SECRET}{SECRET}",
    f"https:\\/\\/user:{SECRET}@host",
    rf"{{\"message\": \"{{\\\"api_key\\\": \\\"{SECRET}\\\"}}\"}}",
    f"%22apiKey%22%3A%22{SECRET}%22",
    f'"X-Api-Key": ["{SECRET}"]',
    f"map[X-Api-Key:[{SECRET}]]",
    f'"password"=>"{SECRET}"',
    f"password='a phrase of {SECRET} words'",
    f"SECRET_KEY={SECRET}",
    f"AccountKey={SECRET};EndpointSuffix=x",
    f"Server=x;Pwd={SECRET};",
    f"DB_PASS={SECRET}",
    f"Ocp-Apim-Subscription-Key: {SECRET}",
    f"<SessionToken>{SECRET}</SessionToken>",
    f"aws_session_token = {SECRET}",
    f"IQoJb3JpZ2luX2Vj{SECRET}/+==",
    f"FwoGZXIvYXdzE{SECRET}",
    f"github_pat_{SECRET}",
    f"AIza{SECRET}{SECRET}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n{SECRET}==\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\\n{SECRET}\\n-----END PRIVATE KEY-----\\n",
    f"{{'Cookie': 'session={SECRET}; b={SECRET}'}}",
    f"https://host/passwd: {SECRET}",
    f'"set-cookie": "session={SECRET}; Path=/; HttpOnly"',
]


def test_a_credential_is_replaced() -> None:
    for text in LEAKS:
        with case(text):
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
        "tokens: 128, token_count=12, max_new_tokens: 1024, prompt_tokens=4096",
        "model meta-llama/Llama-3.1-8B-Instruct, endpoint my-endpoint-2026-01-01",
        "ExpiredTokenException: The security token included in the request is expired",
        "InvalidToken: Authentication failed. Invalid token: expired, or malformed token: wrong.",
        "--with-file /etc/passwd: Give a path below the current folder",
        "/run/secret: Permission denied",
        "Basic authentication failed; bearer tokens are required; WWW-Authenticate: Basic realm=models",
        "User: arn:aws:iam::123456789012:user/me is not authorized to perform: sagemaker:InvokeEndpoint",
        "authorization: denied by policy",
        "Argument --api-key: expected one argument. argument --client-secret: expected at least one argument",
        "The request signature we calculated does not match the signature you provided.",
        "cookie: none was sent. KeyError: 'input'",
        "the key: value pairs of a JSON object",
    ],
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert redact(text) == text


@given(st.sampled_from(LEAKS), st.text(max_size=20), st.text(max_size=20))
def test_redacting_twice_changes_nothing(leak: str, before: str, after: str) -> None:
    once = redact(f"{before} {leak} {after}")
    assert redact(once) == once


@pytest.mark.parametrize("name", ["key", "sig", "pwd"])
def test_a_query_may_stand_alone(name: str) -> None:
    assert redact(f"{name}={SECRET}&a=b") == f"{name}={HIDDEN}&a=b"


def test_given_secrets_go_wherever_they_stand() -> None:
    assert redact("a plain-word-secret b", ["plain-word-secret"]) == f"a {HIDDEN} b"


# Between them they have every way in which a pattern can begin, go on, and not come to its end.
BEGINNINGS = (
    *("a.", "a+", "://", "a://b@", "http://a:", ":\\/\\/", "Bearer ", "Bearer", "Basic\t\t", "key=", "api_key "),
    *("token:", 'token"', "token' , ", 'secret="', "secret='a", "_pass=", ";pwd", "token: a", "api_key\\\\"),
    *("%22token%22%3A", "│ ", "\n> ", " |\n", "\n|"),
    *("eyJ", "eyJ-", "eyJ.", "eyJaaaaaaaaaaaa.", "-eyJ", "AKIA", "AKIA-", "AKIAa", "sk-", "hf_", "ya29.", "AIza-"),
    *("-----BEGIN ", "-----BEGIN A A A", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----a", "-----"),
    *("cookie:", "cookie: a", "cookie:a=", "cookie:=", "authorization: ", "authorization: a ", "authorization:Basic\t"),
    *("Password>", "Token>a", "<Token>aaaa", "?key=", "&sig=a", "IQoJb3JpZ2lu", "FwoGZXIvYXdz-", "AQoDYXdz%"),
    *(" ", "\n", "\\", '"', "'", ",", "=", "@", "%3A", "[", "a", "A", "9", "_", "-", "é", CUT),
)
ALL_HINTS = "secret token pass pwd signature bearer basic cookie authorization :// eyJ AKIA -----BEGIN sk- ?key= "


def seconds(text: str) -> float:
    """How long the redaction of a text takes this process."""
    begun = time.process_time()
    redact(text)
    return time.process_time() - begun


def test_time_is_linear_in_a_text_that_begins_and_never_ends() -> None:
    """100 kB took 47 s where it was not; even a slow machine has some ten times what a linear search needs."""
    for each in BEGINNINGS:
        with case(each):
            assert seconds(ALL_HINTS + each * (50_000 // len(each))) < 3


@given(st.lists(st.sampled_from(BEGINNINGS), min_size=1, max_size=4))
@settings(max_examples=30)
def test_time_is_linear_in_any_mixture_of_them(parts: list[str]) -> None:
    unit = "".join(parts)
    assert seconds(ALL_HINTS + unit * (20_000 // len(unit))) < 2


@pytest.mark.parametrize("unit", ["a", "ab", "Zq9xW8vU7tS6rQ5", "%5A", "WnE5"])
def test_time_is_linear_in_a_text_that_begins_as_a_secret_does(unit: str) -> None:
    begun = time.process_time()
    without(unit * (200_000 // len(unit)), [SECRET, "a" * 100 + "b", "ab" * 40 + "+/"])
    assert time.process_time() - begun < 3


VALUES = [
    SECRET,
    "pä ss/wo+rd&?=%",
    'quo"te\\d<value>',
    "plain-word-secret",
    "0123456789abcdef" * 80,
    "\udcff-bytes-of-a-kind",
]


def in_bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def in_base64(value: str, before: int, *, url_safe: bool) -> str:
    data = b"u" * before + value.encode("utf-8", "surrogateescape") + b"tail"
    return (base64.urlsafe_b64encode if url_safe else base64.b64encode)(data).decode()


def in_base32(value: str, before: int) -> str:
    return base64.b32encode(b"u" * before + in_bytes(value) + b"tail").decode()


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "quoted": lambda value: quote(value, errors="surrogateescape"),
    "quoted whole": lambda value: quote(value, safe="", errors="surrogateescape"),
    "quoted plus": lambda value: quote_plus(value, errors="surrogateescape"),
    "in JSON": lambda value: json.dumps(value)[1:-1],
    "in JSON of letters": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "in JSON in JSON": lambda value: json.dumps(json.dumps(value))[3:-3],
    "in Python": lambda value: repr(value)[1:-1],
    "in HTML": html.escape,
    **{
        f"in base64 after {before} bytes{' for URLs' * url_safe}": partial(in_base64, before=before, url_safe=url_safe)
        for before, url_safe in product(range(4), (False, True))
    },
    "in hexadecimal digits": lambda value: in_bytes(value).hex(),
    "in hexadecimal capitals": lambda value: in_bytes(value).hex().upper(),
    "in a dump": lambda value: in_bytes(value).hex(" "),
    "in bytes of Python": lambda value: "".join(f"\\x{byte:02x}" for byte in in_bytes(value)),
    "in bytes of a URL": lambda value: "".join(f"%{byte:02X}" for byte in in_bytes(value)),
    "in UTF-16": "\0".join,
    "in UTF-16 as Python shows it": r"\x00".join,
    "coloured": lambda value: f"\x1b[31m{value[:3]}\x1b[0;1m{value[3:6]}\x1b[0m{value[6:]}",
    **{f"in base32 after {before} bytes": partial(in_base32, before=before) for before in range(6)},
    "in base64 in a URL": lambda value: quote(in_base64(value, 1, url_safe=False), safe=""),
}


def lower_hex(text: str) -> str:
    """The text with its quoted characters in lower case."""
    parts = text.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_given_value_is_found_in_every_spelling(spelling: str) -> None:
    # What else the bytes were, and the characters that both share.
    around = 24 if re.search("base(64|32)", spelling) else 8 if spelling == "coloured" else 0
    for value in VALUES:
        spelt = SPELLINGS[spelling](value)
        for written in {spelt, lower_hex(spelt)} if spelling.startswith("quoted") else {spelt}:
            with case(value, written):
                clean = without(f"before {written} after", [value])
                assert HIDDEN in clean
                assert clean.startswith("before ")
                assert clean.endswith(" after")
                assert len(clean) <= len(f"before {HIDDEN} after") + around


@given(
    st.text(string.printable, min_size=8, max_size=40).filter(lambda value: value == value.strip()),
    st.binary(max_size=5),
    st.binary(max_size=5),
)
@settings(max_examples=100)
def test_of_a_value_in_base64_next_to_nothing_is_left(value: str, before: bytes, after: bytes) -> None:
    encoded = base64.b64encode(before + value.encode() + after).decode()
    left = without(encoded, [value]).split(HIDDEN)
    assert len(left) >= 2
    assert len("".join(left)) <= 4 * (len(before) + len(after)) / 3 + 6


def test_each_line_of_a_value_is_hidden_as_logs_are_cleaned_line_by_line() -> None:
    key = "-----BEGIN X-----\nfirst-line-of-it\r\nsecond/line=of-it\nshort\n-----END X-----"
    assert without(f"a {key} b", [key]) == f"a {HIDDEN} b"
    assert without("a first-line-of-it b", [key]) == f"a {HIDDEN} b"
    assert without("a second%2Fline%3Dof-it b", [key]) == f"a {HIDDEN} b"
    assert without("a short b", [key]) == "a short b"


def test_a_short_given_value_is_hidden_as_it_stands_and_an_empty_one_not_at_all() -> None:
    assert without("abcd YWJjZA== x", ["abcd", ""]) == f"{HIDDEN} YWJjZA== x"


@given(st.integers(0, 80), st.integers(0, 60), st.integers(10, 120))
def test_a_beginning_has_no_part_of_a_secret(before: int, after: int, limit: int) -> None:
    text = "." * before + SECRET + "." * after + SECRET
    for begun in (beginning(text, limit, [SECRET]), excerpt(text, limit, [SECRET])):
        assert len(begun) <= limit
        assert not set(begun) & set(SECRET) - set(HIDDEN)
    assert beginning(text, 10_000, [SECRET]) == "." * before + HIDDEN + "." * after + HIDDEN


def test_an_excerpt_has_no_half_of_a_credential() -> None:
    """Each is cut at each of its characters, after something so long to be hidden that the cut would be seen."""
    for leak in LEAKS:
        for cut in range(1, len(leak)):
            with case(leak, cut):
                long = "token=" + "x" * (2000 - 7 - cut)
                clean = excerpt(f"{long} {leak}", 500)
                assert SECRET[:5] not in clean
                assert len(clean) < 150


def test_little_of_a_long_text_is_looked_at() -> None:
    begun = time.process_time()
    assert excerpt("a." * 25_000_000, 500) == "a." * 250
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("value", ["disabled", "Password", "changeme", "inference"])
def test_a_word_that_says_that_there_is_no_secret_is_none(value: str) -> None:
    assert secret_values({"API_KEY": value}) == []


def test_secrets_are_values_of_variables_whose_names_say_so() -> None:
    environment = {
        "OPENAI_API_KEY": "abcdefgh1",
        "HF_TOKEN": "abcdefgh1-and-more",
        "db_password": "abcdefgh2",
        "DB_PASS": "abcdefgh3",
        "GPG_PASSPHRASE": "abcdefgh4",
        "SHORT_KEY": "short",
        "KEYBOARD_LAYOUT": "pc105-layout",
        "TOKENIZER_NAME": "meta-llama/Llama-3",
        "TIKTOKEN_CACHE_DIR": "/opt/vocabularies",
        "HOME": "/home/someone",
        "COMPASS_HOME": "/opt/compass",
    }
    values = secret_values(environment)
    assert values[0] == "abcdefgh1-and-more"
    assert sorted(values) == ["abcdefgh1", "abcdefgh1-and-more", "abcdefgh2", "abcdefgh3", "abcdefgh4"]
    assert redact("x abcdefgh1-and-more y", values) == f"x {HIDDEN} y"


def test_the_values_of_headers_are_secrets_but_for_those_that_everybody_sends() -> None:
    headers = {
        "Authorization": "Basic bWU6aHVudGVyMg==",
        "X-Api-Key": "abc123",
        "X-Session": "a-long-value",
        "X-Flag": "1",
        "Accept": "application/json",
    }
    values = secret_values({HEADERS: json.dumps(headers)})
    assert set(values) == {"Basic bWU6aHVudGVyMg==", "bWU6aHVudGVyMg==", "hunter2", "abc123", "a-long-value"}
    assert redact("sent abc123 with 1 as application/json", values) == f"sent {HIDDEN} with 1 as application/json"


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", '{"a": 1}', '{"Authorization": "Basic \u00fc!"}'])
def test_what_holds_no_headers_holds_no_secrets(text: str) -> None:
    assert {value for value in secret_values({HEADERS: text}) if "Basic" not in value and "!" not in value} == set()


def test_more_names_say_that_a_value_is_a_secret() -> None:
    names = ["BASIC_AUTH", "AUTH_HEADER", "SESSION_JWT", "SLACK_WEBHOOK", "CLIENT_PEM", "PASS_CODE", "DB_PWD"]
    names += ["MY-AUTH", "A.PASS", "GH-PAT", "MY-PWD"]
    assert [name for name in names if secret_values({name: SECRET}) != [SECRET]] == []


def test_names_that_only_contain_such_a_word_do_not() -> None:
    names = ["GIT_AUTHOR_NAME", "VSCODE_HOME", "ENCODING", "CODEC", "XAUTHORITY", "PEMBROKE", "PWD", "OLDPWD"]
    assert [name for name in names if secret_values({name: SECRET})] == []


RANDOM = [
    "4f2a-9c1e-77b0-d3e8",
    "AbCd/EfG1+hJkL2/mN==",
    "OoPqwvf/ZRwURKPmugXbQe==",
    "3f9a0c77d2e14b58",
    "550e8400-e29b-41d4-a716-446655440000",
    "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEY9",
]
NAMES = [
    "us-east-1",
    "llama-3-8b-instruct-v2-prod",
    "https://models.example/v1/3f9a0c77d2e14b58",
    "16 of 3f9a0c77d2",
    "1" * 20,
    *(
        "us-east-1",
        "true",
        "1",
        "meta-llama/Llama-3.1-8B-Instruct",
        "Qwen2.5-0.5B-Instruct",
        "Qwen/Qwen2.5-72B-Instruct-AWQ",
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        "mistralai/Mistral-7B-Instruct-v0.3",
        "TheBloke/Llama-2-13B-chat-GPTQ",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
        "google/gemma-2-27b-it",
        "microsoft/Phi-3.5-mini-instruct",
        "facebook/bart-large-cnn",
        "sentence-transformers/all-MiniLM-L6-v2",
        "BAAI/bge-large-en-v1.5",
        "openai/whisper-large-v3",
        "stabilityai/stable-diffusion-xl-base-1.0",
        "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF",
        "CohereForAI/c4ai-command-r-plus",
        "gpt-4o-mini-2024-07-18",
        "gpt-3.5-turbo-0125",
        "claude-3-5-sonnet-20241022",
        "text-embedding-3-large",
        "anthropic.claude-3-haiku-20240307-v1:0",
        "amazon.titan-text-express-v1",
        "meta.llama3-1-70b-instruct-v1:0",
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-inference:2.1.0-transformers4.37.0-gpu-py310-cu118-ubuntu20.04",
        "763104351884.dkr.ecr.us-west-2.amazonaws.com/djl-inference:0.27.0-deepspeed0.12.6-cu121",
        "nvcr.io/nvidia/tritonserver:24.05-trtllm-python-py3",
        "vllm/vllm-openai:v0.6.3.post1",
        "ghcr.io/huggingface/text-generation-inference:2.3.1",
        "docker.io/library/python:3.11-slim-bookworm",
        "arn:aws:sagemaker:us-east-1:123456789012:endpoint/my-endpoint",
        "arn:aws:iam::123456789012:role/service-role/AmazonSageMaker-ExecutionRole-20240101T120000",
        "arn:aws:iam::123456789012:role/SageMakerRole",
        "arn:aws:s3:::my-bucket-2024/models/llama3",
        "ip-10-0-12-34.us-east-2.compute.internal",
        "ec2-54-12-34-56.compute-1.amazonaws.com",
        "runtime.sagemaker.eu-central-1.amazonaws.com",
        "gpu-node-17.cluster.example.com",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "00:1b:44:11:3a:b7:5e:01",
        "2024-11-05T12:30:00Z",
        "2024-11-05T12:30:00.123456+00:00",
        "20241105T120000Z",
        "2024-11-05 12:30:00",
        "2024-11-05_12-30-00",
        "/home/user/models/llama-3-8b/model-00001-of-00004.safetensors",
        "/opt/ml/model/code/inference.py",
        "/mnt/data2/checkpoints/step_12000/pytorch_model.bin",
        "./payloads/request_0001.json",
        "C:\\Users\\me\\models\\llama3-8b",
        "s3://bucket/prefix/model.tar.gz",
        "my-endpoint-2024-11-05",
        "my-endpoint-2024-11-05-12-30-45-123",
        "jumpstart-dft-meta-textgeneration-llama-3-8b",
        "huggingface-pytorch-tgi-inference-2024-05-13-10-31-17-223",
        "llama-3-8b-instruct-v2-prod",
        "llama3-8b-awq-g5-12xlarge",
        "ml.p4d.24xlarge",
        "ml.inf2.48xlarge-endpoint",
        "ml.g5.12xlarge,ml.p4d.24xlarge",
        "standard_nc24ads_a100_v4",
        "a2-ultragpu-8g-us-central1",
        "NVIDIA-A100-SXM4-80GB",
        "NVIDIA H100 80GB HBM3",
        "AmazonSageMakerFullAccess20",
        "InvokeEndpointWithResponseStream",
        "SageMakerVariantInvocationsPerInstance",
        "TargetTrackingScalingPolicy1",
        "float16,bfloat16,int8",
        "tensor_parallel_size=4",
        "max_new_tokens=1024",
        "--tensor-parallel-size=8",
        "us-east-1a,us-east-1b,us-east-1c",
        "subnet-group-2-private-az1",
        "xterm-256color-with-title",
        "en_US.UTF-8,de_DE.UTF-8",
        "Mozilla/5.0 (X11; Linux x86_64)",
        "python-requests/2.31.0",
        "application/json;charset=utf-8",
        "gzip, deflate, br;q=1.0",
        "temperature=0.7,top_p=0.95",
        "1024x1024,512x512",
        "0.1,0.5,0.9,0.95,0.99",
        "prompt-512-completion-128",
        "batch8-seq2048-fp16",
        "concurrency-16-rate-20rps",
        "release-v1.12.3-rc.1",
        "feature/JIRA-1234-add-retries",
        "build-20241105.3-main",
        "kubernetes.default.svc:443",
        "http2-prior-knowledge",
        "utf-8,latin-1,cp1252",
        "Llama-3.2-11B-Vision-Instruct",
        "Meta-Llama-3.1-405B-Instruct-FP8",
        "llama-2-7b-chat.Q4_K_M.gguf",
        "Mixtral-8x22B-v0.1-Q5_K_S",
        "Yi-1.5-34B-Chat-16K",
        "internlm2_5-20b-chat",
        "starcoder2-15b-instruct-v0.1",
        "codellama/CodeLlama-34b-Instruct-hf",
        "tiiuae/falcon-40b-instruct",
        "HuggingFaceH4/zephyr-7b-beta",
        "01-ai/Yi-34B-200K",
        "THUDM/glm-4-9b-chat-1m",
        "OpenGVLab/InternVL2-8B",
        "llava-hf/llava-v1.6-mistral-7b-hf",
        "black-forest-labs/FLUX.1-schnell",
        "neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w8a8",
        "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
        "unsloth/Llama-3.2-1B-Instruct-bnb-4bit",
        "databricks/dbrx-instruct",
        "ibm-granite/granite-3.0-8b-instruct",
        "nomic-ai/nomic-embed-text-v1.5",
        "intfloat/e5-mistral-7b-instruct",
        "Alibaba-NLP/gte-Qwen2-7B-instruct",
        "mixedbread-ai/mxbai-embed-large-v1",
        "prod-eu-west-1-chat-v3-canary",
        "team42-experiment-007",
        "blue-green-deploy-2",
        "AllTraffic-variant-1",
        "i-am-a-model-named-x9",
    ),
]


@pytest.mark.parametrize("value", RANDOM)
def test_what_looks_random_is_a_secret_where_a_file_asks_for_it(value: str) -> None:
    environment = {"MY_ENDPOINT": value, "OTHER": value[::-1], "REGION": "us-east-1", "PLAN": value.upper()}
    source = """SERVER = os.environ["MY_ENDPOINT"]; os.getenv('REGION'); os.getenv("PLAN")"""
    asked = asked_for(source, environment, shown=[value.upper()])
    assert asked == "MY_ENDPOINT,REGION"
    assert secret_values({**environment, ASKED_FOR: asked}) == [value]
    assert secret_values(environment) == []


def test_names_and_addresses_do_not_look_random() -> None:
    assert [value for value in NAMES if looks_random(value)] == []


KINDS: dict[str, Callable[[random.Random], str]] = {
    "token_hex(8)": lambda by: by.randbytes(8).hex(),
    "hex in fours": lambda by: by.randbytes(8).hex("-", 2),
    "base64 of 12 bytes": lambda by: base64.b64encode(by.randbytes(12)).decode(),
    "base64 of 16 bytes": lambda by: base64.b64encode(by.randbytes(16)).decode(),
    "token_urlsafe(16)": lambda by: base64.urlsafe_b64encode(by.randbytes(16)).decode().rstrip("="),
    "letters and digits": lambda by: "".join(by.choices(string.ascii_letters + string.digits, k=16)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_of_keys_that_are_drawn_next_to_none_is_missed(kind: str) -> None:
    by = random.Random(1)
    missed = sum(not looks_random(KINDS[kind](by)) for _ in range(20_000))
    assert missed < 200


@pytest.mark.parametrize("also", [(), ("another-secret",)])
def test_the_environments_secrets_are_hidden_whatever_is_given_too(
    monkeypatch: pytest.MonkeyPatch, also: tuple[str, ...]
) -> None:
    """There is no call without them: nobody can leave them out."""
    hide_values_of(os.environ)
    monkeypatch.setenv("MY_API_TOKEN", SECRET)
    for clean in (redact, without, partial(excerpt, limit=100), partial(beginning, limit=100)):
        assert clean(f"before {SECRET} after") == f"before {HIDDEN} after"
        given = " ".join(also)
        assert clean(f"before {SECRET} after {given}", also=also) == f"before {HIDDEN} after {given and HIDDEN}"
    monkeypatch.setenv("MY_API_TOKEN", SECRET[::-1])
    assert redact(f"before {SECRET[::-1]} after") == f"before {HIDDEN} after"


@given(st.lists(st.sampled_from(["\x1b[31m", "\x1b[0m", SECRET[:5], SECRET[5:], SECRET, "a"]), max_size=12))
def test_colours_hide_no_secret(parts: list[str]) -> None:
    clean = without("".join(parts), [SECRET])
    assert SECRET not in re.sub(r"\x1b\[[0-9;]*m", "", clean)
    if not any("\x1b" in part for part in parts):
        assert clean == "".join(parts).replace(SECRET, HIDDEN)


@pytest.mark.parametrize(("other", "left"), [(SECRET[2:14], "beforeand more"), (SECRET[4:] + "and more", "before")])
def test_of_coloured_secrets_that_overlap_nothing_is_left(other: str, left: str) -> None:
    for at in (6, 9):
        text = f"before{SECRET[:at]}\x1b[0m{SECRET[at:]}and more"
        clean = re.sub(r"\x1b\[[0-9;]*m", "", without(text, [SECRET, other]))
        assert clean.replace(HIDDEN, "") == left


KEY_FOLDED = "A1b2x7Kq93mZplA1b2x7Kq93mZpl"


@pytest.mark.parametrize("spelling", ["plain", "in hexadecimal digits", "in base64 after 0 bytes"])
def test_a_key_on_lines_is_hidden_also_within_a_frame(spelling: str) -> None:
    text = SPELLINGS[spelling](KEY_FOLDED)
    for before, after in product(("", "│ ", "  │ ", "> ", "> > ", "| ", "┃ "), ("", "        │", " |")):
        lines = [f"{before}{text[at : at + 12]}{after}" for at in range(0, len(text), 12)]
        with case(before, after):
            clean = without("\n".join(["begin", *lines, "end"]), [KEY_FOLDED])
            assert not any(line[len(before) :][:8] in clean for line in lines if len(line) > len(before + after) + 8)
            assert clean.startswith(f"begin\n{before}")
            assert clean.endswith("end")


def test_a_key_of_several_lines_is_hidden_within_a_frame() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0B\n-----END PRIVATE KEY-----"
    framed = "\n".join(f"│ {line:40} │" for line in key.split("\n"))
    for clean in (redact(framed), without(framed, [key])):
        assert "MIIEv" not in clean
        assert "hkiG" not in clean


def test_headers_for_a_collector_are_secrets() -> None:
    found = secret_values({"OTEL_EXPORTER_OTLP_HEADERS": "x-scope=4f9a%2Bcollector-key,content-type=text/plain"})
    assert found == ["4f9a+collector-key"]
    key = "hcaik_01jq8xk2mz9"
    for written in (f"x-team: {key}", f"x-team {key}", f"Bearer abc=x,{key}", f"x-team ={key}", f"x-team: '{key}'"):
        assert key in secret_values({"OTEL_EXPORTER_OTLP_HEADERS": written}), written
    for written in (f"x-team:={key}", f"-H x-team:{key}", f"x-team={key},x-team=other", f'x-team="{key}"'):
        assert key in secret_values({"OTEL_EXPORTER_OTLP_HEADERS": written}), written


def test_the_traces_of_the_users_own_code_have_headers_for_a_collector_too() -> None:
    assert secret_values({"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-team=hcaik_01jq8xk2mz9"}) == ["hcaik_01jq8xk2mz9"]


def test_the_password_in_an_address_is_a_secret() -> None:
    environment = {
        "HTTPS_PROXY": "http://me:pr0xy%2Fpass@proxy:3128",
        "STORES": "redis://me@home:r3dis-pass@a,amqp://guest:guest@b",
        "PLAIN": "https://host/path?to=me:not-a-pass@home",
        ADDRESSES: "http://me:sh0rt@host",
    }
    assert sorted(secret_values(environment)) == ["pr0xy%2Fpass", "pr0xy/pass", "r3dis-pass", "sh0rt"]


@pytest.mark.parametrize("password", ["o'neill-s3cret", "p@ss-w0rd", "ya29." + "x9" * 2000])
def test_a_password_of_any_length_and_with_signs_that_an_address_may_have_is_a_secret(password: str) -> None:
    address = f"http://me:{password}@[::1]:8080/path"
    assert password in secret_values({"PIP_INDEX_URL": address})
    assert password in secret_values({ADDRESSES: " ".join(up_to_hosts(address))})
    assert redact(address) == f"http://{HIDDEN}@[::1]:8080/path"
    assert "me-pass-w0rd" in secret_values({"SETTING": "'http://a:me-pass-w0rd@b','c@d'"})


def test_the_password_of_basic_is_a_secret_in_whatever_encoding() -> None:
    for encoding in ("utf-8", "latin-1"):
        basic = base64.b64encode("me:pässwörtchen".encode(encoding)).decode()
        assert "pässwörtchen" in secret_values({HEADERS: json.dumps({"Authorization": f"Basic {basic}"})})


def test_the_user_in_a_given_address_without_a_password_is_a_secret() -> None:
    basic = base64.b64encode(b"4pi-k3y-0f-me:").decode()
    assert "4pi-k3y-0f-me" in secret_values({HEADERS: json.dumps({"Authorization": f"Basic {basic}"})})
    for address in ("http://4pi-k3y-0f-me@", "http://4pi-k3y-0f-me:@"):
        environment = {ADDRESSES: f"{address} ssh://admin@", "HOME": "ssh://ec2-user@host", "DB": "x://postgres:@host"}
        assert secret_values(environment) == ["4pi-k3y-0f-me"]


LINE, OWN = "MIIEvQIBADANBgkq", "hkiG9w0BQADANBgk"
CHAIN = f"-----BEGIN CERTIFICATE-----\n{LINE}\n{LINE}\n-----END CERTIFICATE-----\n"
KEY = f"-----BEGIN PRIVATE KEY-----\n{OWN}\n-----END PRIVATE KEY-----\n"
CUT_OFF = f"-----BEGIN CERTIFICATE-----\n{LINE}\n"


BROKEN = f"{CUT_OFF}----END CERTIFICATE-----\n"


@pytest.mark.parametrize("value", [CHAIN + KEY, KEY + CHAIN, CUT_OFF + KEY, BROKEN + KEY])
def test_the_lines_of_a_certificate_are_public_and_those_of_a_key_are_not(value: str) -> None:
    assert LINE in without(f"x {LINE} y", [value])
    assert OWN not in without(f"x {OWN} y", [value])
    for whole in (value, value.replace("\n", "\\n"), base64.b64encode(value.encode()).decode()):
        cleaned = without(f"x {whole} y", [value])
        assert OWN not in cleaned
        assert base64.b64encode(OWN.encode()).decode()[4:-8] not in cleaned


def test_a_certificate_within_a_line_takes_nothing_of_a_secret_away() -> None:
    value = json.dumps({"user": "app", "pin": "Zq9xW8vU7tS6rQ5p", "ca": CHAIN, "hmac": "kk8xW8vU7tS6rQ5p"})
    cleaned = without(f"cannot connect with {value}", [value])
    assert ("Zq9x" in cleaned, "kk8x" in cleaned) == (False, False)


def test_nothing_is_left_to_compute_once_a_wave_begins() -> None:
    hide_values_of({"API_KEY": "hcaik_01jq8xk2mz9"})
    try:
        prepare()
        before = [cache.cache_info().misses for cache in CACHES]
        assert "hcaik" not in redact("x hcaik_01jq8xk2mz9 %20\n")
        decided("x hcaik_01jq8\n")
        hidden("a\n")
        assert [cache.cache_info().misses for cache in CACHES] == before
    finally:
        hide_values_of(os.environ)
