"""Every op's samples, and its error samples, against torch itself: shapes, dtypes, values, errors, names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.comparison import as_exact
from tensorplug.testing.records import OpRecord, all_records

torch: Any = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

_NAMESPACES = {"linalg": "linalg", "special": "special", "fft": "fft", "windows": "signal.windows"}


_HALF = "torch rounds to half precision on the way, we compute in float32"
# What differs on purpose; the reference in float64 stands for these.
DIFFERENT = {
    ("trapezoid", "int8"): "sums of integers wrap around in torch",
    **{
        (op, dtype): _HALF
        for op in ("gradient", "histc", "ldexp", "matrix_exp")
        for dtype in ("float16", "bfloat16")
    },
}


_INT64 = "torch's coordinates are int64, ours have the dtype of the indices"
DIFFERENT |= {("unravel_index", d): _INT64 for d in ("uint8", "int8", "int16", "int32")}
# Error samples that torch answers in another way.
OTHER_ERRORS = {
    "fft_ihfft2": "torch counts one dimension before it looks at dim: IndexError",
    "lu": "torch factors here; our kernel refuses to go on",
    "linalg_vander": "torch's TypeError is about N being a keyword",
    "linalg_eigvals": "torch returned a value for NaN",
}


def counterpart(record: OpRecord) -> Any | None:
    """Return torch's function for an op, or None if it has none."""
    name = record.op if record.torch is None else record.torch
    if not name:
        return None
    head, _, rest = name.partition("_")
    candidates = [name]
    if rest and head in _NAMESPACES:
        candidates.append(f"{_NAMESPACES[head]}.{rest}")
    candidates += [f"nn.functional.{name}", f"Tensor.{name}"]
    for path in candidates:
        found = functools.reduce(lambda o, part: getattr(o, part, None), path.split("."), torch)
        if callable(found):
            return found
    return None


def to_torch(value: Any) -> Any:
    """Return the arguments of a call as torch's."""
    if isinstance(value, tp.Tensor):
        if value.dtype is tp.bfloat16:
            return torch.tensor(value.float().tolist(), dtype=torch.bfloat16).reshape(
                tuple(value.shape)
            )
        return torch.from_numpy(value.detach().numpy().copy())
    if isinstance(value, tp.dtype):
        return getattr(torch, value.name)
    if isinstance(value, tp.device):
        return torch.device(str(value))
    if isinstance(value, (list, tuple)):
        return type(value)([to_torch(item) for item in value])
    if isinstance(value, dict):
        return {key: to_torch(item) for key, item in value.items()}
    return value


def exact(value: Any) -> Any:
    value = value.detach().resolve_conj().resolve_neg()
    if value.dtype.is_floating_point:
        return value.double().numpy()
    return value.to(torch.complex128).numpy() if value.dtype.is_complex else value.numpy()


