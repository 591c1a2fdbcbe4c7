"""Modes and classes with ``__torch_dispatch__``: what they get, and that nothing is left behind."""

import gc

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.overrides import disabled_torch_function_impl
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    def __init__(self):
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


class Scaled(tp.Tensor):
    """A number times a tensor; ops get the product."""

    __torch_function__ = disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner, factor):
        return tp.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner, factor):
        self.inner, self.factor = inner, factor

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is tp.ops.aten.detach.default:
            return cls(args[0].inner, args[0].factor)
        if func is tp.ops.aten.mul.Tensor and not isinstance(args[1], tp.Tensor):
            return cls(args[0].inner, args[0].factor * args[1])

        def plain(value):
            if isinstance(value, list):
                return [plain(item) for item in value]
            return value.inner * value.factor if isinstance(value, cls) else value

        return func(*map(plain, args), **{n: plain(v) for n, v in (kwargs or {}).items()})


def scaled(*shape):
    return Scaled(tp.arange(float(tp.Size(shape).numel())).reshape(shape), 2.0)


def test_a_mode_gets_the_ops_of_a_program_and_of_its_backward():
    x, w = tp.ones(2, 3, requires_grad=True), tp.ones(4, 3)
    with Names() as mode:
        (tp.nn.functional.linear(x, w) * 2).sum().backward()
    assert mode.names[:4] == ["t.default", "mm.default", "mul.Tensor", "sum.default"]
    assert "mm.default" in mode.names[4:]
    assert x.grad.tolist() == [[8.0] * 3] * 2


CALLS = {
    "x == 1": ["eq.Scalar"], "x == x": ["eq.Tensor"], "x - 1": ["sub.Tensor"], "x[0]": ["select.int"],
    "x[:, 1:]": ["slice.Tensor"], "x[0, 1:]": ["select.int", "slice.Tensor"],
    "x[None]": ["unsqueeze.default"],
    "x.sum(0)": ["sum.dim_IntList"], "x ** 2": ["pow.Tensor_Scalar"], "x.double()": ["_to_copy.default"],
    "x @ x": ["mm.default"], "x @ x[0]": ["select.int", "mv.default"], "x.add_(1)": ["add_.Tensor"],
    "tp.cat([x, x])": ["cat.default"],
    "tp.conv1d(x[None], x[None])": ["unsqueeze.default"] * 2 + ["convolution.default"],
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_the_names_of_ops(call):
    x = tp.ones(2, 2)
    with Names() as mode:
        eval(call, {"tp": tp, "x": x})
    assert [name for name in mode.names if not name.startswith("view")] == CALLS[call]


def test_the_inner_mode_is_asked_first_and_hands_on():
    outer, inner = Names(), Names()
    with outer, inner:
        tp.ones(1).exp()
    assert inner.names == outer.names == ["ones.default", "exp.default"]
    with outer, tp.utils._mode_utils.no_dispatch():
        tp.ones(1)
    assert outer.names == inner.names


def test_a_mode_may_refuse():
    class Refuses(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Refuses(), pytest.raises(TypeError, match=r"aten\.ones\.default"):
        tp.ones(1)


def test_a_wrapper_looks_like_a_tensor_without_memory():
    x = scaled(2, 3)
    assert (tuple(x.shape), x.dtype, x.device, x.stride()) == (
        (2, 3),
        tp.float32,
        tp.device("cpu"),
        (3, 1),
    )
    assert (x.is_contiguous(), x.dim(), x.numel(), x.requires_grad) == (True, 2, 6, False)
    with pytest.raises(NotImplementedError, match="no memory of its own"):
        x.data_ptr()


@pytest.mark.parametrize("call", [
    "x + 1", "1 - x", "x @ x.inner.T", "x.sum()", "x[1:, 0]", "tp.cat([x, x])",
    "tp.nn.functional.linear(x, x)",
    "x.reshape(3, 2)", "x.transpose(0, 1)", "x.to(tp.float64)", "tp.stack([x, x.inner])",
    "tp.einsum('ij,kj->ik', x, x)",
])  # fmt: skip
def test_a_wrapper_computes_all_ops(call):
    dense = scaled(2, 3).inner * 2
    dense.inner = scaled(2, 3).inner
    found = eval(call, {"tp": tp, "x": scaled(2, 3)})
    tp.testing.assert_close(found, eval(call, {"tp": tp, "x": dense}))


def test_a_wrapper_as_a_parameter():
    layer = tp.nn.Linear(3, 2, bias=False)
    layer.weight = tp.nn.Parameter(scaled(2, 3), requires_grad=False)
    assert (layer.weight * 3).factor == 6
    tp.testing.assert_close(layer(tp.ones(1, 3)), tp.tensor([[6.0, 24.0]]))


def test_what_is_computed_inside_is_recorded():
    inner = tp.ones(3, requires_grad=True)
    (Scaled(inner, 2.0) * 5 + 1).sum().backward()
    assert inner.grad.tolist() == [10.0] * 3


def test_nothing_is_left_behind():
    gc.collect()
    before = dispatch_state.layers_active
    x = scaled(2)
    assert dispatch_state.layers_active > before
    del x
    gc.collect()
    assert dispatch_state.layers_active == before


def test_a_wrapper_without_the_method_is_refused():
    class Plain(tp.Tensor):
        pass

    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        tp.Tensor._make_wrapper_subclass(Plain, (2,))


@pytest.mark.parametrize(
    "read", [tp.Tensor.item, float, int, bool, complex, lambda x: [7] * int(x)]
)
def test_a_wrapper_s_class_is_asked_for_its_number(read):
    inner = tp.tensor(3.0)
    assert read(Scaled(inner, 2.0)) == read(inner * 2)
    assert read((scaled(2, 3) * 1).sum()) == read(tp.tensor(30.0))
    assert scaled(2, 3).inner.sum() > 0


def test_a_wrapper_of_several_elements_is_no_number():
    with pytest.raises(RuntimeError, match="6 elements"):
        scaled(2, 3).item()
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(scaled(2, 3))


class Counted(tp.Tensor):
    calls = 0

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_dispatch__(func, types, args, kwargs)


class Inner(Counted):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        with tp.utils._mode_utils.no_dispatch():
            return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("cls", [Counted, Inner])
def test_a_class_hands_calls_on_to_the_memory_behind(cls):
    x = tp.Tensor._make_subclass(cls, tp.tensor([1.0, 2.0]), True)
    before = cls.calls
    y = x * 3
    y.sum().backward()
    assert y.tolist() == [3.0, 6.0]
    assert x.grad.tolist() == [3.0, 3.0]
    assert cls.calls > before


def test_a_class_with_the_method_has_no_torch_function_unless_it_defines_one():
    assert Counted.__torch_function__ is disabled_torch_function_impl
    assert type(tp.Tensor._make_subclass(Counted, tp.ones(2)) + 1) is tp.Tensor

    class Both(Counted):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "taken"

    assert tp.Tensor._make_subclass(Both, tp.ones(2)) + 1 == "taken"
