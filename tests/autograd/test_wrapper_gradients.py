"""Calls of classes with ``__torch_dispatch__`` over tensors without memory are recorded."""

import gc
import itertools

import pytest

import tensorplug as tp
from tensorplug.autograd.transforms.pytree import tree_map
from tensorplug.core.device.dtypes import float64
from tensorplug.core.dispatch import overrides
from tensorplug.nn import functional as F
from tensorplug.testing import cases
from tensorplug.testing.comparison import assert_close
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too


class Wrapped(tp.Tensor):
    """A tensor inside of another, which may require grad; the one inside does not."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = tp.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )
        made.inner = inner.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def plain(value):
            return value.inner if isinstance(value, cls) else value

        result = func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))
        return tree_map(lambda value: cls(value) if isinstance(value, tp.Tensor) else value, result)


def plain(tensor):
    return tensor.inner if isinstance(tensor, Wrapped) else tensor


def gradients(outputs, points):
    seeds = [
        (out, tp.ones_like(out) * (number + 1))
        for number, out in enumerate(outputs)
        if out.requires_grad
    ]
    roots = [out for out, _ in seeds]
    return tp.autograd.grad(roots, points, [seed for _, seed in seeds], allow_unused=True)


RECORDS = list(all_records())
SLICES = 6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_ops(part):
    found, count = [], 0
    for record in RECORDS[part::SLICES]:
        if float64 not in record.dtypes:
            continue
        drawn = cases.gradient_cases(record, "cpu", float64, ("contiguous",))
        for sample, _, function, points in itertools.islice(drawn, 2):
            outputs = function(*points)
            if not any(out.requires_grad for out in outputs):
                continue
            try:
                expected = gradients(outputs, points)
                wrapped = [Wrapped(point, requires_grad=True) for point in points]
                got = gradients(function(*wrapped), wrapped)
                for one, other in zip(got, expected, strict=True):
                    assert (one is None) == (other is None), (one, other)
                    if one is not None:
                        assert isinstance(one, Wrapped)
                        assert_close(one.inner, other)
                count += 1
            except RuntimeError as error:  # eigenvectors' phases are left to chance
                if not any(
                    text in str(error) for text in ("no derivative is known", "ill-defined")
                ):
                    found.append(f"{record.op} {sample}: {error}"[:300])
            except Exception as error:
                found.append(f"{record.op} {sample}: {type(error).__name__} {error}"[:300])
    assert not found, "\n".join(found)
    assert count >= 150


def wrapped(*values, requires_grad=True):
    return Wrapped(tp.tensor(values), requires_grad=requires_grad)


def test_a_backward_pass_gives_leaves_wrapped_gradients():
    x, w = wrapped(1.0, 2.0), tp.tensor([3.0, 4.0], requires_grad=True)
    middle = w * 2
    middle.retain_grad()
    loss = (x * middle).sum()
    assert isinstance(loss, Wrapped)
    assert loss.grad_fn is not None
    loss.backward(retain_graph=True)
    loss.backward()
    assert plain(x.grad).tolist() == [12.0, 16.0]
    assert plain(w.grad).tolist() == [4.0, 8.0]
    assert plain(middle.grad).tolist() == [2.0, 4.0]
    with tp.no_grad():
        assert not (x * 2).requires_grad
    assert not (wrapped(1.0, requires_grad=False) * 2).requires_grad


def test_second_derivatives():
    x = wrapped(1.0, 2.0)
    (first,) = tp.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = tp.autograd.grad(first.sum(), x)
    assert plain(second).tolist() == [6.0, 12.0]
    found = tp.autograd.functional.hessian(lambda x: (x**3).sum(), wrapped(1.0, 2.0))
    assert plain(found).tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_several_gradients_at_once():
    x = wrapped(1.0, 2.0)
    (rows,) = tp.autograd.grad(x * x, x, Wrapped(tp.eye(2)), is_grads_batched=True)
    assert plain(rows).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    found = tp.autograd.functional.jacobian(lambda x: x * x, x, vectorize=True)
    assert plain(found).tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_writes_in_place():
    x = wrapped(1.0, 2.0)
    y = x * 1
    assert y.mul_(3) is y
    y.sum().backward()
    assert plain(x.grad).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.add_(1)
    y = x.exp()
    out = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    x.data.mul_(2)
    assert x.inner.tolist() == [2.0, 4.0]


def test_a_parameter_is_trained():
    layer = tp.nn.Linear(3, 2, bias=False)
    layer.weight = tp.nn.Parameter(Wrapped(tp.ones(2, 3)))
    optimizer = tp.optim.SGD(layer.parameters(), lr=0.5)
    F.mse_loss(layer(tp.ones(1, 3)), tp.zeros(1, 2), reduction="sum").backward()
    assert plain(layer.weight.grad).tolist() == [[6.0] * 3] * 2
    optimizer.step()
    assert plain(layer.weight).tolist() == [[-2.0] * 3] * 2


def test_what_a_class_returns_may_be_plain():
    class Unwrapping(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            result = func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))
            return cls(result) if func is tp.ops.aten.detach.default else result

    x = Unwrapping(tp.tensor([1.0, 2.0]), requires_grad=True)
    loss = (x * x + 1).exp().sum()
    assert type(loss) is tp.Tensor
    loss.backward()
    dense = tp.tensor([1.0, 2.0], requires_grad=True)
    (dense * dense + 1).exp().sum().backward()
    tp.testing.assert_close(plain(x.grad), dense.grad)


def test_gradcheck():
    x = Wrapped(tp.tensor([0.5, 2.0], dtype=float64), requires_grad=True)
    assert tp.autograd.gradcheck(lambda x: x * x.exp(), (x,))


def test_passes_are_plain_again_once_no_such_tensor_lives():
    gc.collect()
    x = wrapped(1.0)
    (x * 2).sum().backward()
    assert overrides.recorded
    del x
    gc.collect()
    assert not overrides.recorded
