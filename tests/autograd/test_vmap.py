"""vmap: every op against a loop, and its arguments, results, random numbers and errors against torch."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import tensorplug as tp
from tensorplug.autograd.transforms.pytree import tree_leaves
from tensorplug.core.device.dtypes import bool_, complex128, float64, int64
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.core.tensor.tensor import Tensor
from tensorplug.testing.cases import map_tensors, samples_of, tensors_in
from tensorplug.testing.comparison import assert_close
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

CASES = [
    pytest.param(record, dtype, id=f"{record.op}-{dtype.name}")
    for record in all_records()
    for dtype in (float64, complex128, int64, bool_)
    if dtype in record.dtypes
]

# What an op says whose course, or whose result's shape, depends on the data, or a view on how samples lie.
DATA = ("dynamic shape", ".item()", "control flow", "to a list", "last dimension with stride 1")
# Vectorised single precision (of integers) rounds differently from element by element.
SINGLE = (tp.float32, tp.complex64)


def turned(tensor):
    """Return the elements in another order: still in the op's domain, mostly."""
    square = tensor.ndim >= 2 and tensor.shape[-1] == tensor.shape[-2]
    if tensor.numel() < 2 or square:
        return tensor
    return tensor.flatten().flip(0).reshape(tensor.shape)


def call(op, sample, chosen, values):
    replaced = {id(tensor): value for tensor, value in zip(chosen, values, strict=True)}

    def swap(tensor):
        return replaced.get(id(tensor), tensor)

    return op.call(*map_tensors(sample.args, swap), **map_tensors(sample.kwargs, swap))