RECORDS = [record for record in all_records() if counterpart(record) is not None]
CASES = [
    pytest.param(record, dtype, id=f"{record.op}-{dtype.name}")
    for record in RECORDS
    for dtype in record.dtypes
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_samples(record: OpRecord, dtype: Any, record_property: Any) -> None:
    if "torch" in record.skips:
        pytest.skip(record.skips["torch"])
    if (record.op, dtype.name) in DIFFERENT:
        pytest.skip(DIFFERENT[record.op, dtype.name])
    function = counterpart(record)
    op = get_op(record.op)
    compared = refused = 0
    for sample in cases.samples_of(record, "cpu", dtype):
        args, kwargs = to_torch(sample.args), to_torch(sample.kwargs)
        try:
            expected = function(*args, **kwargs)
        except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
            refused += 1  # torch has no such kernel; the reference stands alone
            continue
        result = op.call(*sample.args, **sample.kwargs)
        compared += 1
        compare(f"{record.op} {dtype.name} {sample}", record, result, expected)
    record_property("compared", compared)
    if not compared:
        pytest.skip(f"torch takes none of the {refused} samples of this dtype")


def compare(where: str, record: OpRecord, result: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(result) == len(expected), where
        for one, other in zip(result, expected, strict=True):
            compare(where, record, one, other)
        return
    if not isinstance(expected, torch.Tensor):
        assert result == expected, where
        return
    assert tuple(result.shape) == tuple(expected.shape), (
        f"{where}: shape {list(result.shape)}, torch {list(expected.shape)}"
    )
    assert result.dtype.name == str(expected.dtype).removeprefix("torch."), (
        f"{where}: {result.dtype}, torch {expected.dtype}"
    )
    if record.check is not None and record.reference is None:
        return  # not unique (eigenvectors, random numbers): only form can be compared
    rtol, atol = cases._tolerance(record, result.dtype)
    # Both are rounded: the sum of two errors is allowed.
    np.testing.assert_allclose(
        as_exact(result),
        exact(expected),
        rtol=2 * rtol,
        atol=2 * atol,
        equal_nan=True,
        err_msg=where,
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "record", [pytest.param(r, id=r.op) for r in RECORDS if r.errors is not None]
)
def test_errors(record: OpRecord) -> None:
    if "torch" in record.skips:
        pytest.skip(record.skips["torch"])
    if record.op in OTHER_ERRORS:
        pytest.skip(OTHER_ERRORS[record.op])
    function = counterpart(record)
    dtype = tp.float64 if tp.float64 in record.dtypes else record.dtypes[-1]
    for wrong in record.errors(cases.Maker("cpu", dtype)):  # type: ignore[misc]
        # torch has exceptions of its own below the built-in ones, as we have.
        expected = next(e for e in wrong.error.__mro__ if e.__module__ == "builtins")
        with pytest.raises(expected):
            function(*to_torch(wrong.sample.args), **to_torch(wrong.sample.kwargs))


# --- names of arguments, and out= ------------------------------------------------------------------

# NumPy's names, which torch takes beside its own.
ALSO = {
    "dim": ("axis",),
    "input": ("x", "a", "x1"),
    "keepdim": ("keepdims",),
    "other": ("x2",),
}
# Names that torch's parser takes and its documentation does not tell.
UNDOCUMENTED = {
    ("clamp_max", "max"),
    ("clamp_min", "min"),
    ("conj_physical", "a"),
    ("conj_physical", "x"),
    ("conj_physical", "x1"),
    ("cholesky_solve", "input2"),
    ("linalg_lstsq", "b"),
    ("linalg_tensorsolve", "other"),
    ("linalg_tensorsolve", "x2"),
    ("one_hot", "input"),
    ("orgqr", "input2"),
    ("ormqr", "input2"),
    ("ormqr", "input3"),
    ("view", "size"),
}
REFUSED = (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError)


def ours(name: str) -> Any:
    """Return the public function of an op, or None."""
    head, _, rest = name.partition("_")
    names = (f"nn.functional.{name}",) if name == "embedding_bag" else ()  # not the one of its step
    for path in (*names, name, f"{head}.{rest}", f"nn.functional.{name}"):
        found = functools.reduce(lambda o, part: getattr(o, part, None), path.split("."), tp)
        if callable(found):
            return found
    return None


def overloads(name: str) -> Iterator[list[str]]:
    """Yield the names of the arguments of each of torch's overloads."""
    packet = getattr(torch.ops.aten, name, None)
    for overload in () if packet is None else packet.overloads():
        arguments = getattr(packet, overload)._schema.arguments
        yield ["input" if a.name == "self" else a.name for a in arguments]


def takes(function: Any, args: Any, names: list[str], kwargs: Any) -> bool:
    """Return whether a call is taken whose last arguments are given by name."""
    count = len(args) - len(names)
    try:
        function(*args[:count], **dict(zip(names, args[count:], strict=True)), **kwargs)
    except REFUSED:
        return False
    return True


NAMED = [record for record in RECORDS if ours(record.op) is not None]


def samples(record: OpRecord) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield our arguments and torch's, of the first few samples."""
    dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
    for sample in cases.samples_of(record, "cpu", dtype)[:3]:
        yield sample.args, sample.kwargs, to_torch(sample.args), to_torch(sample.kwargs)


@pytest.mark.filterwarnings("ignore")
def test_names_of_arguments() -> None:
    tried, missing = 0, []
    for record in NAMED:
        seen: set[str] = set()
        for args, kwargs, theirs, their_kwargs in samples(record):
            for names in overloads(record.op):
                for i, name in enumerate(names[: len(theirs)]):
                    for spelling in (name, *ALSO.get(name, ())):
                        by_name = [spelling, *names[i + 1 : len(theirs)]]
                        if spelling in seen or len(by_name) != len(theirs) - i:
                            continue
                        if not takes(counterpart(record), theirs, by_name, their_kwargs):
                            continue
                        seen.add(spelling)
                        tried += 1
                        if not takes(ours(record.op), args, by_name, kwargs):
                            missing.append((record.op, spelling))
    unlisted = [
        (op, name)
        for op, name in missing
        if not any((op, other) in UNDOCUMENTED for other in (name, *overloads_of(op)))
    ]
    assert not unlisted, unlisted
    assert tried > 1500


def overloads_of(op: str) -> set[str]:
    """Return all names of the arguments of an op's overloads."""
    return {name for names in overloads(op) for name in names}


@pytest.mark.filterwarnings("ignore")
def test_out_wherever_torch_has_it() -> None:
    tried, missing = 0, []
    for record in NAMED[::5]:
        for args, kwargs, theirs, their_kwargs in samples(record):
            try:
                result = counterpart(record)(*theirs, **their_kwargs)
                out = torch.utils._pytree.tree_map(torch.empty_like, result)
                out = tuple(out) if isinstance(result, (tuple, list)) else out
                counterpart(record)(*theirs, **their_kwargs, out=out)
            except REFUSED:
                continue
            tried += 1
            expected = get_op(record.op).call(*args, **kwargs)
            empty = cases.map_tensors(expected, tp.empty_like)
            try:
                ours(record.op)(*args, **kwargs, out=empty)
            except REFUSED as error:
                missing.append((record.op, str(error)))
            break
    assert not missing, missing
    assert tried > 50
