"""Ops registered at run time: what torch's documentation shows, as programs that both libraries run."""

import copy
import itertools
import pickle
from collections.abc import Sequence

import numpy as np
import pytest

import tensorplug as tp
from tensorplug._ops import PACKETS
from tensorplug.core.dispatch.op_registry import has_op
from tensorplug.library.registration import remove
from tensorplug.library.schema import parse

try:
    import torch
except ImportError:  # what needs it is skipped
    torch = None

LIBRARIES = [tp] if torch is None else [tp, torch]
_fresh = itertools.count()


@pytest.fixture(params=LIBRARIES, ids=lambda lib: lib.__name__)
def lib(request):
    return request.param


@pytest.fixture
def space():
    """A namespace that no other test uses; its ops are gone afterwards."""
    name = f"test_library_{next(_fresh)}"
    yield name
    for (namespace, _), packet in list(PACKETS.items()):
        if namespace == name:
            for overload in list(packet._overloads.values()):
                remove(overload)
    assert not [key for key in PACKETS if key[0] == name]


def numpy_sin(lib, space):
    @lib.library.custom_op(f"{space}::numpy_sin", mutates_args=(), schema="(Tensor x) -> Tensor")
    def numpy_sin(x):
        return lib.from_numpy(np.sin(x.numpy(force=True)))

    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()

    numpy_sin.register_autograd(backward, setup_context=setup_context)
    return numpy_sin


def numpy_mul(lib, space):
    @lib.library.custom_op(
        f"{space}::numpy_mul", mutates_args=(), schema="(Tensor x, *, float val) -> Tensor"
    )
    def numpy_mul(x, *, val):
        return lib.from_numpy(x.numpy(force=True) * val)

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.val = keyword_only_inputs["val"]

    numpy_mul.register_autograd(lambda ctx, g: g * ctx.val, setup_context=setup_context)
    return numpy_mul


def numpy_cat(lib, space):
    @lib.library.custom_op(
        f"{space}::numpy_cat", mutates_args=(), schema="(Tensor[] xs, int dim) -> Tensor"
    )
    def numpy_cat(xs, dim):
        assert xs
        return lib.from_numpy(np.concatenate([x.numpy(force=True) for x in xs], axis=dim))

    def setup_context(ctx, inputs, output):
        ctx.dim_sizes = [x.shape[inputs[1]] for x in inputs[0]]
        ctx.dim = inputs[1]

    numpy_cat.register_autograd(
        lambda ctx, g: (list(lib.split(g, ctx.dim_sizes, ctx.dim)), None),
        setup_context=setup_context,
    )
    return numpy_cat


def numpy_split(lib, space):
    @lib.library.custom_op(
        f"{space}::numpy_split", mutates_args=(), schema="(Tensor x, int[] at, int dim) -> Tensor[]"
    )
    def numpy_split(x, at, dim):
        parts = np.split(x.numpy(force=True), at, axis=dim)
        return [lib.from_numpy(part.copy()) for part in parts]

    def setup_context(ctx, inputs, output):
        ctx.dim = inputs[2]

    numpy_split.register_autograd(
        lambda ctx, grads: (lib.cat(grads, dim=ctx.dim), None, None), setup_context=setup_context
    )
    return numpy_split


def two(lib, space):
    @lib.library.custom_op(
        f"{space}::two", mutates_args=(), schema="(Tensor x, Tensor? y=None) -> (Tensor, Tensor)"
    )
    def two(x, y=None):
        return x * 2, x * 3 if y is None else y * 3

    def setup_context(ctx, inputs, output):
        ctx.both = inputs[1] is not None

    two.register_autograd(
        lambda ctx, a, b: (2 * a, 3 * b) if ctx.both else (2 * a + 3 * b, None),
        setup_context=setup_context,
    )
    return two


