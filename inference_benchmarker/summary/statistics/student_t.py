"""Student's t: how many standard errors an interval takes to either side of a mean. Pure."""

from __future__ import annotations

import math

import numpy as np


def student_t(confidence: float, freedom: float) -> float:
    """The t that Student's distribution exceeds to either side with 1 - ``confidence``; freedom of 1 or more.

    With x = t / sqrt(freedom) = tan(a), the density over the angle a is proportional to cos(a)^(freedom - 1): its
    sum over a fine grid is turned round. To 0.1% for confidences up to 0.9999 and freedoms up to 100,000.
    """
    angle = np.linspace(0, np.pi / 2, 1 << 13)
    density = np.cos(angle) ** (freedom - 1)
    total = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
    return float(math.sqrt(freedom) * np.tan(np.interp(confidence, total / total[-1], angle)))