@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_every_op_as_a_loop(record, dtype):
    op = get_op(record.op)
    exact = record.check is None or record.reference is not None
    draw = Random(f"{record.op} {dtype}")
    for sample in samples_of(record, "cpu", dtype):
        tensors = list({id(t): t for t in tensors_in((sample.args, sample.kwargs))}.values())
        choices = [tensors] if len(tensors) < 2 else [tensors, tensors[:1], tensors[1:2]]
        for chosen in choices:
            if not chosen:
                continue
            # Positions stay as they are: in another order they may be none.
            others = [t if t.dtype is int64 and t is not tensors[0] else turned(t) for t in chosen]
            try:
                rows = [call(op, sample, chosen, values) for values in (chosen, others)]
            except (RuntimeError, IndexError, ValueError, tp.linalg.LinAlgError):
                continue
            rows = [[leaf for leaf in tree_leaves(r) if isinstance(leaf, Tensor)] for r in rows]
            if not rows[0] or [r.shape for r in rows[0]] != [r.shape for r in rows[1]]:
                continue
            dims = [draw.choice((0, -1, t.ndim // 2)) for t in chosen]
            stacked = [
                tp.stack([a, b], dim) for a, b, dim in zip(chosen, others, dims, strict=True)
            ]

            def mapped(*values, sample=sample, chosen=chosen):
                result = call(op, sample, chosen, values)
                return tuple([leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)])

            try:
                found = tp.vmap(mapped, tuple(dims), randomness="same")(*stacked)
            except RuntimeError as error:
                if any(text in str(error) for text in DATA):
                    continue
                raise
            for got, *parts in zip(found, *rows, strict=True):
                expected = tp.stack(parts)
                assert got.shape == expected.shape, sample
                assert got.dtype is expected.dtype, sample
                if exact:
                    tolerance = 1e-5 if got.dtype in SINGLE else 1e-7
                    assert_close(
                        got.tolist(),
                        expected.tolist(),
                        rtol=tolerance,
                        atol=tolerance,
                        equal_nan=True,
                    )


# --- arguments and results against torch ------------------------------------------------------


def value(L):
    return L.arange(24.0).reshape(2, 3, 4)


ARGUMENTS = {
    "one": lambda L: L.vmap(lambda x: x * 2)(value(L)),
    "dim": lambda L: L.vmap(lambda x: x.sum(0), in_dims=1)(value(L)),
    "negative": lambda L: L.vmap(lambda x: x.sum(0), in_dims=-1, out_dims=-1)(value(L)),
    "none": lambda L: L.vmap(lambda x, y: x + y, in_dims=(0, None))(value(L), value(L)[0]),
    "nested": lambda L: L.vmap(L.vmap(lambda x, y: x @ y, (0, None)), (0, 1))(
        value(L), value(L)[0]
    ),
    "tree": lambda L: L.vmap(lambda d: {"s": d["a"] + d["b"][0]}, in_dims=({"a": 0, "b": [1]},))(
        {"a": L.ones(4), "b": [value(L)[0]]}
    )["s"],
    "tuple": lambda L: L.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(value(L)),
    "constant": lambda L: L.vmap(lambda x: L.ones(2))(value(L)),
    "shared result": lambda L: L.vmap(lambda x: L.ones(2), out_dims=None)(value(L)),
    "keyword": lambda L: L.vmap(lambda x, y: x * y)(L.ones(3), y=L.arange(3.0)),
    "chunks": lambda L: L.vmap(lambda x: x.cumsum(0), chunk_size=2)(value(L).reshape(8, 3)),
    "position": lambda L: L.vmap(lambda x, i: x[i])(value(L)[0], L.tensor([0, 3, 1])),
    "positions": lambda L: L.vmap(lambda x, i: x[:, i], (None, 0))(value(L), L.tensor([[0], [2]])),
    "spread positions": lambda L: L.vmap(lambda x, i: x[i, :, i])(
        value(L).expand(3, 2, 3, 4), L.tensor([[0, 1], [1, 0], [1, 1]])
    ),
    "write": lambda L: L.vmap(lambda x: x.new_zeros(3).add_(x))(value(L)[0].T),
    "write part": lambda L: L.vmap(lambda x: write(L.zeros_like(x), x))(value(L)[0]),
    "scatter": lambda L: L.vmap(lambda i, s: L.zeros(4).scatter(0, i, s))(
        L.tensor([[0, 1], [2, 3]]), L.ones(2, 2)
    ),
    "index_add": lambda L: L.vmap(lambda x, s: x.index_add(0, L.tensor([0, 0]), s))(
        value(L)[0], L.ones(3, 2)
    ),
    "cross dims": lambda L: L.vmap(lambda x, y: L.cat([x, y]), (0, 1))(value(L)[0], value(L)[1].T),
    "conv": lambda L: L.vmap(L.nn.functional.conv1d)(
        L.arange(24.0).reshape(2, 1, 2, 6), L.arange(12.0).reshape(2, 1, 2, 3)
    ),
    "layer norm": lambda L: L.vmap(lambda x: L.nn.functional.layer_norm(x, (4,)))(value(L)),
    "empty": lambda L: L.vmap(lambda x: x * 2)(L.ones(0, 3)),
    "not a tensor": lambda L: L.vmap(lambda x: x)(3),
    "no inputs": lambda L: L.vmap(lambda: 1)(),
    "returns number": lambda L: L.vmap(lambda x: 3)(L.ones(3)),
    "sizes": lambda L: L.vmap(lambda x, y: x)(L.ones(3), L.ones(2)),
    "nothing mapped": lambda L: L.vmap(lambda x, y: x, in_dims=(None, None))(L.ones(3), L.ones(2)),
    "too many dims": lambda L: L.vmap(lambda x: x, in_dims=(0, 0))(L.ones(3)),
    "no such dim": lambda L: L.vmap(lambda x: x, in_dims=4)(L.ones(3)),
    "no dim": lambda L: L.vmap(lambda x: x)(L.tensor(1.0)),
    "dims of text": lambda L: L.vmap(lambda x: x, in_dims="a")(L.ones(3)),
    "out of range": lambda L: L.vmap(lambda x: x, out_dims=3)(L.ones(3)),
    "out structure": lambda L: L.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(L.ones(3)),
    "out text": lambda L: L.vmap(lambda x: x, out_dims="a")(L.ones(3)),
    "out none": lambda L: L.vmap(lambda x: x, out_dims=None)(L.ones(3)),
    "random": lambda L: L.vmap(lambda x: x + L.rand(2))(L.ones(3)),
    "randomness": lambda L: L.vmap(lambda x: x, randomness="some")(L.ones(3)),
    "item": lambda L: L.vmap(lambda x: x.item())(L.ones(3)),
    "branch": lambda L: L.vmap(lambda x: x if x > 0 else -x)(L.ones(3)),
    "chunk size": lambda L: L.vmap(lambda x: x, chunk_size=0)(L.ones(3)),
    "nonzero": lambda L: L.vmap(lambda x: x.nonzero())(L.ones(3, 2)),
    "write to plain": lambda L: L.vmap(lambda x: L.zeros(()).add_(x))(L.ones(3)),
    "numpy": lambda L: L.vmap(lambda x: x.numpy())(L.ones(3)),
    "requires grad": lambda L: L.vmap(lambda x: x.clone().requires_grad_())(L.ones(3)),
}


def write(y, x):
    y[1:3] = x[:2]
    return y


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own use of it
@pytest.mark.parametrize("name", ARGUMENTS)
def test_as_torch(name):
    torch = pytest.importorskip("torch", reason="compares with torch")
    results = []
    for L in (torch, tp):
        try:
            found = tree_leaves(ARGUMENTS[name](L))
            results.append([(tuple(t.shape), t.tolist()) for t in found])
        except Exception as error:
            results.append(type(error).__name__)
    expected, got = results
    if isinstance(expected, str):
        assert got == expected
        return
    for (shape, numbers), (own_shape, own_numbers) in zip(expected, got, strict=True):
        assert shape == own_shape
        assert torch.allclose(torch.tensor(numbers), torch.tensor(own_numbers), rtol=1e-5)


# --- random numbers ---------------------------------------------------------------------------


def test_random_numbers():
    x = tp.zeros(3, 5)
    same = tp.vmap(lambda x: x + tp.rand(5), randomness="same")(x)
    assert tp.equal(same[0], same[1])
    assert tp.equal(same[0], same[2])
    own = tp.vmap(lambda x: x + tp.rand(5), randomness="different")(x)
    assert len({tuple(row) for row in own.tolist()}) == 3
    masks = tp.vmap(lambda x: tp.nn.functional.dropout(x + 1, 0.5), randomness="different")(
        tp.zeros(4, 64)
    )
    assert len({tuple(row) for row in masks.tolist()}) == 4
    draws = tp.vmap(tp.bernoulli, randomness="different")(tp.full((4, 64), 0.5))
    assert len({tuple(row) for row in draws.tolist()}) == 4
    draws = tp.vmap(tp.bernoulli, randomness="same")(tp.full((4, 64), 0.5))
    assert len({tuple(row) for row in draws.tolist()}) == 1


def test_random_numbers_of_a_seed():
    def draw():
        generator = tp.Generator().manual_seed(1)
        return tp.vmap(lambda x: x + tp.rand(5, generator=generator), randomness="different")(
            tp.zeros(3, 5)
        )

    assert tp.equal(draw(), draw())
    tp.manual_seed(4)
    first = tp.vmap(lambda x: x + tp.randn(2), randomness="different")(tp.zeros(3, 2))
    later = tp.randn(2)
    assert not any(tp.equal(later, row) for row in first)


# --- what lies around -------------------------------------------------------------------------


def test_reverse_mode_through_vmap():
    x = tp.randn(4, 3, dtype=tp.float64, requires_grad=True)
    w = tp.randn(3, dtype=tp.float64, requires_grad=True)
    tp.vmap(lambda x: (x * w).exp().sum())(x).square().sum().backward()
    got = x.grad, w.grad
    x.grad = w.grad = None
    (x * w).exp().sum(1).square().sum().backward()
    assert tp.allclose(got[0], x.grad)
    assert tp.allclose(got[1], w.grad)


def test_batched_gradients():
    x = tp.randn(4, dtype=tp.float64, requires_grad=True)
    w = tp.randn(4, dtype=tp.float64, requires_grad=True)
    y = (x[1:].cumsum(0) * w[tp.tensor([0, 0, 3])]).exp()
    rows = tp.randn(5, 3, dtype=tp.float64)
    batched = tp.autograd.grad(y, (x, w), rows, is_grads_batched=True, retain_graph=True)
    for number, row in enumerate(rows):
        single = tp.autograd.grad(y, (x, w), row, retain_graph=True)
        for a, b in zip(batched, single, strict=True):
            assert tp.allclose(a[number], b)


def test_tensors_that_got_out():
    kept = []
    tp.vmap(lambda x: kept.append(x) or x)(tp.ones(3))
    with pytest.raises(RuntimeError, match="vmap"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="vmap"):
        tp.vmap(lambda x: x + kept[0])(tp.ones(3))


def test_repr_and_properties():
    def look(x):
        assert "BatchedTensor(lvl=1, bdim=0" in repr(x)
        assert x.shape == (2,)
        assert x.ndim == 1
        assert x.stride() == (1,)
        assert len(x) == 2
        assert x.requires_grad
        assert x.is_leaf
        assert not x.detach().requires_grad
        return x

    tp.vmap(look)(tp.ones(3, 2, requires_grad=True))


class Scale(tp.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 2 * g * x * y, g * x * x


class OwnRule(Scale):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x, y):
        assert info.batch_size == 3
        assert in_dims == (0, None)
        return OwnRule.apply(x, y), 0


@pytest.mark.parametrize("function", [Scale, OwnRule])
def test_function(function):
    x, y = tp.randn(3, 2, dtype=tp.float64), tp.randn(2, dtype=tp.float64)
    assert tp.allclose(tp.vmap(function.apply, (0, None))(x, y), x * x * y)
    found = tp.vmap(tp.func.grad(lambda x, y: function.apply(x, y).sum(), (0, 1)), (0, None))
    if function is Scale:
        for a, b in zip(found(x, y), (2 * x * y, x * x), strict=True):
            assert tp.allclose(a, b)


def test_function_without_rule():
    class Old(tp.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    class Plain(Scale):
        generate_vmap_rule = False

    with pytest.raises(RuntimeError, match="must override the setup_context"):
        tp.vmap(Old.apply)(tp.ones(3))
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        tp.vmap(Plain.apply)(tp.ones(3), tp.ones(3))


def test_writing_in_place():
    x = tp.ones(3, 2)

    def change(x):
        y = x.clone()
        y[0] += x.sum()
        y.mul_(2).sub_(x).clamp_(max=5.0)
        return y

    assert tp.vmap(change)(x).tolist() == [[5, 1]] * 3
    tp.vmap(lambda row: row.mul_(2))(x)
    assert x.tolist() == [[2, 2]] * 3
    with pytest.raises(RuntimeError, match="broadcast shape"):
        tp.vmap(lambda row: row.add_(tp.ones(4, 2)))(x)
    with pytest.raises(RuntimeError, match="can't be cast"):
        tp.vmap(lambda row: row.add_(0.5))(tp.ones(3, 2, dtype=tp.int64))
    with pytest.raises(RuntimeError, match="out="):
        tp.vmap(lambda row: tp.exp(row, out=tp.empty(2)))(x)


def test_rules_of_plugins():
    from tensorplug.core import plugins
    from tensorplug.core.errors import RegistrationError
    from tensorplug.plugin import Spec, composite, primitive, vmap_rule

    calls = []

    @primitive("input", name="test_vmap.total")
    def total(input):
        return Spec((input,), (), input.dtype)

    @composite(name="test_vmap.pair")
    def pair(input, factor=2.0):
        return input * factor, input.sum()

    def total_rule(info, in_dims, input):
        calls.append((info.batch_size, info.randomness, in_dims))
        return input.movedim(in_dims[0], -1).reshape(-1, info.batch_size).sum(0), 0

    def pair_rule(info, in_dims, input, factor):
        calls.append((in_dims, factor))
        return (input * factor, input.sum()), (in_dims[0], None)

    class Owner:
        name = "test_vmap"
        rules = (vmap_rule("test_vmap.total", total_rule), vmap_rule("test_vmap.pair", pair_rule))

        @plugins.hookimpl
        def tensorplug_ops(self):
            return [total, pair]

        @plugins.hookimpl
        def tensorplug_vmap_rules(self):
            return self.rules

    for rules, message in (
        (
            [vmap_rule("matmul", total_rule)],
            r"vmap rule of 'matmul' has the same priority \(0\) as the one of autograd",
        ),
        (
            [vmap_rule("test_vmap.none", total_rule)],
            "vmap rule of an unknown op: no op 'test_vmap.none'",
        ),
    ):
        wrong = Owner()
        wrong.rules = rules
        with pytest.raises(RegistrationError, match=message):
            plugins.register(wrong)
    plugins.register(Owner())
    try:
        x = tp.arange(6.0).reshape(2, 3)
        assert tp.vmap(total, in_dims=1)(x).tolist() == [3.0, 5.0, 7.0]
        assert calls.pop() == (3, "error", (1,))
        scaled, summed = tp.vmap(pair, out_dims=(0, None))(x)
        assert (scaled.tolist(), summed.item()) == ((x * 2).tolist(), 15.0)
        assert calls.pop() == ((0, None), 2.0)
        nested = tp.vmap(tp.vmap(total))(tp.arange(24.0).reshape(2, 3, 4))
        assert nested.tolist() == tp.arange(24.0).reshape(2, 3, 4).sum(-1).tolist()
    finally:
        plugins.unregister("test_vmap")


@pytest.mark.parametrize("size", [2, 3])
def test_a_rule_of_a_function_returns_outputs_and_dimensions(size):
    class Same(tp.autograd.Function):
        @staticmethod
        def forward(x):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return x.clone()

    with pytest.raises(RuntimeError, match="to have two returns"):
        tp.vmap(Same.apply)(tp.ones(size, 3))


@pytest.mark.parametrize("chunk_size", [None, 2, 3])
def test_randomness_that_is_the_same_is_so_in_all_chunks(chunk_size):
    draw = tp.vmap(lambda x: x + tp.rand(3), randomness="same", chunk_size=chunk_size)
    first, second = draw(tp.zeros(5, 1)), draw(tp.zeros(5, 1))
    assert all(tp.equal(row, first[0]) for row in first)
    assert not tp.equal(first, second)
    draw = tp.vmap(lambda x: x + tp.rand(3), randomness="different", chunk_size=chunk_size)
    assert len({tuple(row) for row in draw(tp.zeros(5, 1)).tolist()}) == 5


@pytest.mark.parametrize("call", ["bernoulli_", "bernoulli"])
def test_chances_of_a_batch(call):
    chances = tp.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])

    def draw(x, p):
        return x.clone().bernoulli_(p) if call == "bernoulli_" else tp.bernoulli(p)

    for in_dims in (0, (None, 0)):
        x = tp.zeros(3, 2) if in_dims == 0 else tp.zeros(2)
        if in_dims != 0 and call == "bernoulli_":
            with pytest.raises(RuntimeError, match="inplace"):
                tp.vmap(draw, in_dims, randomness="different")(x, chances)
            continue
        found = tp.vmap(draw, in_dims, randomness="different")(x, chances)
        assert found.tolist() == chances.tolist()
    many = tp.vmap(draw, randomness="different")(tp.zeros(20, 50), tp.full((20, 50), 0.5))
    assert len({tuple(row) for row in many.tolist()}) == 20


def test_memory_of_given_strides_is_a_batch_of_its_own():
    rows = tp.arange(6.0).reshape(2, 3)
    found = tp.vmap(lambda x: x.new_empty_strided((3,), (1,)).copy_(x))(rows)
    assert found.tolist() == rows.tolist()


def _halfway(cut):
    """A gradient goes through the second factor alone."""
    return lambda x: (cut(x.sin() * 1) * x).sum()


CUT = {
    "vmap of grad": lambda f: tp.vmap(tp.func.grad(f)),
    "grad of vmap": lambda f: tp.func.grad(lambda x: tp.vmap(f)(x).sum()),
    "vmap twice": lambda f: lambda x: tp.vmap(tp.vmap(tp.func.grad(f)))(x[None])[0],
    "backward": lambda f: lambda x: _gradient(tp.vmap(f), x),
}


def _gradient(function, x):
    x = x.clone().requires_grad_()
    function(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("name", CUT)
def test_tensors_are_cut_off_in_place(name):
    x = tp.linspace(0.1, 1.2, 6, dtype=float64).reshape(2, 3)
    assert_close(CUT[name](_halfway(lambda y: y.detach_()))(x), x.sin())
    assert_close(CUT[name](_halfway(lambda y: y.detach()))(x), x.sin())


MEMORY = {
    "resize_": lambda x: x.resize_(1),
    "resize_as_": lambda x: x.resize_as_(tp.ones(1)),
    "set_": lambda x: x.set_(tp.ones(3)),
    "data_ptr": lambda x: x.data_ptr(),
    "untyped_storage": lambda x: x.untyped_storage(),
    "storage": lambda x: x.storage(),
    "__dlpack__": lambda x: x.__dlpack__(),
    "numpy": lambda x: x.numpy(),
    "tolist": lambda x: x.tolist(),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", MEMORY)
def test_one_sample_has_no_memory_of_its_own(name, nested):
    def function(x):
        MEMORY[name](x)
        return x

    x = tp.ones(2, 4, 3)
    with pytest.raises(RuntimeError, match="vmap: "):
        tp.vmap(tp.vmap(function) if nested else function)(x)
    assert x.shape == (2, 4, 3)


@pytest.mark.parametrize("in_dims", [[0, 0], [0, None], {0}, "0", 0.0])
def test_in_dims_of_another_type_are_refused(in_dims: Any) -> None:
    with pytest.raises(ValueError, match="expected `in_dims` to be int or a"):
        tp.vmap(tp.mul, in_dims)(tp.ones(2, 3), tp.ones(2, 3))


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((4,), (1,), None), ((2,), (3,), None), ((2,), (1,), 2), ((1,), (1,), 3), ((2, 2), (1, 2), 0)],
)
def test_as_strided_does_not_reach_into_other_samples(size: Any, stride: Any, offset: Any) -> None:
    batch = tp.arange(12.0).view(4, 3)[:2]  # there is memory behind the last sample, too
    with pytest.raises(RuntimeError, match="can access memory outside of `tensor`"):
        tp.vmap(lambda x: x.as_strided(size, stride, offset))(batch)


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((3,), (1,), None), ((2, 2), (1, 1), 0), ((0,), (1,), 9), ((2,), (0,), 2)],
)
def test_as_strided_shows_each_sample(size: Any, stride: Any, offset: Any) -> None:
    batch = tp.arange(12.0).view(4, 3)[:2]
    shown = tp.vmap(lambda x: x.as_strided(size, stride, offset))(batch)
    rows = [tp.arange(3.0 * n, 3.0 * n + 3).as_strided(size, stride, offset) for n in range(2)]
    assert shown.tolist() == tp.stack(rows).tolist()