OPS = {
    "sin": (numpy_sin, lambda op, x: op(x)),
    "mul": (numpy_mul, lambda op, x: op(x, val=3.14)),
    "cat": (numpy_cat, lambda op, x: op([x, x * 2, x], 1)),
    "split": (
        numpy_split,
        lambda op, x: sum(part.sum() * i for i, part in enumerate(op(x, [1, 3], 1))),
    ),
    "two": (two, lambda op, x: op(x)[0] * op(x)[1]),
    "two, both": (two, lambda op, x: sum(op(x, x.exp()))),
}


@pytest.mark.parametrize("name", OPS)
def test_values_and_gradients(name, space):
    make, call = OPS[name]
    results = []
    for lib in LIBRARIES:
        op = make(lib, space)
        short = op._qualname.partition("::")[2]
        public = getattr(getattr(lib.ops, space), short)
        for function in (op, public, public.default):
            x = lib.tensor(
                np.linspace(-1.0, 2.0, 8).reshape(2, 4).tolist(),
                dtype=lib.float64,
                requires_grad=True,
            )
            result = call(function, x)
            assert result.requires_grad
            result.exp().sum().backward()
            results.append((result.detach().tolist(), x.grad.tolist()))
            assert not call(function, x.detach()).requires_grad
        if lib is tp:
            x = tp.rand(2, 4, dtype=tp.float64, requires_grad=True)
            assert tp.autograd.gradcheck(lambda x, op=op: call(op, x), (x,))
    for other in results[1:]:
        np.testing.assert_allclose(other[0], results[0][0], rtol=1e-12)
        np.testing.assert_allclose(other[1], results[0][1], rtol=1e-12)


def test_annotations_make_the_schema(lib, space):
    Tensor = lib.Tensor

    def crop(pic: Tensor, boxes: Tensor) -> Tensor:
        return pic[..., : int(boxes[0]), : int(boxes[1])].clone()

    def lots(
        x: Tensor, y: Tensor | None, n: int = 3, f: float = 2.0, *, s: str = "a", b: bool = True
    ) -> tuple[Tensor, Tensor]: ...

    def lists(
        xs: list[Tensor], dims: Sequence[int], w: list[float] | None = None
    ) -> list[Tensor]: ...

    def written(x: Tensor, y: Tensor, d: lib.dtype) -> None: ...

    found = [
        lib.library.infer_schema(crop, mutates_args=()),
        lib.library.infer_schema(lots, mutates_args=()),
        lib.library.infer_schema(lists, mutates_args=()),
        lib.library.infer_schema(written, mutates_args={"y"}),
        lib.library.infer_schema(written, mutates_args="unknown", op_name="a::b"),
    ]
    assert found == [
        "(Tensor pic, Tensor boxes) -> Tensor",
        '(Tensor x, Tensor? y, SymInt n=3, float f=2.0, *, str s="a", bool b=True) -> (Tensor, Tensor)',
        "(Tensor[] xs, SymInt[] dims, float[]? w=None) -> Tensor[]",
        "(Tensor x, Tensor(a1!) y, ScalarType d) -> ()",
        "a::b(Tensor(a0!) x, Tensor(a1!) y, ScalarType d) -> ()",
    ]
    op = lib.library.custom_op(f"{space}::crop", crop, mutates_args=())
    assert op(lib.ones(3, 4, 4), lib.tensor([2, 1])).shape == (3, 2, 1)


def _no_annotation(x): ...
def _no_return(x: "tp.Tensor"): ...
def _strange(x: dict) -> None: ...
def _collects(*xs: int) -> None: ...


@pytest.mark.parametrize("function", [_no_annotation, _no_return, _strange, _collects])
def test_functions_without_a_schema_are_refused(function):
    with pytest.raises(ValueError, match=r"infer_schema\(func\)"):
        tp.library.infer_schema(function, mutates_args=())
    with pytest.raises(ValueError, match="mutates_args were not found"):
        tp.library.infer_schema(_fitting, mutates_args={"z"})


def _fitting(x: "tp.Tensor") -> None: ...


