"""The order in memory that gradients of leaves have: the leaf's own if it leaves no gaps, else rows."""

import pytest

import tensorplug as tp

LEAVES = {
    "rows": lambda lib: lib.ones(4, 3),
    "columns": lambda lib: lib.ones(3, 4).t(),
    "gaps": lambda lib: lib.ones(4, 6)[:, ::2],
    "expanded": lambda lib: lib.ones(4, 1).expand(4, 3),
    "channels_last": lambda lib: lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last),
}
# From a new array, from one that somebody holds, in rows and in columns.
USES = {
    "new": lambda lib, x: (x * 2).sum().backward(),
    "kept": lambda lib, x: (x + 0).backward(lib.ones(x.shape)),
    "transposed": lambda lib, x: x.transpose(0, 1).backward(lib.ones(x.transpose(0, 1).shape)),
    "twice": lambda lib, x: [(x * 2).sum().backward() for _ in range(2)],
}


def layout(lib, leaf, use):
    x = LEAVES[leaf](lib).detach().requires_grad_()
    USES[use](lib, x)
    return tuple(x.grad.stride()), x.grad.tolist()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("leaf", LEAVES)
def test_gradients_lie_as_in_torch(leaf, use):
    torch = pytest.importorskip("torch", reason="torch is the reference for the order in memory")
    assert layout(tp, leaf, use) == layout(torch, leaf, use)


def test_a_dense_leaf_gives_its_gradient_its_own_order():
    assert layout(tp, "columns", "new")[0] == (1, 4)
    assert layout(tp, "gaps", "new")[0] == (3, 1)


@pytest.mark.parametrize("form", ["rows", "an offset", "columns", "expanded"])
def test_gradients_of_writes_by_strides_may_lie_anywhere(form):
    """What reaches the node begins anywhere in its memory, and need not lie row by row."""
    weights = {
        "rows": tp.arange(12.0).reshape(3, 4),
        "an offset": tp.arange(20.0)[8:].reshape(3, 4),
        "columns": tp.arange(12.0).reshape(4, 3).t(),
        "expanded": tp.arange(3.0)[:, None].expand(3, 4),
    }[form]
    x, src = tp.zeros(3, 4, requires_grad=True), tp.zeros(2, 2, requires_grad=True)
    result = tp.as_strided_scatter(x, src, (2, 2), (4, 2), 1)
    of_x, of_src = tp.autograd.grad(result, (x, src), weights)
    written = tp.zeros(3, 4, dtype=tp.bool)
    written[:2, 1::2] = True
    assert of_src.tolist() == weights[:2, 1::2].tolist()
    assert of_x.tolist() == weights.masked_fill(written, 0).tolist()
