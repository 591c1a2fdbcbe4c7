"""Writes that are refused before anything changes: inputs of other shapes, dtypes, tensors with gradients."""

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import all_ops

BINARY = [
    op
    for op in all_ops()
    if op.pointwise and op.names[:2] == ("input", "other") and not op.inplace_of and op.outputs
]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_an_input_is_not_made_larger_by_out(op):
    dtype = tp.int64 if op.name.startswith(("bitwise", "gcd", "lcm")) else tp.float32
    small, large = tp.ones(1, 3, dtype=dtype), tp.ones(2, 3, dtype=dtype)
    before = small.clone()
    with tp.no_grad():
        if op.call(small, large).dtype != dtype:
            small, before = small.bool(), before.bool()
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            op.call(small, large, out=small)
    assert tp.equal(small, before)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("dtype", [tp.bool, tp.int64], ids=str)
def test_polygamma_of_integers_is_not_written_to_them(n, dtype):
    x = tp.tensor([1, 2]).to(dtype)
    before = x.clone()
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        x.polygamma_(n)
    assert tp.equal(x, before)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_what_requires_grad_keeps_its_size(size, scale):
    x = tp.rand(3, requires_grad=True)
    x = x if scale is None else x * scale
    for write in (lambda: x.resize_(size), lambda: x.resize_as_(tp.rand(size))):
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            write()
    assert x.shape == (3,)


def test_narrow_copy_writes_to_out():
    x, out = tp.rand(3, 4), tp.empty(3, 2)
    assert tp.narrow_copy(x, 1, 1, 2, out=out) is out
    assert tp.equal(out, x[:, 1:3])
    with pytest.raises(RuntimeError, match="dtype"):
        tp.narrow_copy(x, 1, 1, 2, out=tp.empty(3, 2, dtype=tp.float64))


class Uniques:
    """A plugin with kernels for ops of any number of outputs."""

    name = "uniques"

    @tp.plugin.hookimpl
    def tensorplug_kernels(self):
        table = tp.plugin.KernelTable("cpu", priority=10_000)

        @table.kernel("unique")
        def unique(input, sorted, return_inverse, return_counts, dim):
            import numpy as np

            return np.unique(
                input, return_inverse=return_inverse, return_counts=return_counts, axis=dim
            )

        return table


def test_a_kernel_may_return_as_many_outputs_as_are_asked_for():
    x = tp.tensor([3.0, 1.0, 3.0])
    expected = [tp.unique(x), tp.unique(x, return_inverse=True, return_counts=True)]
    tp.plugins.register(Uniques())
    try:
        for _ in range(4):
            assert tp.equal(tp.unique(x), expected[0])
            found = tp.unique(x, return_inverse=True, return_counts=True)
            assert all(map(tp.equal, found, expected[1]))
    finally:
        tp.plugins.unregister("uniques")