SCHEMAS = [
    "a::b(Tensor x, float? y=None, *, int z) -> Tensor",
    "a::b.over(Tensor(a!) self, Tensor[] ts, int[2] s, Scalar alpha=1) -> (Tensor, Tensor)",
    'a::c(Tensor? x=None, str mode="mean", bool b=False, ScalarType? dtype=None) -> ()',
    "a::d(Tensor?[] indices, float eps=0.5, Device? device=None) -> Tensor[]",
    "a::e() -> int",
]


@pytest.mark.parametrize("text", SCHEMAS)
def test_schemas_are_read_as_torch_reads_them(text):
    schema = parse(text)
    if torch is None:
        assert str(parse(str(schema))) == str(schema)
        return
    theirs = torch._C.parse_schema(text)
    assert str(schema).replace(" ", "") == str(theirs).replace(" ", "")
    assert [(a.name, a.kwarg_only, a.has_default_value()) for a in schema.arguments] == [
        (a.name, a.kwarg_only, a.has_default_value()) for a in theirs.arguments
    ]
    assert [a.default_value for a in schema.arguments if a.has_default_value()] == [
        a.default_value for a in theirs.arguments if a.has_default_value()
    ]
    assert schema.is_mutable == theirs.is_mutable


def test_calls_that_do_not_fit_the_schema(lib, space):
    op = numpy_mul(lib, space)
    for call in (
        lambda: op(),
        lambda: op(lib.ones(1)),
        lambda: op(lib.ones(1), 2.0),
        lambda: op(lib.ones(1), val=2.0, other=1),
        lambda: op(3, val=2.0),
    ):
        with pytest.raises((RuntimeError, TypeError), match="numpy_mul"):
            call()


def test_a_library_declares_and_registers(lib, space):
    library = lib.library.Library(space, "DEF")
    assert library.define("foo(Tensor x, int n=2) -> Tensor") == "foo"
    library.impl("foo", lambda x, n=2: x * n, "CPU")
    packet = getattr(lib.ops, space).foo
    assert packet(lib.ones(2)).tolist() == [2.0, 2.0]
    assert packet.default(lib.ones(2), 3).tolist() == [3.0, 3.0]
    assert packet(lib.ones(2), n=4).tolist() == [4.0, 4.0]
    assert str(packet.default._schema).startswith(f"{space}::foo(Tensor x, ")
    assert (packet.default.name(), str(packet), str(packet.default)) == (
        f"{space}::foo",
        f"{space}.foo",
        f"{space}.foo.default",
    )
    assert packet.default.namespace == space
    assert packet.default.overloadpacket is packet
    with pytest.raises(RuntimeError, match=r"twice|already|multiple times"):
        library.define("foo(Tensor x) -> Tensor")
    if lib is tp:  # torch warns
        with pytest.raises(RuntimeError, match="already a kernel"):
            library.impl("foo", lambda x, n: x, "CPU")
    with pytest.raises(AttributeError, match="other"):
        getattr(lib.ops, space).other  # noqa: B018
    with pytest.raises(AttributeError, match="overload"):
        packet.other  # noqa: B018
    library._destroy()


