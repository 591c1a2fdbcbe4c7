"""Hooks of tensors and nodes, retained gradients, saved-tensor hooks, anomaly mode."""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any

import pytest

import tensorplug as tp


def leaf(*values: float) -> tp.Tensor:
    return tp.tensor(list(values), dtype=tp.float64, requires_grad=True)


def test_tensor_hooks_run_in_order_and_replace() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 3)
    y.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [(1 * 3 + 1) * 2 * 10]


def test_a_leaf_hook_sees_the_sum_once() -> None:
    x = leaf(1.0)
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5.0]]


def test_what_a_hook_keeps_stays_as_it_was() -> None:
    x = tp.ones(3, requires_grad=True)
    kept: list[Any] = []
    x.register_hook(kept.append)
    (x.exp() * 2).sum().backward()
    before = kept[0].tolist()
    (x.exp() * 2).sum().backward()
    assert kept[0].tolist() == before
    assert x.grad.tolist() == [2 * value for value in before]


def test_handles() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 0)
    handle.remove()
    handle.remove()
    with x.register_hook(lambda g: g * 7):
        x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [8.0]


@pytest.mark.parametrize(
    ("hook", "error"),
    [
        (lambda g: "no", TypeError),
        (lambda g: g.reshape(1, 1), RuntimeError),
        (lambda g: g.float(), RuntimeError),
    ],
)
def test_what_a_hook_may_not_return(hook: Any, error: type[Exception]) -> None:
    x = leaf(1.0)
    x.register_hook(hook)
    with pytest.raises(error):
        x.sum().backward()


def test_hooks_need_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        tp.ones(1).register_hook(print)
    with pytest.raises(TypeError, match="callable"):
        leaf(1.0).register_hook("no")  # type: ignore[arg-type]


def test_retain_grad() -> None:
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    assert y.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0]
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        tp.ones(1).retain_grad()


def test_post_accumulate_hooks() -> None:
    x = leaf(1.0)
    seen: list[Any] = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen == [[2.0], [4.0]]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)
    y = leaf(1.0)
    y.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="should return None"):
        y.sum().backward()
    z = leaf(1.0)
    z.register_post_accumulate_grad_hook(lambda t: t.add_(t.grad, alpha=-0.5))
    z.sum().backward()
    assert z.tolist() == [0.5]


def test_node_hooks() -> None:
    x = leaf(3.0)
    y = x * x
    log: list[Any] = []
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: log.append((len(inputs), outputs[0].tolist())))
    y.sum().backward()
    assert x.grad.tolist() == [12.0]
    assert log == [(2, [2.0])]


def test_multi_grad_hook() -> None:
    x, y = leaf(1.0), leaf(2.0)
    seen: list[Any] = []
    tp.autograd.graph.register_multi_grad_hook(
        [x, y], lambda grads: seen.append([g.tolist() for g in grads])
    )
    (x * y).sum().backward()
    assert seen == [[[2.0], [1.0]]]


def test_graph_structure() -> None:
    x = leaf(1.0)
    y = (x * 2).exp()
    node = y.grad_fn
    assert node.name() == "ExpBackward0"
    ((inner, _),) = node.next_functions
    assert inner.name() == "MulBackward0"
    assert inner.next_functions[0][0].variable is x
    assert isinstance(inner.next_functions[0][0], tp.autograd.graph.Node)
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    inner.next_functions[0][0].metadata["note"] = 2
    assert (x * 3).grad_fn.next_functions[0][0].metadata == {"note": 2}


def test_saved_tensors_hooks() -> None:
    x = leaf(2.0, 3.0)
    packed: list[Any] = []

    def pack(tensor: tp.Tensor) -> Any:
        packed.append(tensor.shape)
        return tensor.tolist()

    with tp.autograd.graph.saved_tensors_hooks(
        pack, lambda values: tp.tensor(values, dtype=tp.float64)
    ):
        y = (x.exp() * x).sum()
    y.backward()
    assert len(packed) == 3
    expected = [(1 + v) * tp.tensor(v, dtype=tp.float64).exp().item() for v in (2.0, 3.0)]
    assert x.grad.tolist() == pytest.approx(expected)


