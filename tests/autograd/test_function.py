"""autograd.Function: the contract of forward, backward, setup_context and ctx."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tensorplug as tp
from tensorplug.autograd import Function, gradcheck, gradgradcheck, once_differentiable


def leaf(*values: float) -> tp.Tensor:
    return tp.tensor(list(values), dtype=tp.float64, requires_grad=True)


class Multiply(Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, power: int = 1) -> Any:
        ctx.save_for_backward(a, b)
        ctx.power = power
        return (a * b) ** power

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        inner = g * ctx.power * (a * b) ** (ctx.power - 1)
        return inner * b, inner * a, None


class ExpSaved(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


def test_first_and_second_derivatives() -> None:
    assert gradcheck(lambda a, b: Multiply.apply(a, b, 3), (leaf(1.0, 2.0), leaf(0.5, -1.0)))
    assert gradgradcheck(lambda a, b: Multiply.apply(a, b, 3), (leaf(1.0, 2.0), leaf(0.5, -1.0)))


def test_setup_context_and_saved_output() -> None:
    assert gradcheck(ExpSaved.apply, (leaf(0.1, -2.0),))
    assert gradgradcheck(ExpSaved.apply, (leaf(0.1, -2.0),))


def test_names_and_needs_input_grad() -> None:
    seen = []

    class Needs(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            return g, None

    y = Needs.apply(leaf(1.0), tp.ones(1, dtype=tp.float64))
    assert y.grad_fn.name() == "NeedsBackward"
    y.sum().backward()
    assert seen == [(True, False)]


def test_several_outputs_and_materialized_gradients() -> None:
    seen: list[Any] = []

    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a.tolist(), b.tolist()))
            return a * 2 + b * 3

    x = leaf(1.0, 1.0)
    first, second = Two.apply(x)
    assert (first.output_nr, second.output_nr) == (0, 1)
    second.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert seen == [([0.0, 0.0], [1.0, 1.0])]


def test_undefined_gradients_when_not_materialized() -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            assert a is None
            return b * 3

    x = leaf(1.0)
    Two.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [3.0]


def test_mark_non_differentiable() -> None:
    class Order(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            rank = x * 0
            ctx.mark_non_differentiable(rank)
            return x * 2, rank

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return g * 2

    y, rank = Order.apply(leaf(1.0))
    assert y.requires_grad
    assert not rank.requires_grad


def test_mark_dirty() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1.0)
    y = x * 3
    z = Double.apply(y)
    assert z is y
    z.sum().backward()
    assert x.grad.tolist() == [6.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Double.apply(leaf(1.0))


def test_an_input_returned_as_it_is() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 5

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.tolist() == [5.0]


def test_once_differentiable() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = leaf(3.0)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]
    seed = leaf(1.0)
    (first,) = tp.autograd.grad(Square.apply(x), x, seed, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def _wrong(result: Any) -> type[Function]:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return result

    return Wrong


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        ((None, 1.0), RuntimeError, "incorrect number of gradients"),
        (3.0, TypeError, "expected Variable or None"),
        (tp.ones(7, dtype=tp.float64), RuntimeError, "invalid gradient at index 0"),
    ],
)
def test_wrong_gradients(result: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _wrong(result).apply(leaf(1.0, 2.0)).sum().backward()


def test_misuse() -> None:
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        old = Multiply()
    with pytest.raises(RuntimeError, match="non-static forward method is deprecated"):
        old(leaf(1.0), 2)

    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError):
        Empty.apply(leaf(1.0))

    class SavesNumber(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_backward"):
        SavesNumber.apply(leaf(1.0))


def test_writing_to_a_saved_tensor_is_noticed() -> None:
    a, b = leaf(1.0) * 1, leaf(2.0)
    y = Multiply.apply(a, b)
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_call_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        y = ExpSaved.apply(leaf(1.0))
        node, result = weakref.ref(y.grad_fn), weakref.ref(y)
        del y
        assert (node(), result()) == (None, None)
    finally:
        gc.enable()


def test_saved_outputs_go_through_hooks() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor.tolist()

    x = tp.tensor([0.5, 1.0], dtype=tp.float64, requires_grad=True)
    with tp.autograd.graph.saved_tensors_hooks(pack, lambda t: tp.tensor(t, dtype=tp.float64)):
        y = ExpSaved.apply(x)
    assert [tensor.tolist() for tensor in packed] == [y.tolist()]
    (first,) = tp.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tp.autograd.grad(first.sum(), x)
    assert first.tolist() == second.tolist() == y.tolist()


def test_variables_are_tensors():
    from tensorplug.autograd.variable import Variable

    x = tp.ones(2)
    leaf = tp.autograd.Variable(x, requires_grad=True)
    assert tp.autograd.Variable is Variable
    assert isinstance(leaf, Variable)
    assert not isinstance(3, Variable)
    assert leaf.requires_grad
    assert not x.requires_grad
    assert not Variable(leaf).requires_grad
    assert leaf.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="got list"):
        Variable([1.0])


class WithNote(Function):
    """Returns what is no tensor, too, before and after the one that is."""

    seen: list[Any]

    @staticmethod
    def forward(x: Any, factor: float = 3.0) -> Any:
        return "before", x * factor, 5, None

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factors = inputs[1:] or (3.0,)
        ctx.count = len(inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        WithNote.seen = [None if g is None else g.tolist() for g in gradients]
        return (gradients[1] * ctx.factors[0], None)[: ctx.count]


@pytest.mark.parametrize("given", [(), (4.0,)])
def test_results_that_are_no_tensors(given: Any) -> None:
    x = leaf(1.0, 2.0)
    before, y, number, nothing = WithNote.apply(x, *given)
    assert (before, number, nothing) == ("before", 5, None)
    y.sum().backward()
    assert WithNote.seen == [None, [1, 1], None, None]
    assert x.grad.tolist() == [given[0] if given else 3.0] * 2


class Tripled(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 3

    @staticmethod
    def vjp(ctx: Any, gradient: Any) -> Any:
        return gradient * 3


def test_backward_may_be_called_vjp() -> None:
    x = leaf(1.0, 2.0)
    assert gradcheck(Tripled.apply, (x.double().detach().requires_grad_(),))
    Tripled.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]

    class Both(Tripled):
        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient

    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Both.apply(x).sum().backward()


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("size", [3, 1])
def test_gradcheck_of_a_function_that_asks_what_is_recorded(fast_mode: bool, size: int) -> None:
    """It returns what requires grad, as a step of an optimizer does of its state."""
    x = tp.rand(size, 1, dtype=tp.float64, requires_grad=True)
    wide = x.detach().clone().requires_grad_().expand(-1, 2)

    def function(x: Any, wide: Any) -> Any:
        return tuple([y for y in (x.detach(), x * wide, wide.sin()) if y.requires_grad])

    assert gradcheck(function, (x, wide), fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_of_what_a_function_holds_itself(fast_mode: bool) -> None:
    module = tp.nn.Linear(3, 2).double()
    x = tp.randn(4, 3, dtype=tp.float64, requires_grad=True)
    kept = module.weight.tolist()
    assert gradcheck(lambda x, *_: module(x), (x, *module.parameters()), fast_mode=fast_mode)
    assert gradcheck(lambda a, b: a * b, (x, x), fast_mode=fast_mode)
    assert module.weight.tolist() == kept


class Passed(Function):
    """Tensors as they are; its backward triples."""

    @staticmethod
    def forward(ctx: Any, x: Any, apart: bool) -> Any:
        if apart:
            ctx.mark_non_differentiable(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 3, None


@pytest.mark.parametrize("leaf_itself", [False, True])
@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1),
        lambda y: y[0].mul_(2),
        lambda y: y.copy_(leaf(1.0, 2.0)),
        lambda y: y.zero_(),
    ],
)
def test_an_input_that_is_returned_is_not_written_to(write: Any, leaf_itself: bool) -> None:
    """It would be for the input too, whose gradient would not know."""
    x = leaf(1.0, 2.0)
    given = x if leaf_itself else x * 1
    returned = Passed.apply(given, False)
    assert returned is not given
    assert returned._base is given
    with pytest.raises(RuntimeError, match=r"modified inplace|used in an in-place operation"):
        write(returned)
    assert given.tolist() == [1.0, 2.0]
    returned.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("form", ["input", "view of it"])
def test_a_write_to_an_input_that_was_returned_is_told(form: str) -> None:
    given = leaf(1.0, 2.0) * 1
    returned = Passed.apply(given, False)
    (given if form == "input" else given[0]).mul_(2)
    with pytest.raises(
        RuntimeError, match="its base or another view of its base has been modified"
    ):
        _ = returned.grad_fn


def test_an_input_that_is_returned_without_recording_may_be_written_to() -> None:
    x = tp.ones(2)
    Passed.apply(x, False).mul_(2)
    assert x.tolist() == [2.0, 2.0]
    with tp.no_grad():
        y = Passed.apply(leaf(1.0), False)
        assert y.mul_(2).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        y.mul_(2)


@pytest.mark.parametrize("leaf_itself", [False, True])
def test_an_input_that_is_returned_as_not_differentiable(leaf_itself: bool) -> None:
    x = leaf(1.0, 2.0)
    returned = Passed.apply(x if leaf_itself else x * 1, True)
    assert not returned.requires_grad
    assert returned.grad_fn is None
    assert x.requires_grad


@pytest.mark.parametrize("materialized", [False, True])
def test_gradients_of_what_is_not_differentiable(materialized: bool) -> None:
    seen: list[Any] = []

    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            first, second, third = x * 2, x * 3, x * 4
            ctx.mark_non_differentiable(second)
            ctx._materialize_non_diff_grads = materialized
            return first, second, third

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            seen.extend(gradients)
            return gradients[0] * 2

    Two.apply(leaf(1.0))[0].backward()
    assert [None if g is None else g.tolist() for g in seen] == [
        [1.0], [0.0] if materialized else None, [0.0],
    ]  # fmt: skip


def test_old_name_of_saved_tensors() -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
                (x,) = ctx.saved_variables
            assert x.tolist() == [1.0]
            return gradient * 2

    Doubled.apply(leaf(1.0)).backward()


@pytest.mark.parametrize("mark", ["mark_dirty", "mark_non_differentiable"])
def test_only_tensors_are_marked(mark: str) -> None:
    class Marks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            getattr(ctx, mark)(3)
            return x * 1

    with pytest.raises(RuntimeError, match=f"{mark} only accepts variable arguments"):
        Marks.apply(leaf(1.0))


def test_an_input_that_is_written_to_and_not_differentiable() -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(x)
            return x.mul_(2)

    given = leaf(1.0) * 1
    returned = Doubled.apply(given)
    assert not returned.requires_grad
    assert returned.tolist() == given.tolist() == [2.0]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda g: (g, g), "gradient different than None at position 2"),
        (lambda g: (g, 1.0), "gradient different than None at position 2"),
        (lambda g: (g * 1j, None), "returned an invalid gradient at index 0"),
    ],
)
def test_gradients_that_no_input_can_have(result: Any, words: str, create_graph: bool) -> None:
    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, by: float) -> Any:
            return x * by

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return result(gradient)

    with pytest.raises(RuntimeError, match=words):
        Scaled.apply(leaf(1.0), 2.0).sum().backward(create_graph=create_graph)


def test_gradients_of_tensors_that_ask_for_none_are_left_out() -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2, gradient * 1j

    x = leaf(1.0)
    Product.apply(x, tp.full((1,), 2.0, dtype=tp.float64)).sum().backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("kept", ["input", "output", "view", "nothing"])
@pytest.mark.parametrize("save", ["save_for_backward", "save_for_forward"])
def test_an_input_returned_as_it_is_cannot_be_saved(save: str, kept: str, written: bool) -> None:
    class Same(tp.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            if written:
                ctx.mark_dirty(inputs[0])
            held = {"input": inputs[0], "output": output, "view": output.view_as(output)}
            getattr(ctx, save)(*([] if kept == "nothing" else [held[kept]]))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    for requires_grad in (True, False):
        x = tp.ones(2, requires_grad=requires_grad).clone()
        if kept in ("input", "output") and not written:
            with pytest.raises(RuntimeError, match="An input that has been returned as-is"):
                Same.apply(x)
        else:
            assert Same.apply(x).tolist() == [1.0, 1.0]
