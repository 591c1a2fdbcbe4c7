"""Half precision has compiled kernels where float32 has them, or there is a reason why not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tensorplug as tp
import tensorplug.nn
import tensorplug.optim
from tensorplug.core.dispatch.registered_ops import all_ops
from tensorplug.testing.comparison import assert_close

pytest.importorskip("tensorplug_cpu_cython.onednn", reason="oneDNN is not installed")
from tensorplug_cpu_cython import pointwise

#: Why the kernel of another plugin, or the op's body, computes halves.
OTHERS = {
    "LAPACK's are not for halves": {
        "geqrf", "linalg_cholesky_ex", "linalg_det", "linalg_eig", "linalg_eigh", "linalg_eigvals",
        "linalg_eigvalsh", "linalg_householder_product", "linalg_inv_ex", "linalg_ldl_factor_ex",
        "linalg_lu_factor_ex",
        "linalg_lstsq", "linalg_lu_solve", "linalg_qr", "linalg_slogdet", "linalg_solve_ex",
        "linalg_solve_lu", "linalg_solve_triangular", "linalg_svd", "linalg_svdvals", "lu_unpack",
        "matrix_exp", "ormqr",
    },
    "their results are no halves": {
        "complex", "fft_r2c", "grid_counts", "histogram_counts", "view_as_complex",
    },
    "rounded after each step, as torch rounds": {
        "logit", "logit_backward", "sinc", "special_entr", "special_xlog1py", "xlogy", "frexp",
        "trunc_divide",
    },
    "statistics beside images of halves are of float32": {
        "scaled_dot_product_efficient_attention", "scaled_dot_product_efficient_attention_backward",
    },
    "what calls them converts halves first": {
        "fewest_positive", "is_within", "multinomial_new", "poisson_new",
    },
    "optimizers step what is of float32": {
        "optim.adagrad_step", "optim.adam_step", "optim.rmsprop_step", "optim.sgd_step",
    },
    "not hot in halves": {
        "as_strided_backward", "linalg_cross", "nanmean", "nanquantile", "orthogonal_polynomial",
        "quantile",
    },
}  # fmt: skip


@pytest.mark.parametrize("half", [tp.float16, tp.bfloat16], ids=str)
def test_halves_have_compiled_kernels(half: tp.dtype) -> None:
    def compiled(name: str, dtype: tp.dtype) -> bool:
        kernel = tp.explain(name, dtype=dtype).kernel
        return kernel is not None and kernel.plugin == "cpu_cython"

    lacking = set()
    served = 0
    for op in all_ops():
        if compiled(op.name, tp.float32):
            if compiled(op.name, half):
                served += 1
            else:
                lacking.add(op.name)
    assert lacking == set().union(*OTHERS.values())
    assert served > 200


def written_statistics(mean, var, batch, rstd):
    tp.ops.batch_norm_update_stats(mean, var, batch, rstd, 0.3, 1e-3, 1.25)


def written_rows(table, *_):
    tp.ops.embedding_renorm(table, tp.tensor([[3, 0], [3, 2]]), 1.0, 2.0)


@pytest.mark.parametrize("half", [tp.float16, tp.bfloat16], ids=str)
@pytest.mark.parametrize(("write", "shape"), [(written_statistics, (7,)), (written_rows, (5, 6))])
@pytest.mark.parametrize("step", [1, 2])
def test_what_is_written_is_rounded_once(half, write, shape, step):
    """In place, wherever the memory lies; what no row has too much of stays as it is."""
    tp.manual_seed(0)
    given = [(tp.rand(*shape[:-1], shape[-1] * step) + 0.5).to(half) for _ in range(4)]
    given = [one[..., ::step] for one in given]
    wide = [one.float() for one in given]
    memory = given[0].data_ptr()
    write(*given)
    write(*wide)
    assert given[0].data_ptr() == memory
    for found, expected in zip(given, wide, strict=True):
        assert_close(found, expected.to(half), rtol=0, atol=0)


@pytest.mark.parametrize("half", [tp.float16, tp.bfloat16], ids=str)
def test_what_halves_are_filled_with_is_rounded_once(half):
    """Between two halves, where a number of double precision lies nearer to one than its float32 does."""
    nearest = {tp.float16: 1 + 2.0**-11, tp.bfloat16: 1 + 2.0**-8}[half]
    for value in (0.0, -0.0, 1.5, float("inf"), float("nan"), nearest, nearest + 2.0**-40, 1e-7):
        found = tp.full((9,), value, dtype=half)
        expected = tp.tensor([value], dtype=tp.float64).to(half).expand(9)
        assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        assert bool((found.signbit() == expected.signbit()).all())


@pytest.mark.parametrize("half", [tp.float16, tp.bfloat16], ids=str)
@pytest.mark.parametrize(
    "bounds", [(0,), (5,), (-3, 4, 2), (9, -9, -4), (0.1, 1.1), (-0.9, 2.1, 0.3), (0, 3000, 7)]
)
def test_ranges_of_halves_are_rounded_once(half, bounds):
    found = tp.arange(*bounds, dtype=half)
    with tp.prefer("cpu_numpy"):
        assert_close(found, tp.arange(*bounds, dtype=half), rtol=0, atol=0)
    assert found.tolist() == tp.arange(*bounds, dtype=tp.float64).to(half).tolist()


HALVES = tp.arange(65536, dtype=tp.int32).to(tp.int16).view(tp.float16)
TYPES = (
    tp.float32, tp.float64, tp.bfloat16, tp.int64, tp.int32, tp.int16, tp.int8, tp.uint8, tp.uint16,
    tp.bool, tp.complex64, tp.complex128,
)  # fmt: skip


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("op", ["cast", "relu", "add", "addcmul"])
def test_all_bfloat16_are_rounded_from_single_to_even(op, step):
    """From just beside each, and from halfway to the next; one stands beyond the last whole vector."""
    upper = np.arange(2**16, dtype=np.uint32) << 16
    beside = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    single = (upper[:, None] | beside).reshape(-1)[:-1].view(np.float32)
    wide = tp.from_numpy(single)
    if op != "cast":  # of halves, whose results in single are what is rounded
        halves = wide[: 2**18].to(tp.bfloat16)[::step]
        other = halves.flip(0).contiguous()
        arguments = {"relu": (halves,), "add": (halves, other), "addcmul": (halves, other, other)}
        call = getattr(tp, op)
        found = call(*arguments[op])
        wide = call(*[one.float() for one in arguments[op]])
        single, step = wide.numpy(), 1
    else:
        found = wide[::step].to(tp.bfloat16)
    bits = single[::step].view(np.uint32).astype(np.uint64)
    expected = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    numbers = ~np.isnan(single[::step])
    got = found.contiguous().view(tp.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(got[numbers], expected[numbers])
    assert found.float().isnan().numpy()[~numbers].all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.filterwarnings("ignore")
def test_all_halves_are_converted_as_by_numpy(dtype, step):
    """There by way of float32, and back; what integers make of numbers beyond them is anyone's."""
    whole = (
        HALVES if dtype.is_floating_point or dtype.is_complex else HALVES.nan_to_num().clamp(0, 100)
    )
    whole = whole[::step]
    there = whole.to(dtype)
    back = there.to(tp.float16)
    with tp.prefer("cpu_numpy"):
        assert_close(there, whole.to(dtype), rtol=0, atol=0, equal_nan=True)
        assert_close(back, there.to(tp.float16), rtol=0, atol=0, equal_nan=True)


