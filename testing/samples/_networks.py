"""Samples that records of several layers share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS

from ..records import OpRecord

# Sums of a dozen products, each input rounded to half precision.
SUMS = {"float16": 3e-2, "bfloat16": 2e-1}

# Sums of a dozen products come out by their order.
ORDER = {"float32": 1e-5}


def gelu(a: Any, approximate: str) -> Any:
    if approximate == "tanh":
        return 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return a * 0.5 * (1 + erf(a / math.sqrt(2)))


def layer_record(op: str, samples: Any, reference: Any, **options: Any) -> OpRecord:
    options = {"dtypes": FLOATS, "atol": SUMS, "rtol": ORDER, "torch": "", **options}
    return OpRecord(op, samples, reference, **options)
