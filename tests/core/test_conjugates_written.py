"""Whatever writes to a complex tensor writes to what shows its conjugate, and the other way round.

Each op in place and with ``out=``, and what writes besides: optimizers, gradients that are added up, compiled
and captured programs, `load_state_dict`, lists of tensors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn, optim
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.nn import functional as F
from tensorplug.testing.cases import map_tensors, samples_of
from tensorplug.testing.records import all_records

F.relu  # noqa: B018  # its ops have records too
#: Their results hold nothing, or a key is no argument with a name.
LEFT_OUT = ("basic_index", "empty_like", "new_empty", "empty_strided", "new_empty_strided")
RECORDS = [
    record
    for record in all_records()
    if tp.complex64 in record.dtypes and record.op not in LEFT_OUT
]
SLICES = 2
pytestmark = pytest.mark.filterwarnings("ignore")


def fresh(value: Any) -> Any:
    return map_tensors(value, lambda tensor: tensor.detach().clone())


def is_conjugate(tensor: Any, other: Any) -> bool:
    first, second = tensor.detach().numpy(), other.detach().numpy()
    return first.shape == second.shape and np.array_equal(first, second.conj(), equal_nan=True)


def writes(record: Any, sample: Any) -> Any:
    """Yield what is written, and a function that writes to it, for each way of an op."""
    op = get_op(record.op)
    first = sample.args[0] if sample.args else None
    if op.inplace is not None and isinstance(first, tp.Tensor) and first.is_complex():
        args, kwargs = fresh((sample.args, sample.kwargs))
        yield args[0], lambda target: getattr(target, op.inplace)(*args[1:], **kwargs)
    args, kwargs = fresh((sample.args, sample.kwargs))
    result = op.call(*args, **kwargs)
    if isinstance(result, tp.Tensor) and result.numel():
        dtype = result.dtype if result.is_complex() else tp.complex64
        yield tp.zeros_like(result, dtype=dtype), lambda out: op.call(*args, **kwargs, out=out)


@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("through", ["the tensor", "its conjugate", "a part", "data"])
def test_ops(part: int, through: str) -> None:
    wrong, count = [], 0
    for record in RECORDS[part::SLICES]:
        for sample in samples_of(record, "cpu", tp.complex64)[:2]:
            for target, write in writes(record, sample):
                shown = target.conj()
                written = {
                    "the tensor": target,
                    "its conjugate": shown,
                    "a part": target.view(target.shape),
                    "data": target.data,
                }[through]
                try:
                    write(written)
                except (RuntimeError, TypeError, ValueError):
                    continue  # such a call writes nothing, as other tests show
                if target.shape != shown.shape:
                    continue  # it was resized
                count += 1
                if not is_conjugate(target, shown):
                    wrong.append(f"{record.op}{sample}"[:200])
    assert not wrong, "\n".join(wrong)
    assert count > 100


class Adding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", tp.zeros(4, dtype=tp.complex64))

    def forward(self, x: Any) -> Any:
        self.total.add_(x)
        return self.total * 2


def numbers(*shape: int) -> Any:
    return tp.randn(*shape or (4,), dtype=tp.complex64)


def stepped(make: Callable[[Any], Any], foreach: bool) -> Any:
    weight = nn.Parameter(numbers(4, 4))
    shown = weight.detach().conj()
    weight.grad = numbers(4, 4)
    optimizer = make([weight], foreach=foreach)  # type: ignore[call-arg]
    optimizer.step()
    return weight, shown


def clipped() -> Any:
    weight = nn.Parameter(numbers())
    weight.grad = numbers() * 100
    shown = weight.grad.conj()
    nn.utils.clip_grad_norm_([weight], 0.1)
    return weight.grad, shown


def added_up() -> Any:
    weight = nn.Parameter(numbers())
    weight.abs().sum().backward()
    shown = weight.grad.conj()
    weight.abs().sum().backward()
    return weight.grad, shown


def loaded() -> Any:
    module = Adding()
    shown = module.total.conj()
    module.load_state_dict({"total": numbers()})
    return module.total, shown


def listed() -> Any:
    tensor = numbers()
    shown = tensor.conj()
    tp._foreach_add_([tensor], 1j)
    tp._foreach_mul_([tensor], [tensor.clone()])
    return tensor, shown


def of_parts() -> Any:
    tensor = numbers()
    shown = tensor.conj()
    tensor.real.fill_(3)
    tp.view_as_real(shown)[0].zero_()
    return tensor, shown


def compiled(shown_first: bool) -> Any:
    double = tp.compile(lambda tensor: tensor.mul_(2))
    for _ in range(3):
        double(numbers())
    tensor = numbers()
    shown = tensor.conj()
    double(shown if shown_first else tensor)
    return tensor, shown


def compiled_with_state() -> Any:
    module = Adding()
    adding = tp.compile(module)
    for _ in range(3):
        adding(numbers())
    shown = module.total.conj()
    adding(numbers())
    return module.total, shown


def captured() -> Any:
    graph = tp.graph.capture(lambda tensor: tensor.mul_(2), numbers())
    tensor = numbers()
    shown = tensor.conj()
    graph(tensor)
    return tensor, shown


WAYS: dict[str, Callable[[], Any]] = {
    **{
        f"{make.__name__}, foreach={foreach}": lambda make=make, foreach=foreach: stepped(make, foreach)
        for make in (
            optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Adadelta, optim.NAdam,
            optim.RAdam, optim.Adamax, optim.ASGD, optim.Rprop,
        )
        for foreach in (False, True)
    },
    "clip_grad_norm_": clipped,
    "gradients that are added up": added_up,
    "load_state_dict": loaded,
    "lists of tensors": listed,
    "real and imaginary parts": of_parts,
    "a compiled program": lambda: compiled(False),
    "a compiled program, of the conjugate": lambda: compiled(True),
    "a compiled module": compiled_with_state,
    "a graph": captured,
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_writes_besides(way: str) -> None:
    tensor, shown = WAYS[way]()
    assert is_conjugate(tensor, shown)


@pytest.mark.parametrize("view", ["conj", "mH", "adjoint", "H"])
def test_compiled_programs_return_conjugates_that_are_written(view: str) -> None:
    def both(x: Any) -> Any:
        x = x * 1
        return x, getattr(x, view) if view in ("mH", "H") else getattr(x, view)()

    def of_argument(x: Any) -> Any:
        return x * 1, getattr(x, view) if view in ("mH", "H") else getattr(x, view)()

    for function in (both, of_argument):
        found = tp.compile(function)
        for _ in range(4):
            x = numbers(3, 3)
            y = copy.deepcopy(x)
            seen, expected = [*found(x), x], [*function(y), y]
            expected[1][0] = 5
            seen[1][0] = 5
            assert all(tp.equal(a, b) for a, b in zip(seen, expected, strict=True))


def test_compiled_programs_are_given_conjugates() -> None:
    found = tp.compile(lambda x, y: (x.mul_(2), y + x)[1])
    for _ in range(4):
        found(numbers(), numbers())
    x = numbers()
    expected = 2 * x + 2 * x.conj()
    assert tp.allclose(found(x, x.conj()), expected)


USES = {
    "conj": lambda x: x * x.conj(),
    "mH": lambda x: x @ x.mH,
    "adjoint": lambda x: x.adjoint() @ x,
    "a view": lambda x: x[0] * x.conj()[1],
    "twice": lambda x: (x.conj().mH * x).exp() * x.conj(),
}


@pytest.mark.parametrize("use", USES)
def test_writes_to_data_are_not_counted_in_what_shows_it(use: str) -> None:
    """Nor are they in the tensor, so that backward goes on: with the numbers written, as from the tensor."""
    function: Any = USES[use]
    x = numbers(2, 2).to(tp.complex128).requires_grad_()
    y = numbers(2, 2).to(tp.complex128).requires_grad_()
    conjugate, before = x.conj(), x._version
    version = conjugate._version
    result = function(x)
    x.data.copy_(x.detach() * 2)
    assert is_conjugate(x, conjugate)
    assert (x._version, conjugate._version) == (before, version)
    result.abs().sum().backward()
    assert x.grad is not None
    assert tp.autograd.gradcheck(function, (y,))
    with tp.no_grad():
        x.mul_(2)
    assert is_conjugate(x, conjugate)
    assert x._version > before
    assert conjugate._version > version
