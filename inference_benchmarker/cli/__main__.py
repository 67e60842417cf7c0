"""``python -m inference_benchmarker.cli``, as the launcher of a clone calls it."""

from __future__ import annotations

import sys

from inference_benchmarker.cli.dispatch import main

sys.exit(main())