def test_lists_and_outputs_are_packed_too() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> int:
        packed.append(tensor)
        return len(packed) - 1

    def gradients() -> list[Any]:
        x = (tp.arange(9.0, dtype=tp.float64).reshape(3, 3) / 5).sin().requires_grad_()
        places = tp.tensor([2, 0]), tp.tensor([1, 1])
        q, r = tp.linalg.qr(x + tp.eye(3, dtype=tp.float64))
        value = (x[places] ** 2).sum() + q.exp().sum() + (r * x).sum() + x.max(0)[0].prod()
        (first,) = tp.autograd.grad(value, x, create_graph=True)
        (second,) = tp.autograd.grad((first**2).sum(), x)
        return [*first.flatten().tolist(), *second.flatten().tolist()]

    expected = gradients()
    assert not packed
    with tp.autograd.graph.saved_tensors_hooks(pack, lambda number: packed[number]):
        assert gradients() == pytest.approx(expected)
    assert any(tensor.dtype is tp.int64 for tensor in packed)
    assert not any(tensor.requires_grad for tensor in packed)


def test_hooks_slow_nothing_down_afterwards() -> None:
    """A formula is replayed as one for all shapes, whether or not its tensors were packed once."""
    from tensorplug.core.dispatch import op_registry

    x = tp.ones(2, requires_grad=True)
    with tp.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.atan()
    y.sum().backward()
    assert not op_registry.get_op("atan").derivative.formulas[0].keyed


def test_hooks_can_be_forbidden() -> None:
    graph = tp.autograd.graph
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_a_write_by_something_else_is_counted() -> None:
    x = tp.ones(2, requires_grad=True)
    y = x * 1
    z = y * y
    tp.autograd.graph.increment_version([y])
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.sum().backward()


def test_save_on_cpu() -> None:
    x = leaf(2.0)
    with tp.autograd.graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_anomaly_mode_names_the_op_and_the_line() -> None:
    x = leaf(0.0)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        anomaly = tp.autograd.detect_anomaly()
    with anomaly:
        y = x.sqrt()  # the line that the message shows
        with (
            pytest.warns(UserWarning, match=r"SqrtBackward0(?s:.*)the line that the message shows"),
            pytest.raises(RuntimeError, match=r"SqrtBackward0.*nan"),
        ):
            (y * 0).sum().backward()
    assert not tp.autograd.is_anomaly_enabled()


def test_anomaly_mode_names_the_call_whose_saved_tensor_was_written_to() -> None:
    x = leaf(1.0)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        anomaly = tp.autograd.detect_anomaly()
    with anomaly:
        y = x + 1
        z = y**2  # saves what is written to
        y += 1
        with (
            pytest.warns(UserWarning, match=r"PowBackward0(?s:.*)saves what is written to"),
            pytest.raises(RuntimeError, match="modified by an inplace"),
        ):
            z.sum().backward()


