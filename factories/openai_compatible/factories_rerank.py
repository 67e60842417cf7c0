"""Reranking of some texts for a query: latency, input tokens if the server reports them.

Works with TEI (/rerank with texts), and vLLM, SGLang, Jina, Cohere and others with /v1/rerank and documents; on EKS,
OpenShift, EC2. An answer without a score for each of the texts is a failed request. Set the address, the model and the
sizes below.
"""

import json
import os
import random
from itertools import cycle

from inference_benchmarker import Response
from inference_benchmarker.clients import HttpClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
TEI = False  # True: TEI's /rerank with texts; False: /v1/rerank with documents
BASE_PATH = "/v1"  # what stands before /rerank there; TEI has nothing
MODEL = "demo"  # TEI serves one alone, and gets no name; empty: the server's own
TEXTS = 8  # in a request
TEXT_WORDS = 100  # in a text
QUERY_WORDS = 10  # in the query

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")


class RerankError(Exception):
    """The server answered, but not with a score for each text."""


def invoke_factory(endpoint_name=None):
    """Once in each worker process. A certificate of your own authority: verify="/path/to/ca.pem"."""
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= json.loads(os.environ.get("BENCHMARK_HEADERS", "{}"))
    client = HttpClient(f"{URL}/rerank" if TEI else f"{URL}{BASE_PATH}/rerank", headers=headers)
    return lambda payload: understood(client.post(payload))


def understood(body):
    text = body[:500].decode(errors="replace")
    try:
        answer = json.loads(body)
        rows, name = (answer, "score") if TEI else (answer["results"], "relevance_score")
        scores = [float(row[name]) for row in rows]
        usage = {} if TEI else answer.get("usage") or {}
        response = Response(tokens_in=usage.get("prompt_tokens") or usage.get("total_tokens"), bytes=len(body))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RerankError(f"expected scores, but got: {text}") from error
    if len(scores) != TEXTS:
        raise RerankError(f"expected {TEXTS} scores, but got {len(scores)}: {text}")
    return response


def payload_factory():
    """Texts that differ from their first word on, in every wave: none comes from the server's prefix cache."""
    chosen = random.Random(0)
    texts = cycle([" ".join(chosen.choices(WORDS, k=TEXT_WORDS)) for _ in range(100)])

    def build():
        query = f"{os.urandom(8).hex()} {' '.join(chosen.choices(WORDS, k=QUERY_WORDS))}"
        fresh = [f"{os.urandom(8).hex()} {next(texts)}" for _ in range(TEXTS)]
        model = {"model": MODEL} if MODEL and not TEI else {}
        return {**model, "query": query, "texts" if TEI else "documents": fresh}

    return {"pre_computed": False, "input": build}