#: Special halves, and some of all sizes and both signs.
SOME = [0, 1, 2, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x7F7F, 0x7F80, 0x7FC0]
NAMES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def some_halves(name, count):
    bits = np.random.default_rng(count).integers(0, 65536, count, dtype=np.uint16)
    bits[: len(SOME)] = SOME[:count]
    bits[len(SOME) : 2 * len(SOME)] = np.add(SOME, 0x8000)[: max(0, count - len(SOME))]
    return bits.view(NAMES[name])


def same(found, expected):
    assert found.dtype == expected.dtype
    numbers = ~np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), ~numbers)
    np.testing.assert_array_equal(found.view(np.uint16)[numbers], expected.view(np.uint16)[numbers])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_next_halves(name):
    x = some_halves(name, 500)
    y = np.random.default_rng(7).permutation(x)
    found = pointwise.Binary("nextafter").call(x[:, None], y)
    expected = np.nextafter(*np.broadcast_arrays(x[:, None], y))
    same(
        found, np.where(x[:, None] == y, y, expected)
    )  # zeros of two signs are equal: then C has y


SHORT_LOOPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "true_divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "square": np.square, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "rint": np.rint, "relu": lambda x: np.where(x < 0, np.float32(0), x),
    # Of some processors NumPy's in single are off by more than a unit.
    "log2": lambda x: np.log2(x.astype(np.float64)), "log10": lambda x: np.log10(x.astype(np.float64)),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("op", SHORT_LOOPS)
@pytest.mark.filterwarnings("ignore")
def test_they_are_computed_in_single_and_rounded_once(op, name):
    """At lengths around that of a vector, with numbers that are repeated, and at any steps."""
    kernel = (pointwise.Unary if op in pointwise.names("unary") else pointwise.Binary)(op).call
    count = 1 if op in pointwise.names("unary") else 2
    for length in (1, 7, 8, 15, 16, 17, 33, 700):
        x = some_halves(name, 2 * length)
        y = np.random.default_rng(1).permutation(x)
        for arrays in (
            (x, y),
            (x, y[-1:].reshape(())),
            (x[-1:].reshape(()), y),
            (x[::2], y[::2]),
            (x[::-1], y),
        ):
            given = arrays[:count]
            wide = SHORT_LOOPS[op](*[a.astype(np.float32) for a in given])
            same(np.asarray(kernel(*given)), np.asarray(wide).astype(NAMES[name]))
