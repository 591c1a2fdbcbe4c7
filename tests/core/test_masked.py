"""``tp.masked``: against NumPy's masked arrays, and against torch over masks, dimensions and dtypes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import masked

NUMBERS = [[1.0, -2.0, 3.5], [4.0, 0.5, 6.0]]
MASKS: list[Any] = [
    None,
    [[True, False, True], [False, True, True]],
    [[True, False, True], [False, False, False]],
    [True, False, True],
]
REDUCTIONS = ("sum", "prod", "amax", "amin", "mean", "var", "std", "logsumexp", "argmax", "argmin")
NORMALIZATIONS = ("cumsum", "cumprod", "softmax", "log_softmax", "softmin")


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std"])
def test_against_numpy(name: str) -> None:
    masked = np.ma.array(NUMBERS, mask=~np.array(MASKS[1]))
    options = {"ddof": 1} if name in ("var", "std") else {}
    expected = getattr(masked, name)(axis=1, **options).filled()
    got = getattr(tp.masked, name)(
        tp.tensor(NUMBERS, dtype=tp.float64), 1, mask=tp.tensor(MASKS[1])
    )
    np.testing.assert_allclose(got.numpy(), expected)


def both(call: Any) -> None:
    """Compare what a call returns with torch's, or its error."""
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")
    outcomes: list[Any] = []
    for lib in (tp, torch):
        try:
            result = call(lib)
            outcomes.append((result.tolist(), str(result.dtype).split(".")[-1]))
        except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError) as error:
            outcomes.append(type(error).__mro__[-3])
    ours, theirs = outcomes
    assert type(ours) is type(theirs), outcomes
    if isinstance(ours, tuple):
        assert ours[1] == theirs[1]
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    else:
        assert ours is theirs


@pytest.mark.parametrize("mask", MASKS)
def test_against_torch(mask: Any) -> None:
    def input_of(lib: Any, dtype: str) -> Any:
        return lib.tensor(NUMBERS).to(getattr(lib, dtype))

    def options(lib: Any) -> Any:
        return {"mask": None if mask is None else lib.tensor(mask)}

    for dtype in ("float32", "float64", "int64", "uint8"):
        for name, dim, keep in itertools.product(REDUCTIONS, (0, -1, None, (0, 1)), (False, True)):
            both(
                lambda lib, name=name, dim=dim, keep=keep, dtype=dtype: getattr(lib.masked, name)(
                    input_of(lib, dtype), dim, keepdim=keep, **options(lib)
                )
            )
        for name, dim in itertools.product(NORMALIZATIONS, (0, 1)):
            both(
                lambda lib, name=name, dim=dim, dtype=dtype: getattr(lib.masked, name)(
                    input_of(lib, dtype), dim, **options(lib)
                )
            )
        for order in (0.0, 1.0, 2.0, float("inf"), *[-float("inf")] * dtype.startswith("f")):
            both(
                lambda lib, order=order, dtype=dtype: lib.masked.norm(
                    input_of(lib, dtype), order, 1, **options(lib)
                )
            )
        both(lambda lib, d=dtype: lib.masked.median(input_of(lib, d), 1, **options(lib)))
        both(lambda lib, d=dtype: lib.masked.normalize(input_of(lib, d), 2.0, 1, **options(lib)))
    both(lambda lib: lib.masked.var(input_of(lib, "float32"), 1, False, **options(lib)))
    both(lambda lib: lib.masked.std(input_of(lib, "float32"), correction=0, **options(lib)))
    for name, dim in itertools.product(("sum", "prod", "mean", "var", "std"), (0, (0, 1))):
        both(
            lambda lib, name=name, dim=dim: getattr(lib.masked, name)(
                input_of(lib, "complex64"), dim, **options(lib)
            )
        )
    both(lambda lib: lib.masked.sum(input_of(lib, "int64"), dtype=lib.float32, **options(lib)))
    both(
        lambda lib: lib.masked.logaddexp(
            input_of(lib, "float32"), input_of(lib, "float32"), input_mask=options(lib)["mask"]
        )
    )


def test_the_gradient_is_zero_where_the_mask_is_false() -> None:
    x = tp.tensor(NUMBERS, requires_grad=True)
    tp.masked.logsumexp(x, mask=tp.tensor(MASKS[1])).backward()
    assert ((x.grad == 0) == ~tp.tensor(MASKS[1])).all()
    with pytest.raises(IndexError, match="higher than of the input"):
        tp.masked.sum(x[0], mask=tp.tensor(MASKS[1]))


@pytest.mark.parametrize("name", [*masked.__all__, "nothing"])
def test_neutral_elements(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is what is compared with")

    def identity(lib: Any, dtype: str, *args: float) -> Any:
        try:
            asked = lib.masked.reduction_identity if lib is tp else lib.masked._reduction_identity
            found = asked(f"masked.{name}", lib.ones(2, dtype=getattr(lib, dtype)), *args)
        except (NotImplementedError, TypeError, AssertionError):
            return "refused"
        return None if found is None else (str(found.tolist()), str(found.dtype).rpartition(".")[2])

    for dtype in ("float32", "float16", "int64", "uint8", "bool", "complex64"):
        orders = (
            (0.0, 2.0, math.inf, *[-math.inf] * dtype.startswith("f")) if name == "norm" else ()
        )
        for args in ((), *[(order,) for order in orders]):
            ours, theirs = identity(tp, dtype, *args), identity(torch, dtype, *args)
            assert ours == theirs or name == "normalize", (dtype, args)


@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_no_dimensions(shape: tuple[int, ...], keepdim: bool) -> None:
    """Torch's prod reduces over no dimension of ``[]``, other reductions, and of ``()`` all, over all."""
    torch = pytest.importorskip("torch", reason="torch is what is compared with")
    for name, none in itertools.product(("sum", "prod", "amax", "mean", "var"), ((), [])):

        def shape_of(lib: Any, name: str = name, none: Any = none) -> tuple[int, ...]:
            return tuple(getattr(lib.masked, name)(lib.ones(shape), none, keepdim=keepdim).shape)

        assert shape_of(tp) == shape_of(torch), (name, none)
