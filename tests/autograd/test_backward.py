"""Reverse mode: what backward and grad return, refuse and free. Expected values are worked out by hand."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import tensorplug as tp


def leaf(*values: float) -> tp.Tensor:
    return tp.tensor(list(values), dtype=tp.float64, requires_grad=True)


def test_gradients_accumulate_in_place() -> None:
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert x.grad.tolist() == [5.0, 7.0]


def test_two_leaves_do_not_share_a_gradient() -> None:
    x, y = leaf(1.0), leaf(2.0)
    (x + y).sum().backward()
    x.grad.mul_(10)
    assert y.grad.tolist() == [1.0]


def test_the_gradient_of_an_expanded_result_is_contiguous() -> None:
    x = leaf(1.0, 2.0, 3.0)
    x.sum().backward()
    assert x.grad.is_contiguous()
    x.grad[0] = 5.0
    assert x.grad.tolist() == [5.0, 1.0, 1.0]


def test_broadcasting_is_undone() -> None:
    x = tp.ones(3, 1, dtype=tp.float64, requires_grad=True)
    y = tp.ones(4, dtype=tp.float64, requires_grad=True)
    z = tp.tensor(2.0, dtype=tp.float64, requires_grad=True)
    (x * y * z).sum().backward()
    assert x.grad.tolist() == [[8.0]] * 3
    assert y.grad.tolist() == [6.0] * 4
    assert z.grad.item() == 12.0


def test_promotion_is_undone() -> None:
    x = tp.ones(2, requires_grad=True)
    y = tp.ones(2, dtype=tp.float64, requires_grad=True)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (tp.float32, tp.float64)


def test_a_complex_gradient_of_a_real_tensor_is_real() -> None:
    x = leaf(2.0)
    z = tp.tensor([1 + 3j], dtype=tp.complex128)
    (x * z).real.sum().backward()
    assert x.grad.dtype is tp.float64
    assert x.grad.tolist() == [1.0]


def test_a_value_used_twice_gets_both_gradients() -> None:
    x = leaf(3.0)
    y = x * x
    (y * y + y).sum().backward()
    assert x.grad.tolist() == [4 * 27 + 6.0]


def test_several_roots_one_of_which_leads_to_another() -> None:
    x = leaf(1.0)
    y = x * 2
    z = y * 3
    tp.autograd.backward([y, z, y], [tp.ones_like(y)] * 3)
    assert x.grad.tolist() == [2 + 6 + 2]


def test_a_leaf_as_root() -> None:
    x = leaf(1.0)
    x.sum().backward()
    x.backward(tp.tensor([4.0], dtype=tp.float64))
    assert x.grad.tolist() == [5.0]


def test_second_backward_needs_retain_graph() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda x: (x * x).backward(), "scalar outputs"),
        (lambda x: x.detach().sum().backward(), "does not require grad"),
        (lambda x: (x * x).backward(tp.ones(3, dtype=tp.float64)), "Mismatch in shape"),
        (lambda x: tp.autograd.grad((x * x).sum(), x.detach()), "does not require grad"),
        (lambda x: tp.autograd.grad((x * x).sum(), leaf(1.0)), "not have been used in the graph"),
        (lambda x: tp.ones(2, dtype=tp.int64).requires_grad_(), "floating point"),
        (lambda x: (x * x).requires_grad_(False), "leaf variables"),
        (lambda x: x.add_(1), "leaf Variable that requires grad"),
        (lambda x: x[:1].add_(1), "view of a leaf Variable"),
        (lambda x: (x * 1).numpy(), "requires grad"),
        (lambda x: tp.autograd.backward([x.sum(), x.sum()], [None]), "2 tensors and 1 gradients"),
        (lambda x: (x * x).sum().backward(inputs=[]), "cannot be empty"),
    ],
)
def test_refusals(run, message) -> None:  # type: ignore[no-untyped-def]
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=message):
        run(x)
    assert x.tolist() == [1.0, 2.0]
    assert x.grad is None


def test_grad_of_leaves_and_of_results() -> None:
    x, unused = leaf(2.0), leaf(1.0)
    y = x * x
    z = (y * x).sum()
    gx, gy, none = tp.autograd.grad(z, [x, y, unused], allow_unused=True)
    assert (gx.tolist(), gy.tolist(), none) == ([12.0], [2.0], None)
    assert x.grad is None


def test_grad_materialized() -> None:
    x, unused = leaf(2.0), leaf(1.0, 1.0)
    assert tp.autograd.grad(x.sum(), unused, materialize_grads=True)[0].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="allow_unused"):
        tp.autograd.grad(x.sum(), unused, materialize_grads=True, allow_unused=False)


def test_materialized_gradients_can_be_differentiated_once_more() -> None:
    x = tp.tensor(0.5, requires_grad=True)
    first = tp.autograd.grad(x * tp.ones((), requires_grad=True), x, create_graph=True)
    for _ in range(3):
        first = tp.autograd.grad(first, x, create_graph=True, materialize_grads=True)
        assert first[0].item() == 0
    assert not tp.autograd.grad(x * 2, tp.ones(2, requires_grad=True), materialize_grads=True)[
        0
    ].requires_grad


SAVING_ARGUMENTS = {
    "sin": lambda y, w: y.sin(),
    "mul": lambda y, w: y * w,
    "matmul": lambda y, w: y @ w,
    "logsumexp": lambda y, w: y.logsumexp(0),
    "prod": lambda y, w: y.prod(0),
}
SAVING_RESULTS = ("exp", "tanh", "sigmoid", "sqrt", "rsqrt")


@pytest.mark.parametrize("name", SAVING_ARGUMENTS)
def test_second_derivatives_through_an_argument_detached_in_place_are_refused(name: str) -> None:
    """Its memory is what it was, so that the gradient is right; its history is gone."""
    x = tp.tensor([[0.5, 0.25], [1.0, 2.0]], requires_grad=True)
    w = tp.ones(2, 2, requires_grad=True)
    y = x * 2
    z = SAVING_ARGUMENTS[name](y, w).sum()
    expected = tp.autograd.grad(z, (x, w), retain_graph=True, allow_unused=True)
    y.detach_()
    found = tp.autograd.grad(z, (x, w), retain_graph=True, allow_unused=True)
    assert [g is not None and g.tolist() for g in found] == [
        g is not None and g.tolist() for g in expected
    ]
    with pytest.raises(RuntimeError, match="saved tensor that has been detached in-place"):
        tp.autograd.grad(z, (x, w), create_graph=True, allow_unused=True)


@pytest.mark.parametrize("name", SAVING_RESULTS)
def test_second_derivatives_through_a_result_detached_in_place(name: str) -> None:
    values = []
    for detached in (False, True):
        x = tp.tensor([0.5, 0.25], requires_grad=True)
        y = getattr(x, name)()
        z = (y * 1).sum()
        if detached:
            y.detach_()
        (first,) = tp.autograd.grad(z, x, create_graph=True)
        values.append(tp.autograd.grad(first.sum(), x)[0].tolist())
    assert values[0] == values[1]


def test_batched_gradients() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    (jacobian,) = tp.autograd.grad(y, x, tp.eye(2, dtype=tp.float64), is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_backward_into_chosen_inputs_only() -> None:
    x, y = leaf(2.0), leaf(3.0)
    z = x * y
    (z * z).sum().backward(inputs=[x, z])
    assert (x.grad.tolist(), y.grad, z.grad.tolist()) == ([36.0], None, [12.0])


def test_a_chosen_input_that_retains_its_gradient_gets_it_once() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(inputs=[y])
    assert y.grad.tolist() == [4.0, 8.0]
    assert x.grad is None


def test_grad_of_nothing() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        tp.autograd.grad(x * 2, ())
    with pytest.raises(RuntimeError, match=r"`outputs` argument to `grad\(\)` cannot be empty"):
        tp.autograd.grad((), x)
    tp.autograd.backward(())  # as torch has it: nothing to do
    tp.autograd.backward([], [], inputs=[x])
    assert x.grad is None


def test_what_a_node_saved() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    product, power = x * y, x.exp()
    assert product.grad_fn._saved_self is x
    assert product.grad_fn._saved_other is y
    assert power.grad_fn._saved_result.tolist() == power.tolist()
    assert power.grad_fn._saved_result.grad_fn is power.grad_fn
    assert not hasattr(power.grad_fn, "_saved_self")
    product.sum().backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after"):
        product.grad_fn._saved_self  # noqa: B018


def test_a_gradient_that_begins_within_its_memory() -> None:
    """A formula that looks at strides gets those of the gradient, not of the one it was first run on."""
    from tensorplug.nn.ops.convolution.unfold import col2im

    windows = tp.arange(8.0).reshape(1, 2, 4).requires_grad_()
    output = col2im(windows, (5,), (2,), (1,), (0,), (1,))
    seeds = tp.arange(15.0).reshape(3, 1, 1, 5)
    for seed in seeds:
        of_view = tp.autograd.grad(output, windows, seed, retain_graph=True)[0]
        of_copy = tp.autograd.grad(output, windows, seed.clone(), retain_graph=True)[0]
        assert of_view.tolist() == of_copy.tolist()


def test_another_memory_under_a_saved_tensor_is_noticed() -> None:
    for change in (lambda t: t.set_(tp.ones_like(t)), lambda t: t.set_(), lambda t: t.resize_(3)):
        weight, other = leaf(1.0, 1.0), leaf(0.0, 0.0).detach()
        loss = (weight * other).sum()
        change(other)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    first, second = leaf(0.0, 0.0).detach(), leaf(1.0, 1.0).detach()
    first.set_(second)
    loss = (leaf(1.0, 1.0) * second).sum()
    first.add_(1)  # they share the count as they share the memory
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_higher_derivatives() -> None:
    x = leaf(2.0)
    value = (x**4).sum()
    for expected in (32.0, 48.0, 48.0, 24.0):
        (value,) = tp.autograd.grad(value.sum(), x, create_graph=True)
        assert value.tolist() == pytest.approx([expected])


def test_create_graph_accumulates_a_differentiable_gradient() -> None:
    x = leaf(3.0)
    (x * x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = tp.autograd.grad(x.grad.sum(), x)
    assert second.tolist() == [18.0]


def test_saved_results_are_differentiated_again() -> None:
    x = leaf(0.5)
    (first,) = tp.autograd.grad(x.tanh().sum(), x, create_graph=True)
    (second,) = tp.autograd.grad(first.sum(), x)
    t = tp.tanh(x.detach())
    assert second.tolist() == pytest.approx((-2 * t * (1 - t * t)).tolist())


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("input", lambda x, y: x.add_(1)),
        ("result", lambda x, y: y.mul_(2)),
        ("view of the result", lambda x, y: y[0].mul_(2)),
        ("detached result", lambda x, y: y.detach().mul_(2)),
        ("out=", lambda x, y: tp.add(tp.ones(2, dtype=tp.float64), 1, out=y.detach())),
    ],
)
def test_writing_to_what_was_saved_is_noticed(name, write) -> None:  # type: ignore[no-untyped-def]
    x = leaf(1.0, 2.0) * 1
    y = (x * x).exp()
    write(x, y)
    with pytest.raises(
        RuntimeError, match=r"modified by an inplace operation.*float64 \[2\].*Backward0"
    ) as caught:
        y.sum().backward()
    assert "expected version 0" in str(caught.value) or "is at version" in str(caught.value)


def test_a_deep_graph_neither_recurses_nor_stays() -> None:
    gc.disable()
    try:
        x = leaf(1.0)
        y = x
        for _ in range(100_000):
            y = y * 1.0
        node = weakref.ref(y.grad_fn)
        y.sum().backward()
        assert x.grad.tolist() == [1.0]
        del y
        assert node() is None
    finally:
        gc.enable()


def test_a_graph_without_backward_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        a = (x.exp() * x).sigmoid()
        b, _ = a.sort()
        kept = [weakref.ref(t.grad_fn) for t in (a, b)] + [weakref.ref(a), weakref.ref(b)]
        del a, b
        assert [reference() for reference in kept] == [None] * 4
    finally:
        gc.enable()


def test_detaching_keeps_no_graph_alive() -> None:
    x = leaf(1.0)
    y = x * 2
    node = weakref.ref(y.grad_fn)
    kept = y.detach()
    del y
    assert node() is None
    assert kept.tolist() == [2.0]


def test_an_error_in_backward_leaves_the_graph_usable() -> None:
    x = leaf(2.0)
    y = x * 3
    handle = y.register_hook(lambda g: 1 / 0)
    z = (y * y).sum()
    with pytest.raises(ZeroDivisionError):
        z.backward(retain_graph=True)
    handle.remove()
    z.backward()
    assert x.grad.tolist() == [36.0]


def test_backward_inside_of_backward() -> None:
    x = leaf(2.0)
    y = x * x
    total = y.sum()

    def nested(g: tp.Tensor) -> None:
        (inner,) = tp.autograd.grad(total, x, retain_graph=True)
        assert inner.tolist() == [4.0]

    z = y * 3
    z.register_hook(nested)
    z.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [12.0]


def test_threads_differentiate_graphs_that_share_leaves() -> None:
    x = leaf(1.0, 2.0)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(200):
                (g,) = tp.autograd.grad((x * x + x).sum(), x)
                assert g.tolist() == [3.0, 5.0]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_differentiate_one_graph() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).exp().sum()
    expected = tp.autograd.grad(y, x, retain_graph=True)[0].tolist()
    results: list[list[float]] = []

    def work() -> None:
        for _ in range(100):
            gradient = tp.autograd.grad(y, x, retain_graph=True)[0]
            results.append(gradient.tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 400


def test_the_gradient_under_its_other_name():
    x = tp.ones(2, requires_grad=True)
    assert x._grad is None
    x._grad = tp.ones(2)
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="to be a Tensor or None"):
        x._grad = 3
