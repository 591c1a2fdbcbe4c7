"""no_grad, enable_grad, set_grad_enabled, inference_mode; as contexts, decorators and calls."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest

import tensorplug as tp


def leaf() -> tp.Tensor:
    return tp.ones(2, requires_grad=True)


def test_nesting() -> None:
    x = leaf()
    with tp.no_grad():
        assert not (x * 2).requires_grad
        with tp.enable_grad():
            assert (x * 2).requires_grad
        assert not tp.is_grad_enabled()
    assert (x * 2).requires_grad


def test_decorators() -> None:
    x = leaf()

    @tp.no_grad()
    def with_call() -> tp.Tensor:
        return x * 2

    @tp.no_grad
    def bare() -> tp.Tensor:
        return x * 2

    @tp.enable_grad()
    def recording() -> tp.Tensor:
        return x * 2

    assert not with_call().requires_grad
    assert not bare().requires_grad
    with tp.no_grad():
        assert recording().requires_grad


def test_a_decorated_generator_leaves_its_consumer_alone() -> None:
    x = leaf()

    @tp.no_grad()
    def values():  # type: ignore[no-untyped-def]
        received = yield (x * 2).requires_grad
        yield received, (x * 2).requires_grad

    generator = values()
    assert next(generator) is False
    assert (x * 2).requires_grad
    assert generator.send("sent") == ("sent", False)


def test_set_grad_enabled_as_call_and_context() -> None:
    x = leaf()
    with tp.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    tp.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        tp.set_grad_enabled(True)
    assert (x * 2).requires_grad


def test_an_exception_restores_the_mode() -> None:
    with pytest.raises(KeyError), tp.no_grad():
        raise KeyError
    assert tp.is_grad_enabled()


def test_modes_belong_to_threads() -> None:
    x = leaf()
    seen: list[bool] = []
    with tp.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_a_leaf_may_be_written_to_without_recording() -> None:
    x = leaf()
    with tp.no_grad():
        x.add_(1)
        x[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    assert x.is_leaf
    assert x.requires_grad


def test_inference_tensors() -> None:
    x = leaf()
    with tp.inference_mode():
        y = x * 2
        view = y[0]
    assert y.is_inference()
    assert view.is_inference()
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="inference tensor"):
        y.requires_grad_()
    with pytest.raises(RuntimeError, match=r"[Ii]nference tensors? cannot be saved"):
        (leaf() * y).sum()
    with pytest.raises(RuntimeError, match="nplace update to inference tensor"):
        y.add_(1)
    assert not y.clone().is_inference()


def test_inference_goes_on_within_other_modes() -> None:
    x = tp.ones(2, requires_grad=True)
    with tp.inference_mode():
        total = tp.zeros(2)
        with tp.no_grad():
            assert tp.is_inference_mode_enabled()
            total.add_(1)
        with tp.enable_grad():
            assert tp.is_inference_mode_enabled()
            assert tp.is_grad_enabled()
            for y in (x * 2, x.sum(), tp.lerp(x, x, 0.5), total[0], total.view(2)):
                assert y.is_inference()
                assert not y.requires_grad
        with tp.inference_mode(False):
            assert not tp.is_inference_mode_enabled()
            assert (x * 2).requires_grad
    assert total.is_inference()


def test_each_call_in_inference_mode_makes_inference_tensors() -> None:
    x = tp.tensor([[1.0, -2.0], [0.5, 3.0]])
    with tp.inference_mode():
        for _ in range(3):  # by the rule, then by what is remembered
            made = [
                tp.lerp(x, x * 2, 0.25),
                tp.nn.functional.layer_norm(x, (2,)),
                *x.max(1),
                *tp.var_mean(x),
                tp.cat([x, x]),
                x.index_select(0, tp.tensor([1])),
            ]
            assert all(tensor.is_inference() for tensor in made)


#: What makes tensors without a kernel, or shows the memory of another.
MAKERS: dict[str, Callable[[tp.Tensor], tp.Tensor]] = {
    "tensor": lambda x: tp.tensor([1.0]),
    "as_tensor": lambda x: tp.as_tensor(np.ones(2)),
    "asarray": lambda x: tp.asarray([1, 2]),
    "from_numpy": lambda x: tp.from_numpy(np.ones(2)),
    "from_dlpack": lambda x: tp.from_dlpack(np.ones(2)),
    "frombuffer": lambda x: tp.frombuffer(bytearray(8), dtype=tp.float32),
    "Tensor": lambda x: tp.Tensor([1.0]),
    "empty": lambda x: tp.empty(2),
    "empty channels last": lambda x: tp.empty(1, 2, 2, 2, memory_format=tp.channels_last),
    "empty_strided": lambda x: tp.empty_strided((2, 3), (1, 2)),
    "empty_like": tp.empty_like,
    "new": lambda x: x.new(2),
    "new_empty": lambda x: x.new_empty(2),
    "new_tensor": lambda x: x.new_tensor([1.0]),
    "detach": lambda x: tp.ones(2).detach(),
    "detach of a view": lambda x: tp.ones(2)[:1].detach(),
    "data": lambda x: tp.ones(2).data,
    "deepcopy": lambda x: copy.deepcopy(tp.ones(2)),
    "Linear": lambda x: tp.nn.Linear(2, 2).weight,
    "pickle": lambda x: pickle.loads(pickle.dumps(tp.ones(2))),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_whatever_is_made_in_inference_mode_is_an_inference_tensor(make) -> None:
    x, weight = tp.ones(2), leaf()
    with tp.inference_mode():
        made = make(x)
        assert not x.detach().is_inference()
        assert not x.data.is_inference()
    assert made.is_inference()
    if made.is_floating_point():
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            weight.sum() * made
    with tp.no_grad():
        assert made.detach().is_inference()
    assert not make(x).is_inference()


def test_inference_mode_off() -> None:
    with tp.inference_mode(), tp.inference_mode(False):
        assert (leaf() * 2).requires_grad


def test_a_decorated_class_makes_instances_in_the_mode() -> None:
    class Plain:
        def __init__(self) -> None:
            self.made = tp.is_grad_enabled()

        def later(self) -> bool:
            return tp.is_grad_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes"):
        decorated = tp.no_grad()(Plain)
    thing = decorated()
    assert not thing.made
    assert thing.later()


def test_a_view_is_an_inference_tensor_if_what_it_shows_is() -> None:
    x = tp.ones(4)
    with tp.inference_mode():
        made = tp.ones(4)
        shown = x[:2]
        shown.mul_(3)
        with tp.inference_mode(False):
            assert made.view(4).is_inference()
    assert made[1:].is_inference()
    with tp.no_grad():
        assert made[1:].is_inference()
    assert not made.clone().is_inference()
    assert not shown.is_inference()
    assert x.tolist() == [3, 3, 1, 1]


#: What gives an inference tensor other memory, or has it require grad.
CHANGES = {
    "resize_": lambda L, x: x.resize_(1),
    "resize_as_": lambda L, x: x.resize_as_(L.ones(1)),
    "set_": lambda L, x: x.set_(L.ones(1)),
    "requires_grad_": lambda L, x: x.requires_grad_(),
    "Parameter": lambda L, x: L.nn.Parameter(x),
    "unsqueeze_": lambda L, x: x.unsqueeze_(0),
    "add_": lambda L, x: x.add_(1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_inference_tensors_change_in_inference_mode_only(name) -> None:
    torch = pytest.importorskip("torch", reason="the reference")
    for L in (tp, torch):
        with L.inference_mode():
            x = L.ones(2, 3)
        with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
            CHANGES[name](L, x)
        if L is tp:
            assert x.shape == (2, 3)
        with L.inference_mode():
            CHANGES[name](L, x)


@pytest.mark.parametrize("name", ["resize_", "resize_as_", "add_", "unsqueeze_"])
def test_inference_tensors_that_require_grad_change_in_inference_mode(name) -> None:
    torch = pytest.importorskip("torch", reason="the reference")
    for L in (tp, torch):
        with L.inference_mode():
            x = L.ones(2, 3, requires_grad=True)
            CHANGES[name](L, x)
        assert x.requires_grad
