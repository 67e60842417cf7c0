"""A program: makes a language model of two layers with random weights, and its tokenizer, from nothing but a seed.

``python -m tests.performance.served.tiny_model FOLDER`` writes it as transformers reads it, and as ``model.gguf`` for
llama.cpp. It runs in an environment that has transformers, PyTorch and gguf.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = "time year people way day thing life child world school state family"
TEMPLATE = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}assistant:"
LAYERS, HEADS, WIDTH, INNER, CONTEXT = 2, 4, 64, 128, 4096
BEGIN, END = "<s>", "</s>"


def make(folder: Path) -> None:
    """Both forms, with the same weights."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=CONTEXT,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.2,
    )
    model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_gguf(folder, model)


def make_tokenizer() -> Any:
    """Each printable character of ASCII is a token, and so are frequent pieces of the words above."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    bare = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    characters = [bare.pre_tokenize_str(chr(code))[0][0] for code in (10, *range(32, 127))]
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=characters, special_tokens=[BEGIN, END])
    tokenizer.train_from_iterator([f"{WORDS}\nuser: assistant: {WORDS}"] * 50, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BEGIN, eos_token=END, chat_template=TEMPLATE)


def write_gguf(folder: Path, model: Any) -> None:
    """``model.gguf``."""
    config = model.config
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, json.loads((folder / "tokenizer.json").read_text())["model"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, LAYERS)
    for name, tensor in model.state_dict().items():
        turned = "q_proj" in name or "k_proj" in name
        values = _interleaved(tensor) if turned else tensor
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), values.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: Any, tokenizer: dict[str, Any]) -> None:
    tokens = sorted(tokenizer["vocab"], key=tokenizer["vocab"].get)
    special, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([special if token in (BEGIN, END) else normal for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def _interleaved(tensor: Any) -> Any:
    """llama.cpp turns neighbouring pairs of a head, transformers its halves."""
    rows, columns = tensor.shape
    return tensor.reshape(HEADS, 2, rows // HEADS // 2, columns).transpose(1, 2).reshape(rows, columns)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
