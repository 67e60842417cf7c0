"""Agents that call tools: each answer calls a tool, whose result is sent together with everything before it.

Measures TTFT and latency by turn, a row of the report for the plan, the steps and the summary, and the duration of
whole tasks. `--client-rps` counts tasks. Works with vLLM, SGLang, TGI, DJL, Ollama; on EKS, HyperPod, OpenShift, EC2.
"""

import os
import random

from inference_benchmarker import Turn
from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
MODEL = "demo"  # a name that URL/v1/models lists
MOST_STEPS = 8  # calls of tools of a task
PROMPT_WORDS = 400  # instructions and the descriptions of the tools, the same for all tasks
RESULT_WORDS = 120  # of a tool's result
MAX_TOKENS = 32  # of each answer, at most
TOOL_S = 1.8  # the median time of a tool's work, lognormal
SLOW_SHARE = 0.3  # of calls take long: a build, a search, a person who is asked
SLOW_S = 25.0

WORDS = ("open", "read", "line", "test", "file", "call", "type", "name", "list", "value", "class", "error")


def invoke_factory(endpoint_name=None):
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    return OpenAIClient(f"{URL}/v1", api_key=key).stream_chat


def session_factory():
    prompt = " ".join(random.Random(0).choices(WORDS, k=PROMPT_WORDS))

    def session(number):
        chosen = random.Random(number)
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": f"Task {number}: fix it."}]
        steps = chosen.randint(1, MOST_STEPS)
        for step in range(steps + 1):
            label = "plan" if step == 0 else "step" if step < steps else "summary"
            payload = {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": list(messages)}
            answer = yield Turn(payload, think_s=tool_time(chosen), label=label)
            result = " ".join(chosen.choices(WORDS, k=RESULT_WORDS))
            messages += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": result}]

    return session


def tool_time(chosen):
    return SLOW_S if chosen.random() < SLOW_SHARE else TOOL_S * chosen.lognormvariate(0, 0.8)