@pytest.mark.parametrize(
    ("make", "strides"),
    [
        (lambda x: x.new_empty_strided((2, 3), (5, 2)), (10, 5, 2)),
        (lambda x: x.new_empty_strided((2, 3), (3, 1)), (6, 3, 1)),
        (lambda x: tp.zeros_like(x.t()), (12, 1, 4)),
        (lambda x: tp.empty_like(x.t()), (12, 1, 4)),
        (lambda x: tp.full_like(x.t(), 2), (12, 1, 4)),
        (lambda x: x.new_ones(2, 3), (6, 3, 1)),
    ],
)
def test_what_is_made_like_a_batch_has_the_strides_of_a_sample(make: Any, strides: Any) -> None:
    assert tp.vmap(make)(tp.zeros(2, 3, 4)).stride() == strides


@pytest.mark.parametrize("requires_grad", [True, False])
def test_parameters_are_made_inside(requires_grad: bool) -> None:
    seen = []

    def function(x: Any) -> Any:
        parameter = tp.nn.Parameter(x, requires_grad)
        seen.append((isinstance(parameter, tp.nn.Parameter), parameter.requires_grad))
        module = tp.nn.Module()
        module.weight = parameter
        assert [name for name, _ in module.named_parameters()] == ["weight"]
        return parameter * 2

    batch = tp.arange(6.0).view(2, 3)
    result = tp.vmap(function)(batch)
    assert result.tolist() == (batch * 2).tolist()
    assert not result.requires_grad
    assert seen == [(True, requires_grad)]


