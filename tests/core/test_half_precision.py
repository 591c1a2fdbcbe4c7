"""Half precision is computed in float32 and rounded once, whatever the steps of an op are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.testing import make_tensor

Function = Callable[[tp.Tensor], tp.Tensor]

FUNCTIONS: dict[str, Function] = {
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(1),
    "softmin": lambda x: F.softmin(x, 1),
    "logsumexp": lambda x: x.logsumexp(0),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(1),
    "nansum": lambda x: x.nansum(1),
    "prod": lambda x: (x / 4).prod(0),
    "var": lambda x: x.var(0),
    "std": lambda x: x.std(1),
    "norm": lambda x: x.norm(dim=0),
    "trapezoid": lambda x: tp.trapezoid(x, dx=0.3),
    "trapezoid along the first": lambda x: tp.trapezoid(x, dim=0),
    "linspace": lambda x: tp.linspace(-7, 12.3, 137, dtype=x.dtype),
    "logspace": lambda x: tp.logspace(0, 3.3, 100, dtype=x.dtype),
    "logspace of another base": lambda x: tp.logspace(-1, 2, 137, base=2.5, dtype=x.dtype),
    "arange": lambda x: tp.arange(-1, 13.3, 0.3, dtype=x.dtype),
    "layer_norm": lambda x: F.layer_norm(x, (32,)),
    "rms_norm": lambda x: F.rms_norm(x, (32,)),
    "RMSNorm": lambda x: tp.nn.RMSNorm(32, dtype=x.dtype)(x),
    "rms_norm of small numbers": lambda x: F.rms_norm(x * 2.0**-9, (32,)),
    "group_norm": lambda x: F.group_norm(x, 4),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "normalize": lambda x: F.normalize(x, dim=0),
    "mse_loss": lambda x: F.mse_loss(x, x.flip(0)),
    "interpolate": lambda x: F.interpolate(x[None], 50, mode="linear"),
}


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_double_precision_rounded(name: str, dtype: tp.DType) -> None:
    """Where float32's own error decides between two neighbours, it may fall to the other: a rare element."""
    function: Any = FUNCTIONS[name]
    x = make_tensor(32, 32, dtype=dtype, low=-3.0, high=3.0)
    found = function(x)
    expected = function(x.double())
    if name == "RMSNorm" or "rms_norm" in name:  # float64 has a smaller epsilon: by the definition
        wide = (x * (2.0**-9 if "small" in name else 1.0)).double()
        expected = wide / (wide.square().mean(1, keepdim=True) + tp.finfo(tp.float32).eps).sqrt()
    assert found.dtype is dtype
    off = int((found != expected.to(dtype)).sum())
    assert off <= max(2, 0.01 * found.numel())


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_renorm_rounds_its_scale_and_the_product(p: float, dtype: tp.DType) -> None:
    x = make_tensor(32, 32, dtype=dtype, low=-3.0, high=3.0)
    wide = x.double()
    scale = (1 / (wide.abs().pow(p).sum(1, keepdim=True).pow(1 / p) + 1e-7)).to(dtype)
    expected = (wide * scale.double()).to(dtype)
    assert (x.renorm(p, 0, 1.0) != expected).double().mean().item() <= 0.04


@pytest.mark.parametrize("dtype", [tp.uint8, tp.int64, tp.bool])
def test_integers_have_no_rms_norm(dtype: tp.DType) -> None:
    with pytest.raises(NotImplementedError, match=r"rms_norm.*not implemented"):
        F.rms_norm(tp.ones(2, 3, dtype=dtype), (3,))
