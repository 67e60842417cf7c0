"""The folder of a proof: ``proof.json``, its text, and the run directory of its wave."""

from __future__ import annotations

from server_capacity.experiments.proof.text import to_text
from server_capacity.results.codec import check_proof
from server_capacity.results.stored import Stored
from server_capacity.results.waves_below import require_wave

KIND = "proof"
FILE = "proof.json"
_STORED = Stored(FILE, "proof.txt", to_text, check_proof, require_wave)
save, load, is_proof = _STORED.save, _STORED.load, _STORED.is_in
