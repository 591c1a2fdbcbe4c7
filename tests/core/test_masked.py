"""``tp.masked``: against NumPy's masked arrays, and against torch over masks, dimensions and dtypes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import masked
from tensorplug.compat import masked_parts

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


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, (), 0, -1, (0, -1)])
@pytest.mark.parametrize("name", [name for name in masked.__all__ if name != "logaddexp"])
def test_the_parts_of_masked_functions(name: str, dim: Any, keepdim: bool) -> None:
    """Where a result is of any element, by counting; and what a function makes of its parts."""
    op, x = getattr(tp.masked, name), tp.tensor(NUMBERS)
    mask = tp.tensor(MASKS[2])
    assert masked_parts.input_mask(x, mask=mask[:1]).tolist() == [MASKS[2][0]] * len(NUMBERS)
    order = (2.0,) if name in ("norm", "normalize") else ()
    found = masked_parts.output_mask(op, x, *order, dim, mask=mask, keepdim=keepdim)
    if name in ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"):
        assert found.tolist() == MASKS[2]
    else:
        axes = masked_parts.canonical_dim(dim, 2)
        assert axes == {None: (0, 1), (): (0, 1), 0: (0,), -1: (1,), (0, -1): (0, 1)}[dim]
        expected = np.array(MASKS[2]).sum(axes, keepdims=keepdim) > 0
        assert found.tolist() == expected.tolist()
    with pytest.raises(ValueError, match="requires explicit mask"):
        masked_parts.output_mask(op, x, *order, dim)


def test_the_parts_of_masked_functions_are_of_these_alone() -> None:
    x = tp.tensor(NUMBERS)
    for op in (tp.sin, tp.masked.logaddexp, "sum"):
        with pytest.raises(ValueError, match="expected masked operation"):
            masked_parts.output_mask(op, x, mask=tp.tensor(MASKS[2]))
    filled = masked_parts.combine_input_and_mask(tp.masked.amax, x, tp.tensor(MASKS[2]))
    assert filled.amax(1).tolist() == tp.masked.amax(x, 1, mask=tp.tensor(MASKS[2])).tolist()


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr])
def test_masks_may_be_sparse(layout: tp.layout) -> None:
    x, mask = tp.tensor(NUMBERS), tp.tensor(MASKS[2])
    expected = tp.masked.sum(x, 1, mask=mask).tolist()
    assert tp.masked.sum(x, 1, mask=mask.to_sparse(layout=layout)).tolist() == expected


def parts_of(shape: tuple[int, int], sparse_dim: int, layout: tp.layout) -> tuple[Any, Any]:
    """Return a sparse tensor and a mask, some elements of either where the other stores none."""
    numbers = np.arange(-5.0, 7.0).reshape(shape) * ((np.arange(12) % 3) > 0).reshape(shape)
    mask = ((np.arange(12) % 4) > 1).reshape(shape)
    mask[1] = False
    made: list[Any] = [
        tp.tensor(array).to_sparse(sparse_dim)
        if layout is tp.sparse_coo
        else tp.tensor(array).to_sparse(layout=layout)
        for array in (numbers, mask)
    ]
    return made[0], made[1]


@pytest.mark.parametrize(
    ("layout", "sparse_dim", "keepdim"),
    [
        (tp.sparse_coo, 2, False),
        (tp.sparse_coo, 2, True),
        (tp.sparse_coo, 1, False),
        (tp.sparse_coo, 1, True),
        (tp.sparse_csr, 2, True),
    ],
)
@pytest.mark.parametrize("dim", [None, 0, 1, (), (0, 1)])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_reductions_of_sparse_tensors(
    name: str, dim: Any, layout: tp.layout, sparse_dim: int, keepdim: bool
) -> None:
    x, mask = parts_of((3, 4), sparse_dim, layout)
    op = getattr(tp.masked, name)
    dense = mask.to_dense()
    axes = (0, 1) if dim is None or dim == () else dim
    function = {"amax": "max", "amin": "min"}.get(name, name)
    expected = getattr(np.ma.array(x.to_dense(), mask=~dense.numpy()), function)(
        axes, keepdims=keepdim
    )
    for given in (mask, dense, dense.to_sparse(), dense.to_sparse_csr()):
        if given.layout is tp.strided or given.sparse_dim() == sparse_dim:
            found = op(x, dim, keepdim=keepdim, mask=given)
            assert found.layout is layout
            np.testing.assert_allclose(
                np.ma.filled(np.ma.array(found.to_dense(), mask=np.ma.getmaskarray(expected)), 7),
                np.ma.filled(expected, 7),
            )


@pytest.mark.parametrize("layout", [tp.sparse_coo, tp.sparse_csr])
@pytest.mark.parametrize("stored", [(), (0.0,), (3.0,), (-2.0, 0.0)])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_a_reduction_of_all_that_a_sparse_tensor_stores(
    name: str, stored: tuple[float, ...], layout: tp.layout
) -> None:
    """Of nothing it is what is neutral, which is stored unless it is zero."""
    x = tp.zeros(2, 3)
    x[0, : len(stored)] = tp.tensor(stored)
    mask = tp.zeros(2, 3, dtype=tp.bool)
    mask[0, : len(stored)] = True
    op = getattr(tp.masked, name)
    for keepdim in (True,) if layout is tp.sparse_csr else (True, False):
        found = op(x.to_sparse(layout=layout), (0, 1), keepdim=keepdim, mask=mask)
        expected = op(x, (0, 1), keepdim=keepdim, mask=mask)
        assert found.layout is layout
        assert found._nnz() == int(expected != 0)
        tp.testing.assert_close(found.to_dense(), expected, equal_nan=True)


def test_the_gradient_of_reductions_of_sparse_tensors() -> None:
    x, mask = parts_of((3, 4), 2, tp.sparse_coo)
    x.requires_grad_()
    tp.masked.sum(x, 1, mask=mask).to_dense().sum().backward()
    expected = mask.to_dense() & (x.detach().to_dense() != 0)
    assert x.grad.to_dense().tolist() == expected.double().tolist()


@pytest.mark.parametrize("name", ["prod", "amax", "amin", "mean"])
def test_what_is_not_stored_counts_by_a_mask_alone(name: str) -> None:
    x = tp.eye(2).to_sparse()
    with pytest.raises(ValueError, match=f"masked {name} expects explicit mask for sparse_coo"):
        getattr(tp.masked, name)(x)
    assert tp.masked.sum(x).to_dense().item() == 2
    with pytest.raises(RuntimeError, match="keepdim=False is unsupported"):
        tp.masked.sum(tp.eye(2).to_sparse_csr(), 0)


@pytest.mark.parametrize("dtype", [tp.bool, tp.uint8, tp.int16, tp.int32])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sums_and_products_of_integers_are_int64(name: str, shape: Any, dtype: tp.dtype) -> None:
    x = tp.ones(shape, dtype=dtype)
    for mask in (None, x > 0):
        for dim in (None, (), [])[: 3 if shape else 2]:
            assert getattr(tp.masked, name)(x, dim, mask=mask).dtype is tp.int64
