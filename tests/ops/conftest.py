"""Comparison of an expression here with the same one in torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tensorplug as tp
from tensorplug.testing import assert_close


def _ours(value: Any) -> Any:
    """Return a torch tensor as one of ours."""
    if value.dtype.is_floating_point and value.dtype.itemsize == 2:
        wide = tp.from_numpy(value.detach().float().numpy().copy())
        return wide.to(getattr(tp, str(value.dtype).removeprefix("torch.")))
    return tp.from_numpy(value.detach().resolve_conj().numpy().copy())


def _same(got: Any, wanted: Any, label: str) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(got, tuple), f"{label}: {got!r}"
        for ours, theirs in zip(got, wanted, strict=True):
            _same(ours, theirs, label)
    elif hasattr(wanted, "numpy"):
        assert isinstance(got, tp.Tensor), f"{label}: {got!r}"
        assert str(got.dtype).split(".")[-1] == str(wanted.dtype).split(".")[-1], label
        message = lambda text: f"{label}: {text}"  # noqa: E731
        assert_close(got.detach(), _ours(wanted), equal_nan=True, msg=message)
    else:
        assert got == wanted, label


@pytest.fixture
def agree() -> Callable[..., None]:
    """Return ``agree(function, *arrays)``.

    It calls ``function(module, *tensors)`` with each module and compares results, dtypes,
    shapes and gradients, or the errors' types.
    """
    torch = pytest.importorskip("torch", reason="torch is the reference of these comparisons")

    def compare(function: Callable[..., Any], *data: Any, gradient: bool = False) -> None:
        label = f"{function.__name__} of {data!r}"
        theirs = [torch.tensor(d) for d in data]
        ours = [_ours(t) for t in theirs]
        if gradient:
            for tensor in (*theirs, *ours):
                tensor.requires_grad_()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = function(torch, *theirs)
        except Exception as error:
            kinds = (IndexError, TypeError, ValueError, RuntimeError)
            with pytest.raises(next(kind for kind in kinds if isinstance(error, kind))):
                function(tp, *ours)
            return
        got = function(tp, *ours)
        _same(got, wanted, label)
        if gradient:
            for tensor, module in ((got, tp), (wanted, torch)):
                weights = module.arange(tensor.numel()).reshape(tensor.shape) + 1
                total = (tensor * weights).sum()
                (total.real if total.is_complex() else total).backward()
            for mine, other in zip(ours, theirs, strict=True):
                _same(mine.grad, other.grad, f"gradient of {label}")

    return compare
