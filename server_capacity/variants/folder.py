"""The folder of a ranking: ``ranking.json``, its text, and the folder of each search."""

from __future__ import annotations

from server_capacity.results.checked import check_ranking
from server_capacity.stored import Stored
from server_capacity.variants.text import to_text

KIND = "ranking"
FILE = "ranking.json"
_STORED = Stored(FILE, "ranking.txt", to_text, check_ranking)
save, load, read, is_ranking = _STORED.save, _STORED.load, _STORED.read, _STORED.is_in
