"""What is a view, of whom, and with which gradient, under each mode, beside torch."""

from contextlib import nullcontext

import listed_views
import pytest
from listed_rows import outcome

import tensorplug as tp

torch = pytest.importorskip("torch", reason="what is a view there is the reference")
MODES = {
    "plain": lambda t: nullcontext(),
    "no_grad": lambda t: t.no_grad(),
    "inference": lambda t: t.inference_mode(),
}


def described(t, call, mode, requires_grad):
    """Return what a result shares with the tensor that it was made of."""
    base = t.arange(24.0).reshape(2, 3, 4)
    base.requires_grad_(requires_grad)
    with MODES[mode](t):
        made = call(t, base)
    place = made.data_ptr() - base.data_ptr() if made.numel() else 0
    shared = 0 <= place < 96
    strides = [s for s, size in zip(made.stride(), made.shape, strict=True) if size != 1]
    return {
        "itself": made is base,
        "view": made._is_view(),
        "of it": made._base is base,
        "at": (place, made.storage_offset(), strides) if shared and made.numel() else None,
        "shape": tuple(made.shape),
        "dtype": str(made.dtype).rpartition(".")[2],
        "requires grad": made.requires_grad,
        "leaf": made.is_leaf,
        "node": made.grad_fn is not None,
        "inference": made.is_inference(),
        "output": made.output_nr,
        "contiguous": made.is_contiguous(),
    }


def kind(result):
    return (
        [base.__name__ for base in type(result).__mro__]
        if isinstance(result, Exception)
        else result
    )


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_views(mode, requires_grad):
    different = {}
    for name, call in listed_views.CALLS.items():
        if name in listed_views.DIFFERENT.get(mode, ()):
            continue
        theirs = outcome(lambda t: described(t, call, mode, requires_grad), torch)  # noqa: B023
        ours = outcome(lambda t: described(t, call, mode, requires_grad), tp)  # noqa: B023
        if isinstance(theirs, Exception):
            same = type(theirs).__name__ in kind(ours)
        else:
            same = ours == theirs
        if not same:
            different[name] = (ours, theirs)
    assert not different