_TRANSFORMED = {
    "grad": lambda f, x: tp.func.grad(f)(x),
    "grad_and_value": lambda f, x: tp.func.grad_and_value(f)(x),
    "vjp": lambda f, x: tp.func.vjp(f, x),
    "jvp": lambda f, x: tp.func.jvp(f, (x,), (x,)),
    "jacrev": lambda f, x: tp.func.jacrev(f)(x),
    "linearize": lambda f, x: tp.func.linearize(f, x),
    "vmap": lambda f, x: tp.vmap(f)(x),
}


@pytest.mark.parametrize("call", ["method", "function"])
@pytest.mark.parametrize("name", _TRANSFORMED)
def test_backward_inside_is_refused_and_outside_works(name: str, call: str) -> None:
    outside = tp.ones(3, requires_grad=True)

    def function(x: Any) -> Any:
        loss = (outside * 2).sum()
        loss.backward() if call == "method" else tp.autograd.backward(loss)
        return (x * x).sum()

    with pytest.raises(RuntimeError, match=r"backward\(\) called inside a functorch transform"):
        _TRANSFORMED[name](function, tp.ones(3))
    assert outside.grad is None
    (outside * 2).sum().backward()
    assert outside.grad.tolist() == [2.0] * 3


_ROWS = tp.tensor([[1.0, 2.0, 3.0, 4.0], [8.0, 5.0, 7.0, 6.0], [3.0, 3.0, 9.0, 0.5]])
_REPEATS = tp.tensor([[1, 1, 2, 0], [0, 4, 0, 0], [1, 0, 1, 2]])
#: What looks at values: calls of tensors of one sample each.
_LOOKING = {
    "histc": (lambda x: tp.histc(x, 3), (_ROWS,)),
    "histc of a range": (lambda x: tp.histc(x, 3, 0, 5), (_ROWS,)),
    "histogram": (lambda x: tp.histogram(x, 3).hist, (_ROWS,)),
    "linspace from": (lambda a: tp.linspace(a, 3, 4), (_ROWS[:, 0],)),
    "linspace to": (lambda b: tp.linspace(1, b, 4), (_ROWS[:, 0],)),
    "logspace": (lambda a, b: tp.logspace(a, b, 3), (_ROWS[:, 0], _ROWS[:, 1])),
    "masked_scatter": (lambda x, m: x.masked_scatter(m, x * 10), (_ROWS, _ROWS > 2.5)),
    "masked_scatter_": (lambda x, m: (x * 1).masked_scatter_(m, x * 10), (_ROWS, _ROWS > 2.5)),
    "nonzero_static": (lambda x: tp.nonzero_static(x > 2.5, size=3), (_ROWS,)),
    "repeat_interleave": (lambda x, r: x.repeat_interleave(r), (_ROWS, _REPEATS)),
    "repeat_interleave along": (
        lambda x, r: x[None].repeat_interleave(r, 1, output_size=4), (_ROWS, _REPEATS),
    ),
    "repeat_interleave of positions": (lambda r: tp.repeat_interleave(r), (_REPEATS,)),
}  # fmt: skip


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", _LOOKING)
def test_ops_that_look_at_values_take_samples_one_by_one(name: str, nested: bool) -> None:
    function, batches = _LOOKING[name]
    expected = tp.stack([function(*sample) for sample in zip(*batches, strict=True)])
    if nested:
        found = tp.vmap(tp.vmap(function))(*[tp.stack([b, b]) for b in batches])
        assert found.tolist() == [expected.tolist()] * 2
    else:
        assert tp.vmap(function)(*batches).tolist() == expected.tolist()


