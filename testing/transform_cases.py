"""Random compositions of transforms over the op records, each held to a loop of plain backward passes.

A case draws a record's sample, values that are ordinary or sit where guards are (zeros, equal elements,
infinities, NaN), which arguments have a dimension of samples and where, and a transform. What the transform
gives has to be what the same derivative is without it, sample by sample.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorplug.autograd import grad
from tensorplug.autograd.transforms.transforms import jvp, vjp
from tensorplug.autograd.vmap import vmap
from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch.op_registry import Op, get_op
from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.ops.joining.joining import stack
from tensorplug.core.ops.masking import where
from tensorplug.core.tensor.tensor import Tensor

from . import making
from .cases import map_tensors, samples_of, tensors_in
from .comparison import assert_close
from .records import OpRecord, Sample

#: What an op says whose course, or whose result's shape, depends on the data.
DATA = ("dynamic shape", ".item()", "control flow", "to a list", "random operation")
# What factorizations return of singular and infinite matrices is theirs to choose, and which of equal
# elements comes first.
_ARBITRARY = (
    "cholesky", "cond", "det", "eig", "householder", "inv", "kthvalue", "lstsq", "lu", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "median", "mode", "norm_ord_nuc", "ormqr", "orgqr",
    "qr", "solve", "sort", "svd", "topk",
)  # fmt: skip
# Of these, 0 * inf depends on how sums are arranged.
_ARRANGED = ("conv", "ctc_loss", "logcumsumexp")
# Products with a logarithm have values at its pole, but no derivatives. And forward mode differentiates
# what losses clamp without recording, reverse mode does not.
_ENDS = ("binary_cross_entropy", "float_power", "gaussian_nll_loss", "kl_div", "pow", "xlogy")

VALUES = ("drawn", "drawn", "drawn", "zeros", "equal", "infinite", "nan", "mixed")
_FINITE = ("drawn", "zeros", "equal")
TRANSFORMS = (
    "vmap",
    "vmap of vjp",
    "vmap of jvp",
    "jvp",
    "jvp of vjp",
    "vmap of jvp of vjp",
    "vmap of vjp of vjp",
)
SAMPLES = 2
LARGEST = 40  # elements of all points of a case together, where a record has samples so small

Function = Callable[..., tuple[Any, ...]]


@dataclass
class Case:
    """One case; its string says all that it takes to see it again."""

    record: OpRecord
    dtype: DType
    sample: int
    values: str
    transform: str
    dims: tuple[int | None, ...]
    call: Sample
    points: list[Tensor]

    @property
    def finite(self) -> bool:
        """Whether all ways to a derivative lead to the same one: 0 * inf depends on the order."""
        return self.values in _FINITE

    def __str__(self) -> str:
        return (
            f"{self.transform} of {self.record.op} ({self.dtype.name}), sample {self.sample}, "
            f"{self.values} values, in_dims={self.dims}"
        )


def draw(record: OpRecord, dtype: DType, seed: int) -> tuple[Case, Function, list[Any]] | None:
    """Return a case, its function and where to differentiate it; None if the record has no such sample."""
    op = get_op(record.op)
    if not record.gradient:
        return None
    source = random.Random(f"{record.op} {dtype.name} {seed}")
    sizes = {
        (number, sample): sum(point.numel() for point in _points(sample))
        for number, sample in enumerate(samples_of(record, "cpu", dtype))
        if _points(sample)
    }
    if not sizes:
        return None
    # Samples of batches of none are small, but say little by themselves.
    whole = [
        size
        for (_, sample), size in sizes.items()
        if all(point.numel() for point in _points(sample))
    ]
    largest = max(LARGEST, min(whole or sizes.values()))
    chosen, sample = source.choice([known for known, size in sizes.items() if size <= largest])
    points = _points(sample)
    values = _values(op, dtype, points, source)
    making.seed(f"{record.op} {dtype.name} {seed}")
    dims: list[int | None] = [
        source.choice([None, *range(point.ndim + 1)]) if n else source.randrange(point.ndim + 1)
        for n, point in enumerate(points)
    ]
    source.shuffle(dims)
    if op.reads_layout or op.name.startswith("view_as"):  # of the samples by themselves
        dims = [None if d is None else 0 for d in dims]
    dims = [None if d is None else min(d, p.ndim) for d, p in zip(dims, points, strict=True)]
    case = Case(
        record, dtype, chosen, values, source.choice(TRANSFORMS), tuple(dims), sample, points
    )
    leaves = [
        [_changed(point, values, source) for _ in range(1 if dim is None else SAMPLES)]
        for point, dim in zip(points, dims, strict=True)
    ]
    if case.transform.endswith("jvp") and not all(p.numel() for p in points):
        case.transform = "vmap of vjp"  # the mean of no tangents is NaN
    if not case.finite and not case.transform.startswith("vmap"):
        case.transform = f"vmap of {case.transform}"
    return case, _function(op, sample, points), leaves


def _values(op: Op, dtype: DType, points: list[Tensor], source: random.Random) -> str:
    """Return what values a case has: those that mean something to the op."""
    values = source.choice(VALUES)
    if any(word in op.name for word in _ARBITRARY) or not all(p.numel() for p in points):
        return "drawn"
    if values not in _FINITE:
        arranged = any(word in op.name for word in _ARRANGED)
        return "drawn" if arranged or dtype.is_complex else values
    return "equal" if op.name in _ENDS and values == "zeros" else values


def _points(sample: Sample) -> list[Tensor]:
    found = tensors_in((sample.args, sample.kwargs))
    return [t for t in {id(t): t for t in found}.values() if t.dtype.category >= 2]


def _function(op: Any, sample: Sample, points: list[Tensor]) -> Function:
    places = {id(point): number for number, point in enumerate(points)}

    def function(*values: Any) -> tuple[Any, ...]:
        def swap(tensor: Tensor) -> Tensor:
            number = places.get(id(tensor))
            return tensor if number is None else values[number]

        result = op.call(*map_tensors(sample.args, swap), **map_tensors(sample.kwargs, swap))
        return tuple([t for t in tensors_in((result,)) if t.dtype.category >= 2])

    return function


def _changed(point: Tensor, values: str, source: random.Random) -> Tensor:
    """Return a point with values as a case wants them."""
    point = point.detach().clone()
    if not point.numel():
        return point
    if values == "drawn":
        # In another order, elements are still in the op's domain, mostly; square matrices are as they are.
        square = point.ndim >= 2 and point.shape[-1] == point.shape[-2]
        if square or source.random() < 0.5:
            return point
        return point.flatten().flip(0).reshape(point.shape)
    if values == "zeros":
        return zeros_like(point)
    if values == "equal":
        return point.flatten()[0].expand(point.shape).clone()
    flat = point.flatten()
    special = {
        "infinite": [float("inf"), float("-inf")],
        "nan": [float("nan")],
        "mixed": [0.0, float("inf"), float("-inf"), float("nan"), 1.0],
    }[values]
    for _ in range(1 + flat.numel() // 3):
        flat[source.randrange(flat.numel())] = source.choice(special)
    return flat.reshape(point.shape)


# --- what is compared -------------------------------------------------------------------------


def check(case: Case, function: Function, leaves: list[Any]) -> bool:
    """Compare a case's transform with the loop; return whether there was something to compare.

    Raises
    ------
    AssertionError
        If they differ.
    """
    rows = [[known[n % len(known)] for known in leaves] for n in range(SAMPLES)]
    try:
        outputs = function(*rows[0])
    except (RuntimeError, ValueError, IndexError, ArithmeticError):
        return False  # such values are refused
    if not outputs or not _repeats(case, function, rows[0], outputs):
        return False
    guarded = case.finite and case.values != "drawn"
    if guarded and not _finite(outputs):
        return False  # a pole: on one side of it is as good as on the other
    vectors = [_directions(outputs, n) for n in range(SAMPLES)]
    pushed = [_directions(rows[0], SAMPLES + n) for n in range(SAMPLES)]
    try:
        expected = [
            _plain(case.transform, function, row, vector, push)
            if case.finite
            else _one(case.transform, function, row, vector, push)
            for row, vector, push in zip(rows, vectors, pushed, strict=True)
        ]
    except (RuntimeError, ValueError, IndexError, ArithmeticError):
        return False
    try:
        found = _transformed(case, function, rows, leaves, vectors, pushed)
    except RuntimeError as error:
        if any(text in str(error) for text in DATA):
            return False
        raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
    if guarded:
        _check_guards(case, function, zip(rows, vectors, strict=True), found)
    for number, wanted in enumerate(expected):
        for got, value in zip(found[number], wanted, strict=True):
            if case.values != "drawn":
                # At a pole, which infinity comes out depends on the way there.
                value = where(value.isinf(), got, value)
            assert_close(
                got,
                value,
                rtol=1e-6,
                atol=1e-7,
                equal_nan=True,
                msg=lambda text: f"{case}: {text}",
            )
    return True


def _repeats(case: Case, function: Function, row: Any, outputs: Any) -> bool:
    """Return whether a random op gives the same again: dropout of nothing does."""
    if not get_op(case.record.op).random:
        return True
    pairs = zip(function(*row), outputs, strict=True)
    return all(bool((again == value).all()) for again, value in pairs)


def _check_guards(case: Case, function: Function, given: Any, found: Any) -> None:
    """Raise where a derivative is NaN, though the value, and the derivative before it, are numbers."""
    firsts = [value for row, vector in given for value in _one("vjp", function, row, vector, ())]
    assert not any(value.isnan().any() for value in firsts), (
        f"{case}: the first derivative is NaN, where the value is a number"
    )
    if _finite(firsts):
        assert not any(value.isnan().any() for value in tensors_in(found)), (
            f"{case}: NaN, where the first derivative is a number"
        )


def _finite(values: Any) -> bool:
    return all(bool(value.isfinite().all()) for value in values)


def _directions(like: Any, number: int) -> tuple[Any, ...]:
    """Return tensors of the shapes of others that the number decides."""
    return tuple(
        [
            making.make_tensor(*t.shape, dtype=t.dtype, low=0.5 + number / 8, high=1.5 + number / 8)
            for t in like
        ]
    )


def _inner(ones: Any, others: Any) -> Any:
    """Return the real inner product of two lists of tensors."""
    total: Any = None
    for one, other in zip(ones, others, strict=True):
        part = (one * other.conj()).sum()
        part = part.real if part.dtype.is_complex else part
        total = part if total is None else total + part
    return total


def _plain(transform: str, function: Function, row: Any, vector: Any, push: Any) -> list[Any]:
    """Return what a transform should give, by backward passes alone."""
    if transform == "vmap":
        return [value.detach() for value in function(*row)]
    points = [t.detach().requires_grad_() for t in row]
    if transform in ("jvp", "vmap of jvp"):
        return _pushed_by_reverse(function, points, push)
    outputs = function(*points)
    second = transform != "vmap of vjp"
    found = _gradients(_live(outputs, vector), points, create_graph=second)
    if not second:
        return found
    return _gradients([(_inner(found, push), None)], points)


def _pushed_by_reverse(function: Function, points: Any, push: Any) -> list[Any]:
    """Return the products of the Jacobian with a vector: reverse mode is linear in its vector."""
    outputs = function(*points)
    probes = [zeros_like(value.detach()).requires_grad_() for value in outputs]
    pulled = _gradients(_live(outputs, probes), points, create_graph=True)
    return _gradients([(_inner(pulled, push), None)], probes)


def _live(outputs: Any, vectors: Any) -> list[tuple[Any, Any]]:
    return [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]


def _gradients(pairs: Any, points: Any, create_graph: bool = False) -> list[Any]:
    pairs = [(o, v) for o, v in pairs if o.requires_grad]
    found: Any = [None] * len(points)
    if pairs:
        found = grad(
            [o for o, _ in pairs],
            points,
            [v for _, v in pairs],
            create_graph=create_graph,
            allow_unused=True,
        )
    return [zeros_like(p.detach()) if g is None else g for g, p in zip(found, points, strict=True)]


def _one(transform: str, function: Function, row: Any, vector: Any, push: Any) -> Any:
    """Return what a transform gives, but for the batch, of one sample."""

    def pulled(*points: Any) -> Any:
        return vjp(function, *points)[1](tuple(vector))

    match transform.removeprefix("vmap of "):
        case "vmap":
            return function(*row)
        case "vjp":
            return pulled(*row)
        case "jvp":
            return jvp(function, tuple(row), tuple(push))[1]
        case "jvp of vjp":
            return jvp(pulled, tuple(row), tuple(push))[1]
        case _:
            return vjp(pulled, *row)[1](tuple(push))


def _transformed(
    case: Case, function: Function, rows: Any, leaves: Any, vectors: Any, pushed: Any
) -> list[list[Any]]:
    """Return what the transform gives, by sample."""

    def one(row: Any, vector: Any, push: Any) -> Any:
        return _one(case.transform, function, row, vector, push)

    if not case.transform.startswith("vmap"):
        return [list(one(*given)) for given in zip(rows, vectors, pushed, strict=True)]
    arguments = [
        known[0] if dim is None else stack(known, dim)
        for known, dim in zip(leaves, case.dims, strict=True)
    ]
    columns = [
        tuple([stack(list(column)) for column in zip(*given, strict=True)])
        for given in (vectors, pushed)
    ]
    results = vmap(one, in_dims=(tuple(case.dims), 0, 0))(tuple(arguments), *columns)
    return [[result[number] for result in results] for number in range(len(rows))]
