"""``out=`` of ops of sparse tensors, products that broadcast, and what is checked of parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.sparse.arithmetic import LINEAR, ZERO_AT_ZERO
from tensorplug.testing import make_tensor

LAYOUTS = ["sparse_coo", "sparse_csr"]

UNARY = [name for name in (*ZERO_AT_ZERO, *LINEAR) if name not in ("real", "imag", "conj")]
BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda x, **out: tp.add(x, x, **out),
    "sub": lambda x, **out: tp.sub(x, x, alpha=3, **out),
    "mul": lambda x, **out: tp.mul(x, x, **out),
    "mul of a number": lambda x, **out: tp.mul(x, 2.5, **out),
    "div": lambda x, **out: tp.div(x, 2, **out),
    "pow": lambda x, **out: tp.pow(x, 2, **out),
    "mm": lambda x, **out: tp.mm(x, tp.ones(4, 2), **out),
    "matmul": lambda x, **out: tp.matmul(x, tp.ones(4, 2), **out),
    "mv": lambda x, **out: tp.mv(x, tp.ones(4), **out),
    "addmm": lambda x, **out: tp.addmm(tp.ones(3, 2), x, tp.ones(4, 2), **out),
    "added to a dense one": lambda x, **out: tp.add(tp.ones(3, 4), x, **out),
}
CALLS = {name: get_op(name).call for name in UNARY} | BINARY


def example(layout: str) -> Any:
    x = make_tensor(3, 4, dtype=tp.float32, low=0.1, high=0.9)
    return (x * (make_tensor(3, 4, dtype=tp.int64, low=0, high=1) > 0)).to_sparse(
        layout=getattr(tp, layout)
    )


def target(made: Any, stored: float, dtype: tp.DType) -> Any:
    """Return a tensor of the layout of `made`, that stores other elements."""
    return tp.full(made.shape, stored, dtype=dtype).to_sparse(layout=made.layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_out_holds_what_is_returned(name: str, layout: str) -> None:
    x = example(layout)
    before = x.to_dense().tolist()
    made = CALLS[name](x)
    for stored in (0, 1):
        out = target(made, stored, made.dtype)
        assert CALLS[name](x, out=out) is out
        assert out.layout is made.layout
        assert out.to_dense().tolist() == made.to_dense().tolist()
        out.zero_()
        assert x.to_dense().tolist() == before  # nothing is shared with what went in
    out = target(made, 1, tp.float64)
    assert CALLS[name](x, out=out).dtype is tp.float64
    if made.dtype is tp.float32:
        with pytest.raises(RuntimeError, match="result type Float can't be cast"):
            CALLS[name](x, out=target(made, 1, tp.int64))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["sin", "mm"])
def test_out_is_of_the_layout_of_the_result_and_records_nothing(name: str, layout: str) -> None:
    x = example(layout)
    made = CALLS[name](x)
    for other in (tp.strided, tp.sparse_coo, tp.sparse_csr):
        if other is not made.layout:
            with pytest.raises(RuntimeError, match="layout"):
                CALLS[name](x, out=tp.zeros(made.shape).to_sparse(layout=other))
    with pytest.raises(RuntimeError, match="layout"):
        tp.sin(tp.ones(3, 4), out=x)
    out = target(made, 1, tp.float32)
    with pytest.raises(RuntimeError, match="support automatic differentiation"):
        CALLS[name](x.clone().requires_grad_(), out=out)
    with pytest.raises(RuntimeError, match="support automatic differentiation"):
        CALLS[name](x, out=target(made, 1, tp.float32).requires_grad_())
    assert out.to_dense().eq(1).all()
    with tp.no_grad():
        CALLS[name](x.clone().requires_grad_(), out=out)
    assert out.to_dense().tolist() == made.to_dense().tolist()


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (3, 1), (1, 1)])
def test_dense_dimensions_of_products_broadcast(shape: tuple[int, int]) -> None:
    x = make_tensor(4, 3, 4, dtype=tp.float64)
    y = make_tensor(4, *shape, dtype=tp.float64)
    expected = (x * y).tolist()
    assert (x.to_sparse(1) * y.to_sparse(1)).to_dense().tolist() == expected
    assert (y.to_sparse(1) * x.to_sparse(1)).to_dense().tolist() == expected
    with pytest.raises(RuntimeError, match="one shape"):
        x.to_sparse(1) * y[:1].to_sparse(1)


def test_a_number_is_the_value_of_one_place() -> None:
    assert tp.sparse_coo_tensor([[1], [0]], 2.5, (2, 2)).to_dense().tolist() == [[0, 0], [2.5, 0]]
    with pytest.raises(RuntimeError, match="same nnz"):
        tp.sparse_coo_tensor([[0, 1]], 2.5)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        (
            lambda **o: tp.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,), is_coalesced=True, **o),
            "unc",
        ),
        (
            lambda **o: tp.sparse_coo_tensor([[2, 1]], [1.0, 2.0], (3,), is_coalesced=True, **o),
            "order",
        ),
        (
            lambda **o: tp.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 3), **o),
            "sorted and dis",
        ),
        (
            lambda **o: tp.sparse_csr_tensor([0, 2], [1, 1], [1.0, 2.0], (1, 3), **o),
            "sorted and dis",
        ),
    ],
)
def test_order_is_looked_at_where_it_is_asked_for(parts: Any, match: str) -> None:
    parts()
    with pytest.raises(RuntimeError, match=match):
        parts(check_invariants=True)
    with tp.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match=match):
        parts()
    tp.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [1.0, 2.0, 3.0], (2, 3), check_invariants=True)


@pytest.mark.parametrize("change", [lambda v: v.resize_(4, 5), lambda v: v.t_()])
def test_parts_keep_their_shape_when_given_tensors_change(change: Any) -> None:
    where, values = tp.tensor([[0], [1]]), tp.tensor([[3.0, 4.0, 5.0]])
    x = tp.sparse_coo_tensor(where, values, (1, 2, 3))
    values[0, 0] = 7  # the elements are those given
    change(where)
    change(values)
    assert x.to_dense().tolist() == [[[0, 0, 0], [7, 4, 5]]]
    starts, columns, values = tp.tensor([0, 1]), tp.tensor([1]), tp.tensor([3.0])
    y = tp.sparse_csr_tensor(starts, columns, values, (1, 2))
    for part in (starts, columns, values):
        part.resize_(3)
    assert y.to_dense().tolist() == [[0, 3]]


@pytest.mark.parametrize("first", ["int16", "int64", "float32", "float64"])
@pytest.mark.parametrize("second", ["int16", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_products_with_one_number_have_the_dtype_of_dense_ones(
    shape: tuple[int, ...], second: str, first: str
) -> None:
    x = tp.ones(shape, dtype=getattr(tp, first))
    y = tp.tensor(3, dtype=getattr(tp, second))
    expected = x * y
    for found in (x.to_sparse() * y.to_sparse(), y.to_sparse() * x.to_sparse(), x.to_sparse() * y):
        assert found.dtype is expected.dtype
        assert found.to_dense().equal(expected)


@pytest.mark.parametrize("name", [name for name in ZERO_AT_ZERO if get_op(name).inplace])
def test_in_place_elements_are_not_added_up(name: str) -> None:
    x = tp.sparse_coo_tensor([[0, 0]], [0.1, 0.2], (2,))
    with pytest.raises(RuntimeError, match=f"{name}_ requires coalesced input"):
        getattr(x, f"{name}_")()
    assert x._values().tolist() == pytest.approx([0.1, 0.2])
    whole = x.coalesce()
    assert getattr(whole, f"{name}_")() is whole
    assert whole.to_dense().tolist() == getattr(x, name)().to_dense().tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_complex_numbers_have_no_abs_in_place(layout: str) -> None:
    x = (tp.eye(2) * 2j).to_sparse(layout=getattr(tp, layout))
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        x.abs_()
    assert x.to_dense().tolist() == [[2j, 0], [0, 2j]]