def test_masked_scatter_of_samples_has_gradients() -> None:
    x = _ROWS.clone().requires_grad_()
    tp.vmap(lambda x, m: x.masked_scatter(m, x * 10))(x, _ROWS > 2.5).sum().backward()
    rows = [tp.zeros(4, requires_grad=True).detach().requires_grad_() for _ in _ROWS]
    for row, values in zip(rows, _ROWS, strict=True):
        with tp.no_grad():
            row.copy_(values)
        row.masked_scatter(values > 2.5, row * 10).sum().backward()
    assert x.grad.tolist() == [row.grad.tolist() for row in rows]


@pytest.mark.parametrize("padding_idx", [None, 1])
@pytest.mark.parametrize("include_last_offset", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_whose_offsets_differ_from_sample_to_sample(mode, include_last_offset, padding_idx):
    tp.manual_seed(0)
    weight, numbers = tp.randn(5, 3), tp.tensor([0, 1, 2, 4, 1, 3])
    offsets = tp.tensor([[0, 2, 4], [0, 3, 6], [0, 0, 5]])

    def bags(weight, offsets):
        return tp.nn.functional.embedding_bag(
            numbers,
            weight,
            offsets,
            mode=mode,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )

    def slope(weight, offsets):
        return tp.func.grad(lambda w: bags(w, offsets).square().sum())(weight)

    for function in (bags, slope):
        together = tp.func.vmap(function, in_dims=(None, 0))(weight, offsets)
        one_by_one = tp.stack([function(weight, some) for some in offsets])
        tp.testing.assert_close(together, one_by_one)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([[0, 2], [1, 2]], "has to be 0"),
        ([[0, 2], [-1, 2]], "has to be 0"),
        ([[0, 2], [0, 9]], "greater than"),
    ],
)
def test_offsets_of_a_sample_that_no_input_has(offsets, message):
    bag = tp.nn.functional.embedding_bag
    with pytest.raises(RuntimeError, match=message):
        tp.func.vmap(lambda o: bag(tp.arange(4), tp.ones(5, 3), o))(tp.tensor(offsets))
