"""Dtypes of which an op makes no sense are refused, with torch's exception type, and no others are."""

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="the comparison needs torch")

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "complex64")
ONE, TWO = [0], [0, 1]

# Each call is of a module that may be torch, and of a function that makes tensors of a shape.
CALLS = {
    "linear": lambda t, a: t.nn.functional.linear(a(2, 3), a(4, 3)),
    "linear(empty)": lambda t, a: t.nn.functional.linear(a(0, 3), a(4, 3)),
    "mm": lambda t, a: t.mm(a(2, 3), a(3, 4)),
    "batch_norm": lambda t, a: t.nn.functional.batch_norm(a(4, 3), a(3), a(3)),
    "batch_norm(affine)": lambda t, a: t.nn.functional.batch_norm(a(4, 3), a(3), a(3), a(3), a(3)),
    "batch_norm(training)": lambda t, a: t.nn.functional.batch_norm(
        a(4, 3), None, None, training=True
    ),
    "layer_norm": lambda t, a: t.nn.functional.layer_norm(a(4, 3), (3,)),
    "group_norm": lambda t, a: t.nn.functional.group_norm(a(2, 4), 2, a(4), a(4)),
    "instance_norm": lambda t, a: t.nn.functional.instance_norm(a(1, 2, 3), a(2), a(2)),
    "instance_norm(running)": lambda t, a: t.nn.functional.instance_norm(
        a(1, 2, 3), a(2), a(2), use_input_stats=False
    ),
    "nll_loss": lambda t, a: t.nn.functional.nll_loss(a(2, 3), t.tensor(TWO)),
    "embedding_bag(max)": lambda t, a: t.nn.functional.embedding_bag(
        t.tensor(TWO), a(3, 2), t.tensor(ONE), mode="max"
    ),
    "embedding_bag(sum)": lambda t, a: t.nn.functional.embedding_bag(
        t.tensor(TWO), a(3, 2), t.tensor(ONE), mode="sum"
    ),
    "tril_indices": lambda t, a: t.tril_indices(2, 3, dtype=a(1).dtype),
    "triu_indices": lambda t, a: t.triu_indices(2, 3, dtype=a(1).dtype),
    "+": lambda t, a: +a(2, 3),
    "lu_unpack": lambda t, a: t.lu_unpack(a(2, 2), t.tensor([1, 2], dtype=t.int32))[1],
}
for _mode in ("none", "mean", "sum"):
    CALLS[f"mse_loss({_mode})"] = lambda t, a, mode=_mode: t.nn.functional.mse_loss(
        a(2, 3), a(2, 3), reduction=mode
    )
    CALLS[f"nll_loss(images, {_mode})"] = lambda t, a, mode=_mode: t.nn.functional.nll_loss(
        a(1, 3, 2, 2), t.zeros(1, 2, 2, dtype=t.int64), reduction=mode
    )
for _mode in ("sum", "prod", "mean", "amax", "amin"):
    CALLS[f"scatter_reduce({_mode})"] = lambda t, a, mode=_mode: t.scatter_reduce(
        a(3), 0, t.tensor(ONE), a(1), mode
    )
for _count in (1, 2, 3):
    CALLS[f"conv{_count}d"] = lambda t, a, n=_count: getattr(t.nn.functional, f"conv{n}d")(
        a(1, 2, *[3] * n), a(2, 2, *[2] * n)
    )
    CALLS[f"conv{_count}d(empty)"] = lambda t, a, n=_count: getattr(t.nn.functional, f"conv{n}d")(
        a(0, 2, *[3] * n), a(2, 2, *[2] * n)
    )

# What is computed here and not in torch: docs/deviations.md has it.
MORE = {("nll_loss(images, none)", "complex64"), ("nll_loss(images, mean)", "complex64"),
        ("nll_loss(images, sum)", "complex64"), ("nll_loss", "complex64")}  # fmt: skip


def outcome(library, call, dtype):
    """Return the dtype and the values of a call, or the type of its exception."""
    try:
        found = call(library, lambda *shape: library.ones(shape, dtype=getattr(library, dtype)))
    except Exception as error:
        return type(error)
    return str(found.dtype).split(".")[-1], found.to(library.complex64).numpy()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype_is_taken_or_refused_as_in_torch(name, dtype):
    if (name, dtype) in MORE:
        pytest.skip("a listed deviation")
    ours, theirs = outcome(tp, CALLS[name], dtype), outcome(torch, CALLS[name], dtype)
    if isinstance(theirs, type):
        assert isinstance(ours, type), ours
        assert issubclass(ours, theirs)
    else:
        assert ours[0] == theirs[0]
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_transposed_convolutions_refuse_bool_alone(count, dtype):
    transposed = getattr(tp.nn.functional, f"conv_transpose{count}d")
    x = tp.ones((1, 2, *[3] * count), dtype=getattr(tp, dtype))
    weight = tp.ones((2, 1, *[2] * count), dtype=getattr(tp, dtype))
    if dtype == "bool":
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            transposed(x, weight)
    else:
        assert transposed(x, weight).dtype is x.dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_ctc_loss_takes_floating_point_numbers_alone(dtype):
    values = tp.zeros(3, 1, 2, dtype=getattr(tp, dtype))
    arguments = values, tp.tensor([[1]]), [3], [1]
    if values.dtype.is_floating_point:
        assert tp.nn.functional.ctc_loss(*arguments).dtype is values.dtype
    else:
        with pytest.raises(NotImplementedError, match="ctc_loss"):
            tp.nn.functional.ctc_loss(*arguments)


@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_index_reduce_refuses_what_scatter_reduce_does(reduce, dtype):
    x, index = tp.ones(3, dtype=getattr(tp, dtype)), tp.tensor([0])

    def refused(call):
        try:
            call()
        except NotImplementedError:
            return True
        return False

    assert refused(lambda: x.index_reduce(0, index, x[:1], reduce)) == refused(
        lambda: x.scatter_reduce(0, index, x[:1], reduce)
    )


def test_unary_plus_returns_the_tensor():
    x = tp.ones(2, requires_grad=True)
    assert +x is x
