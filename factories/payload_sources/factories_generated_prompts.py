"""Generated prompts with a given number of tokens, and answers with a given maximum.

Measures TTFT and ITL at one size of prompt and answer. For vLLM, SGLang, TGI, DJL, Ollama and any other server with an
OpenAI-compatible API. Each word of WORDS, with the space before it, is one token for GPT-2, GPT-4, GPT-4o, Llama 2 and
3, Mistral 7B and Qwen 3, so the text has exactly as many tokens as words; other tokenizers may need more. A server's
chat template adds some: `benchmark check` shows what the server counted, and TEMPLATE_TOKENS subtracts the difference.
"""

import os
import random

from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
MODEL = "demo"  # a name that URL/v1/models lists
INPUT_TOKENS = 512  # of a prompt
TEMPLATE_TOKENS = 0  # what the server counts beyond the words
MAX_TOKENS = 64  # the most an answer may have
MORE = {}  # what else a request says: {"ignore_eos": True} makes it the least, too, on vLLM and SGLang
WORDS = """
time year people way day man thing woman life child world school state family student group country problem hand
part place case week company system program question work government number night point home water room mother area
money story fact month lot right study book eye job word business issue side kind head house service friend father
power hour game line end member law car city community name team minute body information back parent face level
office door health person art history party result change reason research air force education foot boy age policy
music road light white black green red blue north south east west street table paper ground river field market
window letter doctor color picture animal plant tree stone metal glass fire wind winter spring
""".split()


def invoke_factory(endpoint_name=None):
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    client = OpenAIClient(f"{URL}/v1", api_key=key)
    return client.stream_chat


def payload_factory():
    draw = random.Random()  # without a seed: no prompt is ever sent twice, so none comes from a prefix cache

    def build():
        text = " ".join(draw.choices(WORDS, k=INPUT_TOKENS - TEMPLATE_TOKENS))
        return {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": [{"role": "user", "content": text}], **MORE}

    return {"pre_computed": False, "input": build}