def test_overloads(lib, space):
    library = lib.library.Library(space, "DEF")
    library.define("bar.Tensor(Tensor x, Tensor y) -> Tensor")
    library.define("bar.Scalar(Tensor x, Scalar y) -> Tensor")
    library.impl("bar.Tensor", lambda x, y: x + y, "CompositeImplicitAutograd")
    library.impl("bar.Scalar", lambda x, y: x - y, "CompositeImplicitAutograd")
    bar = getattr(lib.ops, space).bar
    x = lib.ones(2, requires_grad=True)
    assert bar(x, x).tolist() == [2.0, 2.0]
    assert bar(x, 3).tolist() == [-2.0, -2.0]
    assert bar.Scalar(x, 3).tolist() == [-2.0, -2.0]
    assert sorted(bar.overloads()) == ["Scalar", "Tensor"]
    bar(x, x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    library._destroy()


def test_define_and_impl_by_name(lib, space):
    lib.library.define(f"{space}::mysin", "(Tensor x) -> Tensor")

    @lib.library.impl(f"{space}::mysin", "cpu")
    def mysin(x):
        return lib.from_numpy(np.sin(x.numpy()))

    @lib.library.register_fake(f"{space}::mysin")
    def _(x):
        return lib.empty_like(x)

    op = getattr(lib.ops, space).mysin
    x = lib.rand(3)
    np.testing.assert_allclose(op(x).numpy(), np.sin(x.numpy()), rtol=1e-6)
    assert op(lib.ones(4, 2, device="meta")).shape == (4, 2)


def test_kernels_by_device(lib, space):
    @lib.library.custom_op(
        f"{space}::where", mutates_args=(), device_types="cpu", schema="(Tensor x) -> Tensor"
    )
    def where(x):
        return x + 1

    assert where(lib.zeros(1)).item() == 1
    with pytest.raises((NotImplementedError, RuntimeError), match="where"):
        where(lib.zeros(1, device="meta"))
    where.register_fake(lambda x: lib.empty_like(x))
    assert where(lib.zeros(5, device="meta")).shape == (5,)


def test_arguments_that_are_written_to(lib, space):
    @lib.library.custom_op(
        f"{space}::zero_first", mutates_args={"x"}, schema="(Tensor(a!) x, Tensor by) -> ()"
    )
    def zero_first(x, by):
        x.numpy()[0] = by.item()

    x = lib.ones(3)
    y = x * 1
    before = x._version
    zero_first(x, lib.tensor(5.0))
    assert x.tolist() == [5.0, 1.0, 1.0]
    assert x._version == before + 1
    weight = lib.ones(3, requires_grad=True)
    out = (weight * x).sum()
    zero_first(x, lib.tensor(6.0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
    assert y.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="non-functional operator"):
        zero_first.register_autograd(lambda ctx, g: None)


def test_an_op_without_a_derivative(lib, space):
    @lib.library.custom_op(f"{space}::plain", mutates_args=(), schema="(Tensor x) -> Tensor")
    def plain(x):
        return x.clone()

    out = plain(lib.ones(2, requires_grad=True))
    assert out.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        out.sum().backward()


def test_results_must_not_be_arguments(lib, space):
    @lib.library.custom_op(f"{space}::same", mutates_args=(), schema="(Tensor x) -> Tensor")
    def same(x):
        return x

    with pytest.raises(RuntimeError, match="may not alias"):
        same(lib.ones(2))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("returns", "made"),
    [
        ("Tensor", lambda x: x.view(-1)),
        ("Tensor", lambda x: x[0]),
        ("Tensor", lambda x: x.detach()),
        ("(Tensor, Tensor)", lambda x: (x + 1,) * 2),
        ("(Tensor, Tensor)", lambda x: (x + 1).unbind()),
        ("Tensor[]", lambda x: [x * 1, x]),
        ("Tensor[]", lambda x: list((x * 1).split(1))),
    ],
)
def test_results_must_not_share_memory(lib, space, returns, made, recorded):
    op = lib.library.custom_op(
        f"{space}::shares", made, mutates_args=(), schema=f"(Tensor x) -> {returns}"
    )
    with pytest.raises(RuntimeError, match="may not alias"):
        op(lib.ones(2, 2, requires_grad=recorded))


def test_results_may_be_what_the_schema_says(space):
    library = tp.library.Library(space, "FRAGMENT")
    library.define("twice_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("twice_", lambda x: x.mul_(2), "CPU")
    library.define("first(Tensor(a) x) -> Tensor(a)")
    library.impl("first", lambda x: x[0], "CPU")
    x = tp.ones(2)
    assert getattr(tp.ops, space).twice_(x) is x
    getattr(tp.ops, space).first(x).zero_()
    assert x.tolist() == [0.0, 2.0]
    library._destroy()


@pytest.mark.parametrize(
    ("returns", "made"),
    [
        ("Tensor", lambda x: 1),
        ("Tensor", lambda x: (x + 1, x + 2)),
        ("(Tensor, Tensor)", lambda x: x + 1),
        ("(Tensor, Tensor)", lambda x: (x + 1,)),
        ("(Tensor, Tensor)", lambda x: (x + 1, 2)),
        ("Tensor[]", lambda x: x + 1),
    ],
)
def test_kernels_return_what_the_schema_says(lib, space, returns, made):
    op = lib.library.custom_op(
        f"{space}::wrong", made, mutates_args=(), schema=f"(Tensor x) -> {returns}"
    )
    with pytest.raises((RuntimeError, TypeError)):
        op(lib.ones(3))


#: By type: values that a call takes, and values that it does not.
VALUES = {
    "int": ([0, True], [1.5, "1", None, [1]]),
    "float": ([0.5, 1, True], ["1", None, [1.0]]),
    "bool": ([True, 0], ["yes", [True]]),
    "str": (["yes"], [1, None, ["yes"]]),
    "int?": ([1, None], [1.5, "1"]),
    "int[]": ([[1, 2], (1,), []], [1, [1.5], ["1"], None]),
    "int[2]": ([[1, 2], 1], ["1", None]),
    "float[]": ([[1, 0.5]], [["1"], 0.5]),
    "str?": (["yes", None], [1]),
    "Tensor?": ([None], [1, "1"]),
    "Tensor[]": ([[]], [[1], 1, None]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_arguments_are_of_their_types(lib, space, kind):
    op = lib.library.custom_op(
        f"{space}::typed", lambda x, y: x + 1, mutates_args=(),
        schema=f"(Tensor x, {kind} y) -> Tensor",
    )  # fmt: skip
    right, wrong = VALUES[kind]
    for value in right:
        assert op(lib.zeros(1), value).item() == 1
    for value in wrong:
        with pytest.raises(RuntimeError, match="Expected a value of type"):
            op(lib.zeros(1), value)


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_gradients_is_checked(lib, space, count):
    op = lib.library.custom_op(
        f"{space}::pair", lambda x, y: x + y, mutates_args=(),
        schema="(Tensor x, Tensor y) -> Tensor",
    )  # fmt: skip
    op.register_autograd(lambda ctx, g: (g,) * count)
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"GeneratedBackwardFor_.* returned a"):
        op(x, x).sum().backward()
    op.register_autograd(lambda ctx, g: (g, g * 2))
    op(x, x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_what_an_op_cannot_have(lib, space):
    custom_op = lib.library.custom_op
    for kind in ("Tensor", "Tensor?", "Tensor[]"):
        with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
            custom_op(
                f"{space}::by_name", lambda x, *, y: x + 1, mutates_args=(),
                schema=f"(Tensor x, *, {kind} y) -> Tensor",
            )  # fmt: skip
    for names, schema in (((), "(Tensor(a!) x) -> ()"), (("x",), "(Tensor x) -> ()")):
        with pytest.raises(ValueError, match="Please make these consistent"):
            custom_op(f"{space}::writes", lambda x: None, mutates_args=names, schema=schema)

    def function(x):
        return None

    function.__annotations__.update(x=lib.Tensor)
    function.__annotations__["return"] = None
    with pytest.raises(ValueError, match=r"{'y'} in mutates_args were not found"):
        custom_op(f"{space}::writes", function, mutates_args={"y"})
    with pytest.raises(ValueError, match="or the string 'unknown'"):
        custom_op(f"{space}::writes", function, mutates_args="x")


def test_errors_of_kernels_are_their_own(space):
    def fails(x):
        raise RuntimeError("operands could not be broadcast together with shapes of mine")

    op = tp.library.custom_op(
        f"{space}::fails", fails, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    with pytest.raises(RuntimeError, match="shapes of mine"):
        op(tp.ones(1))


def test_vmap(lib, space):
    op = numpy_sin(lib, space)

    @op.register_vmap
    def _(info, in_dims, x):
        return op(x), in_dims[0]

    x = lib.rand(3, 4, dtype=lib.float64)
    np.testing.assert_allclose(lib.vmap(op)(x).numpy(), np.sin(x.numpy()))
    np.testing.assert_allclose(lib.vmap(op, 1, 1)(x).numpy(), np.sin(x.numpy()))


@pytest.mark.parametrize("in_dims", [(0, None), (None, 0), (1, 0), (-1, 2), (0, 0)], ids=str)
def test_vmap_without_a_rule(lib, space, in_dims):
    @lib.library.custom_op(
        f"{space}::product", mutates_args=(), schema="(Tensor x, Tensor y) -> Tensor"
    )
    def op(x, y):
        return lib.from_numpy(x.numpy(force=True) * y.numpy(force=True))

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    op.register_autograd(
        lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
        setup_context=setup_context,
    )
    x, y = lib.rand(3, 3, 3, dtype=lib.float64), lib.rand(3, 3, 3, dtype=lib.float64)
    expected = lib.vmap(lib.mul, in_dims)(x, y)
    np.testing.assert_allclose(lib.vmap(op, in_dims)(x, y).numpy(), expected.numpy())
    nested = lib.vmap(lib.vmap(op), (0, 1))(x, y)
    np.testing.assert_allclose(nested.numpy(), (x * y.transpose(0, 1)).numpy())
    if lib is tp:  # torch refuses to transform the function that it makes of an op
        slopes = lib.vmap(lib.func.grad(lambda x, y: op(x, y).sum(), (0, 1)))(x, y)
        for slope, factor in zip(slopes, (y, x), strict=True):
            np.testing.assert_allclose(slope.numpy(), factor.numpy())
    x.requires_grad_()
    lib.vmap(op, in_dims)(x, y).sum().backward()
    total = lib.autograd.grad(lib.vmap(lib.mul, in_dims)(x, y).sum(), x)[0]
    np.testing.assert_allclose(x.grad.numpy(), total.numpy())


def test_vmap_without_a_rule_of_several_results(lib, space):
    spelled = "(Tensor x, Tensor y, int count) -> (Tensor, Tensor)"

    @lib.library.custom_op(f"{space}::both", mutates_args=(), schema=spelled)
    def both(x, y, count):
        return x * count, y + x

    x, y = lib.rand(4, 3), lib.rand(4, 3)
    product, total = lib.vmap(lambda x, y: both(x, y, 3))(x, y)
    np.testing.assert_allclose(product.numpy(), 3 * x.numpy())
    np.testing.assert_allclose(total.numpy(), x.numpy() + y.numpy(), 1e-6)


def test_vmap_without_a_rule_of_lists(space):
    op = numpy_cat(tp, space)
    x, y = tp.rand(4, 3), tp.rand(2, 4)
    joined = tp.vmap(lambda x, y: op([x, y], 0), (0, 1))(x, y)
    assert tp.equal(joined, tp.cat([x, y.t()], 1))


def test_vmap_without_a_rule_and_without_a_sample(lib, space):
    with pytest.raises(RuntimeError):
        lib.vmap(numpy_sin(lib, space))(lib.rand(0, 3))


@pytest.mark.slow
def test_opcheck(lib, space):
    op = numpy_sin(lib, space)
    x = lib.rand(3, requires_grad=True)
    with pytest.raises(Exception, match="opcheck"):
        lib.library.opcheck(op, (x,))
    op.register_fake(lambda x: lib.empty_like(x))
    found = lib.library.opcheck(op, (x,))
    assert set(found) == {
        "test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"
    }  # fmt: skip
    assert set(found.values()) == {"SUCCESS"}


def test_opcheck_finds_what_is_wrong(space):
    @tp.library.custom_op(f"{space}::sly", mutates_args=(), schema="(Tensor x) -> Tensor")
    def sly(x):
        x.numpy()[0] += 1
        return x * 2

    sly.register_fake(lambda x: tp.empty(3, 3))
    found = tp.library.opcheck(sly, (tp.ones(2),), raise_exception=False)
    assert "mutated" in str(found["test_schema"])
    assert "shape" in str(found["test_faketensor"])
    assert found["test_autograd_registration"] == "SUCCESS"


def test_an_op_is_one_of_the_registry(space):
    numpy_sin(tp, space)
    assert has_op(f"{space}.numpy_sin")
    seen = []

    class Watch(tp.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = tp.ones(2)
    with Watch():
        getattr(tp.ops, space).numpy_sin(x)
    assert seen[0] == "numpy_sin"
    assert f"{space}.numpy_sin on cpu" in str(tp.explain(f"{space}.numpy_sin"))
    before = PACKETS[space, "numpy_sin"].default
    numpy_sin(tp, space)  # again, as a cell of a notebook
    assert PACKETS[space, "numpy_sin"].default is not before


def test_names(lib):
    # Torch keeps what it could not register, and its exporter then stops at it.
    for name in ("sine", "::sine", "a::", "") if lib is tp else ("sine", ""):
        with pytest.raises((ValueError, RuntimeError)):
            lib.library.custom_op(name, lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match=r"reserved|Unsupported"):
        lib.library.Library("aten" if lib is tp else "prim", "DEF")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tp.library.triton_op("a::b", mutates_args=()), "compiler"),
        (lambda: tp.library.wrap_triton(None), "custom_op"),
        (tp.library.get_ctx, "meta"),
    ],
)
def test_what_is_not_there_says_what_is_instead(call, error):
    with pytest.raises(NotImplementedError, match=error):
        call()


# --- ATen's names ---------------------------------------------------------------------------------


def test_atens_names_are_keys_and_callables(lib):
    aten = lib.ops.aten
    table = {aten.add.Tensor: "add", aten.mm.default: "mm", aten.relu: "relu"}
    assert table[lib.ops.aten.add.Tensor] == "add"
    assert table[lib.ops.aten.mm.default] == "mm"
    assert table[lib.ops.aten.relu] == "relu"
    assert aten.add.Scalar is not aten.add.Tensor
    assert str(aten.add.Tensor) == "aten.add.Tensor"
    assert aten.add.Tensor.overloadpacket is aten.add
    x = lib.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert aten.add.Tensor(x, x).tolist() == [[2.0, -4.0], [6.0, 8.0]]
    assert aten.relu(x).tolist() == [[1.0, 0.0], [3.0, 4.0]]
    assert aten.add_.Tensor(x.clone(), x).tolist() == [[2.0, -4.0], [6.0, 8.0]]
    assert aten._softmax.default(x, 1, False).shape == (2, 2)
    assert aten.slice.Tensor(x, 1, 0, 1).tolist() == [[1.0], [3.0]]
    assert aten._to_copy.default(x, dtype=lib.float64).dtype == lib.float64
    with pytest.raises(AttributeError):
        aten.no_such_op  # noqa: B018
    with pytest.raises(AttributeError, match="overload"):
        aten.add.no_such_overload  # noqa: B018
    assert copy.deepcopy(aten.add.Tensor) is aten.add.Tensor


def test_overloads_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(tp.ops.aten.add.Tensor)) is tp.ops.aten.add.Tensor
    assert pickle.loads(pickle.dumps(tp.ops.aten.relu)) is tp.ops.aten.relu


@pytest.mark.skipif(torch is None, reason="torch has the list")
def test_most_of_atens_functions_have_a_counterpart():
    names = {
        name.partition("::")[2].partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::") and not name.startswith("aten::_")
    }
    public = {name for name in names if hasattr(torch, name) or hasattr(torch.nn.functional, name)}
    missing = {name for name in public if not hasattr(tp.ops.aten, name)}
    assert len(public) > 500
    assert len(missing) < 0.17 * len(public), sorted(missing)
