"""A program: serves the mocker of NVIDIA's Dynamo behind its frontend, ``python dynamo_mocker.py PORT MODEL FOLDER``.

MODEL is the folder of ``tiny_model.py``. The mocker answers with tokens from 1,000 to 1,999, so its tokenizer becomes
that model's with further words. It runs in an environment that has ai-dynamo; the processes end with their group.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

WORDS = 2_000
PLANES = ("--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq")
ENGINE = ("--num-gpu-blocks-override", "2000", "--block-size", "16", "--max-num-seqs", "8")


def words(model: Path, folder: Path) -> Path:
    """A copy of the model's tokenizer in which each number below 2,000 is a token with a text."""
    copy = folder / "model"
    copy.mkdir()
    for name in ("tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        shutil.copy(model / name, copy)
    tokenizer, config = (json.loads((model / name).read_text()) for name in ("tokenizer.json", "config.json"))
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary.update({f"\u0120w{number}": number for number in range(len(vocabulary), WORDS)})
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    (copy / "config.json").write_text(json.dumps(config | {"vocab_size": WORDS}))
    return copy


def main(port: str, model: Path, folder: Path) -> None:
    """Both, until a signal ends their group."""
    os.environ |= {"DYN_FILE_KV": str(folder / "discovery"), "DYN_TCP_RPC_HOST": "127.0.0.1"}
    served = ("--model-path", str(words(model, folder)), "--model-name", "tiny")
    subprocess.Popen([sys.executable, "-m", "dynamo.mocker", *served, *ENGINE, *PLANES])
    where = ("--http-host", "127.0.0.1", "--http-port", port, "--router-mode", "round-robin")
    subprocess.run([sys.executable, "-m", "dynamo.frontend", *where, *PLANES], check=False)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
