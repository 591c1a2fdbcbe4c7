"""Ops that make tensors, asked for one of a sparse layout: nothing is stored, or an error."""

import inspect
import itertools

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import op_registry

#: What an op of this name is called with besides an example.
ARGUMENTS = {
    "arange": (3,), "empty_strided": ((2, 3), (3, 1)), "eye": (3,), "full": ((2, 3), 1.0),
    "full_like": (1.0,), "linspace": (0, 1, 3), "logspace": (0, 1, 3), "new_full": ((2, 3), 1.0),
    "new_empty_strided": ((2, 3), (3, 1)), "new_tensor": ([1.0],), "randint": (0, 3, (2, 3)),
    "normal": (0.0, 1.0, (2, 3)),
    "randint_like": (3,), "randperm": (3,), "range": (0, 3), "scalar_tensor": (1.0,),
    "tril_indices": (3, 3), "triu_indices": (3, 3),
}  # fmt: skip
#: Of no elements stored all are zero.
ZEROS = {"zeros", "empty", "zeros_like", "empty_like", "new_zeros", "new_empty"}
#: Of a matrix stored row by row: elements where it has them.
AT_THE_PLACES = {"empty_like", "ones_like", "full_like", "randn_like"}

OPS = [
    op
    for op in op_registry.all_ops()
    if "layout" in op.names
    and op.signature.parameters["layout"].kind is inspect.Parameter.KEYWORD_ONLY
]
LAYOUTS = (tp.sparse_coo, tp.sparse_csr)


def call(op, example=None, **kwargs):
    after = "like" in op.name or op.name.startswith("new_")
    default = () if op.name.endswith("_like") else (4,) if "window" in op.name else ((2, 3),)
    first = () if not after else (tp.ones(2, 3) if example is None else example,)
    if "a" in op.names:  # of a general window
        kwargs["a"] = [0.5, 0.5]
    return op.call(*first, *ARGUMENTS.get(op.name, default), **kwargs)


def test_there_are_such_ops():
    assert len(OPS) > 30
    assert {op.name for op in OPS} >= ZEROS


@pytest.mark.filterwarnings("ignore:torch.range:UserWarning")
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_of_a_layout(op, layout):
    assert call(op, layout=tp.strided).layout is tp.strided
    if op.name not in ZEROS:
        signal = op.name.startswith("windows_")  # those of tp.signal; the error is torch's
        with pytest.raises(ValueError if signal else NotImplementedError, match=r"layout|strided"):
            call(op, layout=layout)
        return
    dense = call(op, dtype=tp.float64)
    for _ in range(2):  # a call that was cached, too
        made = call(op, layout=layout, dtype=tp.float64, requires_grad=True)
        assert made.layout is layout
        assert made.requires_grad
        assert made._nnz() == 0
        assert made.shape == dense.shape
        assert made.dtype is dense.dtype
        assert made.device == dense.device
    assert made.detach().to_dense().equal(tp.zeros(2, 3, dtype=tp.float64))
    assert call(op).layout is tp.strided


@pytest.mark.parametrize(
    ("name", "of", "layout"),
    [
        (op.name, of, layout)
        for op in OPS
        if "like" in op.name or "new_" in op.name
        for of, layout in itertools.product(LAYOUTS, (None, tp.strided, *LAYOUTS))
    ],
    ids=str,
)
def test_after_a_sparse_example(name, of, layout):
    op = op_registry.get_op(name)
    example = tp.eye(3)[:2].to_sparse(layout=of)
    wanted = of if layout is None else layout
    if name in AT_THE_PLACES and of is wanted is tp.sparse_csr:
        made = call(op, example, layout=layout)
        assert made.crow_indices().equal(example.crow_indices())
        assert made.col_indices().equal(example.col_indices())
        assert made.crow_indices().data_ptr() != example.crow_indices().data_ptr()
        assert made.values().shape == example.values().shape
        assert made.dtype is call(op).dtype
        return
    if name == "empty_like" and of is tp.sparse_csr:
        with pytest.raises(RuntimeError, match="different sparse layout is not supported"):
            call(op, example, layout=layout)
        return
    if wanted is not tp.strided and name not in ZEROS:
        with pytest.raises(NotImplementedError, match=name):
            call(op, example, layout=layout)
        return
    made, dense = call(op, example, layout=layout), call(op)
    assert made.layout is wanted
    assert made.shape == dense.shape
    assert made.dtype is dense.dtype


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "op",
    [op for op in OPS if not {"input", "window_length", "M"} & set(op.names)],
    ids=lambda op: op.name,
)
def test_out_becomes_a_tensor_in_which_nothing_is_stored(op, layout):
    out = tp.ones(4, 5).to_sparse(layout=layout)
    if op.name not in ZEROS:
        with pytest.raises(NotImplementedError, match="layout"):
            call(op, out=out)
        assert out._nnz() == 20
        return
    with pytest.raises(RuntimeError, match="does not match dtype of out"):
        call(op, out=out, dtype=tp.int64)
    assert call(op, out=out) is out
    assert out._nnz() == 0
    assert out.layout is layout
    assert out.to_dense().equal(tp.zeros(2, 3))


def test_of_shapes_that_a_layout_does_not_have():
    assert tp.zeros((), layout=tp.sparse_coo).shape == ()
    assert tp.zeros(4, 2, 3, layout=tp.sparse_coo).sparse_dim() == 3
    with pytest.raises(RuntimeError, match="size \\[3\\]"):
        tp.zeros(3, layout=tp.sparse_csr)
    assert tp.zeros(4, 2, 3, layout=tp.sparse_csr).crow_indices().shape == (4, 3)


def test_an_example_keeps_its_dense_dimensions():
    example = tp.ones(2, 3).to_sparse(1)
    assert tp.zeros_like(example).sparse_dim() == 1
    assert tp.zeros_like(example, dtype=tp.float64).values().dtype is tp.float64