class Twice(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return Broken.apply(x) * g


class Broken(tp.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * math.nan


@pytest.mark.parametrize("forward_too", [True, False])
def test_anomaly_mode_names_the_calls_that_induced_one_another(forward_too: bool) -> None:
    x = leaf(1.0)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        anomaly = tp.autograd.detect_anomaly()
    with anomaly if forward_too else contextlib.nullcontext():
        (grad,) = tp.autograd.grad(Twice.apply(x).sum(), x, create_graph=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with (
            pytest.raises(RuntimeError, match="BrokenBackward"),
            tp.autograd.detect_anomaly(),
        ):
            grad.sum().backward()
    said = [str(warning.message) for warning in caught][1:]
    if forward_too:
        assert len(said) == 2
        assert "Broken.apply" in said[0]
        assert "induced by TwiceBackward" in said[1]
        assert "Twice.apply" in said[1]
    else:
        assert len(said) == 1
        assert "No forward pass information" in said[0]


def test_gradcheck_finds_wrong_derivatives() -> None:
    class Wrong(tp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    x = leaf(1.0, 2.0)
    with pytest.raises(tp.autograd.GradcheckError, match="Jacobian mismatch"):
        tp.autograd.gradcheck(Wrong.apply, (x,))
    assert tp.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False) is False
    with pytest.raises(ValueError, match="at least one input"):
        tp.autograd.gradcheck(Wrong.apply, (x.detach(),))


def test_gradcheck_in_fast_mode() -> None:
    x = leaf(0.5, 2.0, -1.0)
    z = tp.tensor([1 + 2j, 0.5 - 1j], dtype=tp.complex128, requires_grad=True)
    check = tp.autograd.gradcheck
    assert check(lambda x: (x.exp() * x, x.sin()), (x,), fast_mode=True)
    assert check(lambda z: z * z * z.conj(), (z,), fast_mode=True)
    assert tp.autograd.gradgradcheck(lambda x: x**3, (x,), fast_mode=True)
    with pytest.raises(tp.autograd.GradcheckError, match="fast mode"):
        check(lambda x: x * x.detach(), (x,), fast_mode=True)


def test_second_derivative_through_packed_tensors():
    x = tp.tensor([0.5, 2.0], dtype=tp.float64, requires_grad=True)

    def second(x):
        (g,) = tp.autograd.grad((x.exp() * x).sin().sum(), x, create_graph=True)
        return tp.autograd.grad(g.sum(), x)[0]

    expected = second(x)
    with tp.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        assert tp.allclose(second(x), expected)


class WrongForward(tp.autograd.Function):
    """Right in reverse mode; its forward mode is off by a factor."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return 3 * ctx.saved_tensors[0] * t


def test_gradcheck_of_forward_mode() -> None:
    from tensorplug.autograd import GradcheckError, gradcheck, gradgradcheck

    x = tp.tensor([0.5, 2.0], dtype=tp.float64, requires_grad=True)
    z = tp.tensor([0.5 + 1j, -1.0 + 0.25j], dtype=tp.complex128, requires_grad=True)
    every = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda a, b: (a * b, b.abs() * a), (x, z), check_batched_grad=True, **every)
    assert gradcheck(lambda a: a.exp(), (x,), check_backward_ad=False, **every)
    assert gradgradcheck(lambda a: a.exp() * a, (x,), check_fwd_over_rev=True)
    assert gradcheck(WrongForward.apply, (x,))
    with pytest.raises(GradcheckError, match="forward mode mismatch for output 0"):
        gradcheck(WrongForward.apply, (x,), check_forward_ad=True)
    assert not gradcheck(WrongForward.apply, (x,), check_forward_ad=True, raise_exception=False)


def test_hooks_of_the_step_that_accumulates() -> None:
    x = tp.ones(2, requires_grad=True)
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append("tensor"))
    step = x.view_as(x).grad_fn.next_functions[0][0]
    kept = step.register_prehook(lambda g: (g[0] * 3,))
    step.register_prehook(lambda g: seen.append(("before", g[0].tolist(), x.grad is None)))
    step.register_hook(lambda inputs, g: seen.append(("after", inputs, g[0].tolist())))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("accumulated"))
    (x * 2).sum().backward()
    assert seen == [
        "tensor",
        ("before", [6, 6], True),
        "accumulated",
        ("after", (), [6, 6]),
    ]
    kept.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [8, 8]
    assert tp.autograd.grad((x * 2).sum(), x)[0].tolist() == [2, 2]
    assert len(seen) == 9  # nothing was accumulated the last time


def test_a_hook_of_a_node_that_returns_what_is_no_gradient() -> None:
    y = tp.ones(2, requires_grad=True) * 2
    y.grad_fn.register_prehook(lambda g: 5)
    with pytest.raises(TypeError, match="tuple of Tensors"):
        y.sum().backward()


def test_anomaly_mode_may_leave_nan_alone() -> None:
    x = tp.tensor([0.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        anomaly = tp.autograd.detect_anomaly(check_nan=False)
    with anomaly:
        assert tp.is_anomaly_enabled()
        assert not tp.is_anomaly_check_nan_enabled()
        (x * float("nan")).sum().backward()
    assert x.grad.isnan().all()
    assert not tp.is_anomaly_enabled()
    assert tp.is_anomaly_check_nan_enabled()


def test_places_in_the_graph_stand_for_tensors() -> None:
    edge_of = tp.autograd.graph.get_gradient_edge
    x = tp.arange(4.0, requires_grad=True)
    y = x * 3
    first, second = y.split(2)
    places = [edge_of(x), edge_of(y), edge_of(second)]
    total = (first * 2).sum() + (second * 5).sum()
    assert [place.output_nr for place in places] == [0, 0, 1]
    found = tp.autograd.grad(total, places, retain_graph=True)
    assert [g.tolist() for g in found] == [[6, 6, 15, 15], [2, 2, 5, 5], [5, 5]]
    end = edge_of(total)
    del total, y, first, second
    tp.autograd.backward(end, inputs=places[0])
    assert x.grad is not None
    assert x.grad.tolist() == [6, 6, 15, 15]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        edge_of(tp.ones(1))


def test_saved_tensors_may_be_written_to() -> None:
    x = tp.full((2,), 2.0, requires_grad=True)
    with tp.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = y * y * y
        y.mul_(10)
        (z.sum() + y.sum()).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [22, 22]


def test_copies_of_saved_tensors_can_be_forgotten() -> None:
    x = tp.full((2,), 2.0, requires_grad=True)
    with tp.autograd.graph.allow_mutation_on_saved_tensors() as context:
        forgotten = (x.clone() ** 2).sum()
        context.clear()
        kept = (x.clone() ** 2).sum()
        with pytest.raises(AssertionError, match="was forgotten by the clear"):
            forgotten.backward()
        kept.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4, 4]


@pytest.mark.parametrize("outer", [False, True])
def test_multi_grad_hook_with_tensors_that_take_no_part(outer: bool) -> None:
    seen: list[list[Any]] = []
    x = tp.ones(2, requires_grad=True)
    used, unused, leaf = x * 2, x * 3, tp.ones(2, requires_grad=True)
    tp.autograd.graph.register_multi_grad_hook([used, unused, leaf], seen.append)
    if outer:  # a pass that starts within another counts apart
        y = tp.ones(1, requires_grad=True)
        total = used.sum()
        y.register_hook(lambda _: total.backward(retain_graph=True))
        y.sum().backward()
    else:
        used.sum().backward(retain_graph=True)
    assert [[g is None for g in one] for one in seen] == [[False, True, True]]
    (used + unused).sum().backward()
    assert [[g is None for g in one] for one in seen[1:]] == [[False, False, True]]


class Doubled(tp.autograd.Function):
    """x times 2, with a derivative of 3."""

    @staticmethod
    def forward(ctx: Any, x: tp.Tensor) -> tp.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: tp.Tensor) -> tp.Tensor:
        return g * 3


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_gradcheck_of_sparse_inputs(layout: str, fast_mode: bool) -> None:
    dense = tp.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]], dtype=tp.float64)
    x = getattr(dense, layout)().requires_grad_()
    other = tp.rand(3, 2, dtype=tp.float64).requires_grad_()
    for function in (
        lambda x, other: x @ other,
        lambda x, other: (x * 3).to_dense() + other.t().exp(),
        lambda x, other: x.sin().sum() * other.sum(),
    ):
        assert tp.autograd.gradcheck(function, (x, other), fast_mode=fast_mode)
        assert tp.autograd.gradgradcheck(function, (x, other), fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        tp.autograd.gradcheck(lambda x: Doubled.apply(x.to_dense()), x, fast_mode=fast_mode)
    with pytest.raises(ValueError, match="Sparse output is not supported"):
        tp.autograd.gradcheck(lambda x: x * 2, x, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("shape", lambda x: tp.cat([x, x]) if x >= 1 else x),
        ("dtype", lambda x: x.float() if x >= 1 else x),
    ],
)
def test_gradcheck_of_outputs_that_change_their_kind(
    kind: str, function: Any, fast_mode: bool
) -> None:
    x = tp.ones(1, dtype=tp.float64, requires_grad=True)
    with pytest.raises(AssertionError, match=f"outputs with the same {kind} when inputs are"):
        tp.autograd.gradcheck(function, x, fast_mode=fast_mode)


def test_gradgradcheck_takes_gradients_as_they_are() -> None:
    x = tp.tensor([0.5, 1.5], dtype=tp.float64, requires_grad=True)
    seen = []

    def cube(x: tp.Tensor) -> tp.Tensor:
        y = x**3
        y.register_hook(lambda g: seen.append(g.requires_grad))
        return y

    assert tp.autograd.gradgradcheck(cube, x, tp.tensor([0.3, -0.7]))
    assert not any(seen)
    seen.clear()
    assert tp.autograd.gradgradcheck(cube, x)
    assert any(seen)


@pytest.mark.parametrize("inputs", ["none", "root", "leaf", "both"])
def test_hooks_of_a_node_run_wherever_its_gradient_is_wanted(inputs):
    seen = []
    x = tp.tensor(1.0, requires_grad=True)
    y = x.clone()
    y.grad_fn.register_prehook(lambda gs: seen.append("before") or tuple(g * 2 for g in gs))
    y.grad_fn.register_hook(lambda *_: seen.append("after"))
    y.register_hook(lambda g: seen.append("tensor") or g * 3)
    wanted = {"none": None, "root": [y], "leaf": [x], "both": [x, y]}[inputs]
    y.sum().backward(inputs=wanted)
    assert seen == ["tensor", "before", "after"]
    assert (x.grad is None) == (inputs == "root")
    if inputs in ("root", "both"):  # before the node's own hooks
        assert y.grad.item() == 3


def test_hooks_of_a_node_do_not_run_where_grad_ends():
    seen = []
    y = tp.tensor(1.0, requires_grad=True).clone()
    y.grad_fn.register_prehook(lambda gs: seen.append(1))
    assert tp.autograd.grad(y.sum(), y)[0].item() == 1
    assert not seen


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x[0].zero_(), lambda x: x.t_()])
@pytest.mark.parametrize("op", ["exp", "mul"])
def test_a_pack_hook_must_not_write(write, op):
    x = tp.ones(2, 2, requires_grad=True)

    def pack(tensor):
        write(tensor)
        return tensor

    hooks = tp.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    with hooks, pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        x.exp() if op == "exp" else x * x


def test_sums_of_sparse_gradients_are_in_torch_s_order():
    weight = tp.ones(4, 2, requires_grad=True)
    first, second = tp.tensor([3, 1]), tp.tensor([0])
    f = tp.nn.functional.embedding
    (f(first, weight, sparse=True).sum() + f(second, weight, sparse=True).sum()).backward()
    assert weight.grad._indices().tolist() == [[3, 1, 0]]
    assert not weight.grad._values().requires_grad


@pytest.mark.parametrize("value", [None, 3, "x", [1.0]])
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_is_unpacked_has_to_be_a_tensor(value, create_graph) -> None:
    x = tp.ones(2, requires_grad=True)
    with tp.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: value):
        y = (x * x).exp()
    with pytest.raises(
        TypeError, match="unpack_hook expected to be a Tensor but got result of type"
    ):
        y.sum().backward(create_graph=create_graph)


@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_hooks_of_nodes_return_tensors(register) -> None:
    y = tp.ones(2, requires_grad=True) * 2
    getattr(y.grad_fn, register)(lambda *_: (3,))
    with pytest.raises(
        (TypeError, RuntimeError), match=r"expected Variable, but hook returned|number of"
    ):
        y.sum().backward()


def test_old_name_of_gradients_to_begin_with() -> None:
    x = tp.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        tp.autograd.backward(x * 2, grad_variables=tp.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="arguments both passed"):
        tp.autograd.backward(x * 2, tp.ones(2), grad_variables=tp.ones(2))


WRITES = {
    "mul_": lambda g: g.mul_(2),
    "add_": lambda g: g.add_(tp.ones(3)),
    "zero_": lambda g: g.zero_(),
    "copy_": lambda g: g.copy_(tp.ones(3)),
    "clamp_": lambda g: g.clamp_(max=0.5),
    "masked_fill_": lambda g: g.masked_fill_(g > 0, 2),
    "uniform_": lambda g: g.uniform_(),
    "of a view": lambda g: g.view(-1).mul_(2),
    "of detach": lambda g: g.detach().mul_(2),
    "of data": lambda g: g.data.mul_(2),
    "out=": lambda g: tp.mul(g, 2, out=g),
}


def _of_result(write):
    x = tp.ones(3, requires_grad=True)
    y = x * 1.0
    y.register_hook(write)
    y.sum().backward()


def _of_leaf(write):
    x = tp.ones(3, requires_grad=True)
    x.register_hook(write)
    x.sum().backward()


def _of_node(write):
    y = tp.ones(3, requires_grad=True) * 1.0
    y.grad_fn.register_prehook(lambda gradients: write(gradients[0]))
    y.sum().backward()


def _of_grad(write):
    x = tp.ones(3, requires_grad=True)
    write(tp.autograd.grad(x.sum(), x)[0])


def _of_function(write):
    class Writes(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, gradient):
            return write(gradient)

    Writes.apply(tp.ones(3, requires_grad=True)).sum().backward()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("seen", [_of_result, _of_leaf, _of_node, _of_grad, _of_function])
def test_nothing_is_written_to_a_gradient_whose_elements_share_memory(seen, write):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        seen(write)
    seen(lambda gradient: None if seen is not _of_function else gradient * 2)
