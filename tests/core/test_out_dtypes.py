"""What dtypes ``out=`` takes, of all ops: torch's. Those that convert, and those that do not.

What is refused is so in torch's words, as far as torch has words for many ops.
"""

import warnings

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.core.dispatch.out_variants import run_out
from tensorplug.testing import cases

torch = pytest.importorskip("torch", reason="torch is what is compared with")
from tests.ops.test_against_torch import RECORDS, counterpart, to_torch  # noqa: E402

CALLS = {
    "any": lambda lib, x, out: lib.any(x, out=out),
    "any of a dim": lambda lib, x, out: lib.any(x, 0, out=out),
    "all": lambda lib, x, out: lib.all(x, out=out),
    "argmax": lambda lib, x, out: lib.argmax(x, 0, out=out),
    "argmin": lambda lib, x, out: lib.argmin(x, 0, out=out),
    "nonzero": lambda lib, x, out: lib.nonzero(x, out=out),
    "searchsorted": lambda lib, x, out: lib.searchsorted(lib.tensor([1, 2]), x, out=out),
    "bucketize": lambda lib, x, out: lib.bucketize(x, lib.tensor([1, 2]), out=out),
    "isposinf": lambda lib, x, out: lib.isposinf(x, out=out),
    "isneginf": lambda lib, x, out: lib.isneginf(x, out=out),
    "signbit": lambda lib, x, out: lib.signbit(x, out=out),
    "isin": lambda lib, x, out: lib.isin(x, x, out=out),
    "eq": lambda lib, x, out: lib.eq(x, x, out=out),
    "logical_not": lambda lib, x, out: lib.logical_not(x, out=out),
}
DTYPES = ("bool", "uint8", "int32", "int64", "float32")


def outcome(lib, name, of, to):
    x, out = lib.ones(2, dtype=getattr(lib, of)), lib.empty(0, dtype=getattr(lib, to))
    try:
        return CALLS[name](lib, x, out).tolist()
    except RuntimeError:
        return "refused"
    except NotImplementedError:  # of the input's dtype
        return "refused"


@pytest.mark.parametrize("name", CALLS)
def test_out(name):
    for of in DTYPES:
        for to in DTYPES:
            assert outcome(tp, name, of, to) == outcome(torch, name, of, to), f"{of} into {to}"


# Ops of which it depends in torch on the form of the call, or that compute in another dtype there.
OTHERS = {
    "addbmm": "converts if the batch is empty",
    "bernoulli": "complex numbers are refused by another error",
    "clamp": "it does not convert between numbers, it does between tensors",
    "cumprod": "bool is taken of 0-d tensors",
    "cumsum": "bool is taken of 0-d tensors",
    "fft_ifft": "of complex numbers it does not convert, of real ones it does",
    "inner": "with a number it is a product, which converts",
    "ldexp": "it does not convert where the exponent is of the input's dtype",
    "linalg_lstsq": "the rank, an integer, is converted to anything",
    "linalg_matrix_rank": "the rank, an integer, is converted to anything",
    "logsumexp": "of complex numbers the imaginary part is dropped",
    "lu": "pivots are written to bool as well, complex numbers to real ones",
    "matrix_power": "some powers convert",
    "nansum": "without dim it counts in the dtype of out",
    "std": "complex numbers are taken of complex ones",
    "var": "complex numbers are taken of complex ones",
}
#: What torch says of many ops, and people search for.
PHRASES = (
    "Expected out tensor to have dtype",
    "can't be cast to the desired output type",
    "to be safely castable from",
    "but got result with dtype",
    "but the operation's result requires dtype",
    "does not support non-boolean outputs",
)
INTO = ("bool", "int32", "float16", "float64", "complex64")


def refusal(function, args, kwargs, made):
    """Return what a call says that does not write into tensors, or None."""
    try:
        function(*args, **kwargs, out=made if len(made) > 1 else made[0])
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return str(error)
    return None


