"""The folder of a ranking: ``ranking.json``, its text, and the folder of each search."""

from __future__ import annotations

from server_capacity.stored import Stored
from server_capacity.variants.text import to_text

KIND = "ranking"
FILE = "ranking.json"
_STORED = Stored(FILE, "ranking.txt", to_text)
save, load, is_ranking = _STORED.save, _STORED.load, _STORED.is_in
