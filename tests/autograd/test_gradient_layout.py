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