def compared(record, dtype, ours, wrong):
    """Compare which dtypes of each result the two libraries take; return how many there were."""
    function, count = counterpart(record), 0
    for sample in cases.samples_of(record, "cpu", dtype)[:1]:
        args, kwargs = to_torch(sample.args), to_torch(sample.kwargs)
        try:
            results = function(*args, **kwargs)
        except (RuntimeError, TypeError, IndexError, ValueError):
            continue
        results = results if isinstance(results, (tuple, list)) else (results,)
        if not all(isinstance(result, torch.Tensor) for result in results):
            continue
        shapes = [tuple(result.shape) for result in results]
        own = [str(result.dtype).rpartition(".")[2] for result in results]

        def made(lib, names, shapes=shapes):
            pairs = zip(shapes, names, strict=True)
            return tuple(lib.empty(shape, dtype=getattr(lib, name)) for shape, name in pairs)

        if refusal(function, args, kwargs, made(torch, own)) is not None:
            continue  # it has no out=, or not for this form
        for place in range(len(own)):
            for name in INTO:
                names = [*own[:place], name, *own[place + 1 :]]
                theirs = refusal(function, args, kwargs, made(torch, names))
                said = refusal(ours, sample.args, sample.kwargs, made(tp, names))
                count += 1
                if (said is None) is not (theirs is None) or any(
                    phrase in theirs and phrase not in said for phrase in PHRASES if theirs
                ):
                    wrong.append(
                        f"{record.op} of {dtype.name}: {name} for {own[place]}: {theirs}: {said}"
                    )
    return count


def table(dtypes):
    wrong, count = [], 0
    for record in RECORDS:
        function = counterpart(record)
        if record.op in OTHERS or type(function).__name__ == "method_descriptor":
            continue
        op = get_op(record.op)

        def ours(*args, out, op=op, **kwargs):
            return run_out(op, args, kwargs, out)

        for dtype in dtypes:
            if dtype in record.dtypes:
                count += compared(record, dtype, ours, wrong)
    return wrong, count


COMPLEX_CALLS = {
    "abs": lambda lib, x, out: lib.abs(x, out=out),
    "angle": lambda lib, x, out: lib.angle(x, out=out),
    "norm": lambda lib, x, out: lib.norm(x, dtype=lib.complex128, out=out),
    "linalg.norm": lambda lib, x, out: lib.linalg.norm(x, 1, dtype=lib.complex128, out=out),
    "vector_norm": lambda lib, x, out: lib.linalg.vector_norm(x, dtype=lib.complex128, out=out),
    "matrix_norm": lambda lib, x, out: lib.linalg.matrix_norm(x, 1, dtype=lib.complex128, out=out),
    "sum": lambda lib, x, out: lib.sum(x, (0, 1), dtype=lib.complex128, out=out),
}


@pytest.mark.parametrize("name", COMPLEX_CALLS)
@pytest.mark.filterwarnings("ignore:.*An output with one or more")
def test_real_numbers_of_complex_ones(name):
    call = COMPLEX_CALLS[name]
    for dtype in ("int64", "float16", "float32", "float64", "complex64", "complex128"):
        for shape in ((0,), (1,), (2, 2)):

            def written(lib, dtype=dtype, shape=shape):
                out = lib.empty(shape, dtype=getattr(lib, dtype))
                try:
                    call(lib, lib.full((2, 2), 3 + 4j, dtype=lib.complex64), out)
                except RuntimeError:
                    return "refused"
                return out.tolist()

            ours, theirs = written(tp), written(torch)
            assert ours == theirs, f"{dtype}{list(shape)}: {ours}, {theirs} in torch"


def test_all_ops():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong, count = table((tp.float32, tp.int64))
    assert not wrong, "\n".join(wrong)
    assert count > 1500


def test_a_planted_fault_is_found(monkeypatch):
    from tensorplug.core.dispatch import out_dtypes

    monkeypatch.delitem(out_dtypes.EXACT, get_op("mm"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = []
        record = next(record for record in RECORDS if record.op == "mm")

        def ours(*args, out, **kwargs):
            return run_out(get_op("mm"), args, kwargs, out)

        compared(record, tp.float32, ours, found)
    assert found
