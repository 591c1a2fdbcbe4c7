"""Tensors that are given another shape, or other memory, in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp


def test_resize_keeps_elements():
    x = tp.arange(6)
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    x.resize_(3, 2)
    assert x.shape == (3, 2)
    assert x[:2].tolist() == [[0, 1], [2, 3]]
    assert x.resize_as_(tp.zeros(0)).shape == (0,)
    assert tp.empty(0).resize_(2, 3).shape == (2, 3)


LAID = {
    "transposed": lambda x: x.t(),
    "rows": lambda x: x[1:],
    "columns": lambda x: x[:, 1:],
    "steps": lambda x: x[::2, ::2],
    "diagonal": lambda x: x.diagonal(),
    "expanded": lambda x: x[1:2].expand(3, 4),
    "scalar": lambda x: x[1, 1],
}


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "bool", "float16"])
@pytest.mark.parametrize("laid", LAID)
def test_resize_shows_the_memory_behind_a_tensor(laid, dtype):
    torch = pytest.importorskip("torch", reason="torch is the reference of this test")

    def steps(library):
        base = library.arange(12).to(getattr(library, dtype)).reshape(3, 4)
        x = LAID[laid](base)
        for size in [(2, 2), (4,), (1, 2), (6,), (0, 3), (2,)]:
            if x.storage_offset() + int(np.prod(size)) > 12:
                continue  # what lies behind may be anything
            x.resize_(size)
            yield x.tolist(), tuple(x.shape), x.stride() if x.numel() else (), x.storage_offset()
        if x.numel():
            x.zero_()
        yield base.tolist()

    assert list(steps(tp)) == list(steps(torch))


def test_resize_beyond_the_memory_keeps_what_was_there():
    base = tp.arange(6.0).reshape(2, 3)
    x = base.t()[1:]  # begins at the second element
    x.resize_(3, 3)
    assert x.flatten()[:5].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    x.zero_()
    assert base.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_resize_refuses_what_requires_grad():
    with pytest.raises(RuntimeError, match="require grad"):
        tp.ones(2, requires_grad=True).resize_(3)


def test_set_shares_memory_and_version():
    x, y = tp.zeros(2), tp.ones(3)
    x.set_(y)
    x[0] = 5.0
    assert y.tolist() == [5.0, 1.0, 1.0]
    assert x._version == y._version
    assert x.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="expected a source of float32"):
        x.set_(tp.zeros(2, dtype=tp.float64))


@pytest.mark.parametrize(
    ("turn", "shape"),
    [
        (lambda x: x.t_(), (1, 2)),
        (lambda x: x.transpose_(0, 1), (1, 2)),
        (lambda x: x.swapaxes_(0, -1), (1, 2)),
        (lambda x: x.swapdims_(0, -1), (1, 2)),
        (lambda x: x.squeeze_(), (2,)),
        (lambda x: x.squeeze_(1), (2,)),
        (lambda x: x.unsqueeze_(0), (1, 2, 1)),
    ],
)
def test_turned_in_place(turn, shape):
    x = tp.tensor([[1.0], [2.0]])
    pointer = x.data_ptr()
    assert turn(x) is x
    assert x.shape == shape
    assert x.data_ptr() == pointer
    assert x.flatten().tolist() == [1.0, 2.0]
    assert x._version == 1
    assert not x._is_view()
    y = tp.ones(2, 1, requires_grad=True) * 2
    turn(y)
    y.sum().backward()


def test_in_modes():
    with tp.inference_mode():
        x = tp.zeros(2, 3)
        v = x[0]
        v.unsqueeze_(0)
        x.t_()
        assert v.shape == (1, 3)
        assert x.shape == (3, 2)
    with tp.no_grad():
        w = tp.ones(2, 3, requires_grad=True)
        w[0].mul_(3.0)
    assert w.tolist() == [[3.0, 3.0, 3.0], [1.0, 1.0, 1.0]]
    with tp.prefer("cpu_numpy"):
        x = tp.arange(6.0).view(2, 3)
        assert x.t()[1].unsqueeze(0).expand(2, 2).tolist() == [[1.0, 4.0], [1.0, 4.0]]
        assert [part.tolist() for part in x.unbind(1)] == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_a_row_of_an_expanded_tensor_may_be_written():
    for x in (tp.tensor([1.0, 2.0]), tp.tensor([[1.0, 9.0], [2.0, 9.0]])[:, 0]):
        x.expand(3, 2)[0] = 5
        tp.broadcast_to(x, (3, 2))[1, 1] = 7
        x.expand(3, 2)[2].add_(1)
        assert x.tolist() == [6.0, 8.0]


def test_expanded_tensors_refuse_writes():
    x = tp.zeros(1, 3).expand(2, 3)
    y = tp.zeros(3).as_strided((2, 3), (0, 1))
    for write in (
        lambda: x.add_(1.0),
        lambda: x.copy_(tp.ones(2, 3)),
        lambda: x.clamp_(1.0),
        lambda: y.mul_(2.0),
        lambda: tp.add(tp.ones(2, 3), 1, out=x),
        lambda: tp.sum(tp.ones(2, 3, 4), -1, out=y),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            write()


def test_gradients_of_many_views_of_one_tensor_are_not_quadratic():
    w = tp.ones(400, 3, requires_grad=True)
    total = 0.0
    for row in (w * 2).unbind(0):
        total = total + row.sum()
    total.backward()
    assert w.grad.tolist() == [[2.0] * 3] * 400
    node = (w * 2).unbind(0)[7].grad_fn
    assert node.name() == "UnbindBackward0"


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.int32, tp.int64])
def test_negation_in_place_of_strided_memory(dtype):
    """NumPy 2.4 gets this wrong for elements of four bytes."""
    x = tp.arange(24).to(dtype).reshape(2, 3, 4)
    expected = (-x[..., 0:1].clone()).tolist()
    assert x[..., 0:1].neg_().tolist() == expected
    assert x[..., 0:1].tolist() == expected


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda x: x[1:].copy_(x[:-1]), lambda a: np.concatenate([a[:1], a[:-1]])),
        (lambda x: x[1:].add_(x[:-1]), lambda a: np.concatenate([a[:1], a[1:] + a[:-1]])),
        (lambda x: x.add_(x.t()), lambda a: a + a.T),
        (lambda x: x.div_(x[:, :1]), lambda a: a / a[:, :1]),
        (lambda x: tp.matmul(x, x, out=x), lambda a: a @ a),
        (lambda x: tp.cumsum(x, 0, out=x), lambda a: a.cumsum(0)),
        (lambda x: tp.cat([x[1:], x[:1]], out=x), lambda a: np.roll(a, -1, 0)),
        (
            lambda x: x.index_add_(0, tp.tensor([1, 0, 0]), x),
            lambda a: a + a[[1, 0, 0]] + np.array([a[2], 0 * a[0], -a[0]]),
        ),
        (lambda x: x.scatter_(0, tp.tensor([[2, 1, 0]]), x[:1]), None),
    ],
)
def test_writes_to_what_is_read_come_after_all_reads(write: Any, expected: Any) -> None:
    array = np.random.default_rng(3).uniform(1, 2, (3, 3))
    x = tp.from_numpy(array.copy())
    write(x)
    wanted = array.copy()
    if expected is None:
        wanted[[2, 1, 0], [0, 1, 2]] = array[0]
    else:
        wanted = expected(array)
    np.testing.assert_allclose(x.numpy(), wanted)
