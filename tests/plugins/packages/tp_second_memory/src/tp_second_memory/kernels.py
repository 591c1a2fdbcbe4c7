"""Kernels that are loops over Python numbers. Slow, and easy to check by eye."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

from tensorplug.plugin import DType, KernelTable, Number, Shape, reduced_shape, view_kernels

from .memory import (
    BOOL,
    DTYPES,
    FLOATS,
    INT64,
    REALS,
    VaultArray,
    common_shape,
    layout_of,
    new,
    relaid,
)

# Above those that calculate on the host.
table = KernelTable("vault", priority=1)
view_kernels(table, layout_of, relaid)

# --- pointwise --------------------------------------------------------------------------------


def divided(a: float, b: float) -> float:
    """Return a / b as floating-point hardware has it."""
    if b:
        return a / b
    if not a or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def floor_divided(a: Number, b: Number) -> Number:
    """Return a // b; integers raise for zero."""
    if isinstance(b, int):
        if not b:
            raise RuntimeError("ZeroDivisionError")
        return a // b
    return a // b if b else divided(a, b)


def remainder(a: Number, b: Number) -> Number:
    """Return a % b, of b's sign."""
    if isinstance(b, int) and not b:
        raise RuntimeError("ZeroDivisionError")
    return a % b if b else math.nan


def truncated_remainder(a: Number, b: Number) -> Number:
    """Return a % b, of a's sign."""
    if isinstance(b, int):
        if not b:
            raise RuntimeError("ZeroDivisionError")
        return int(math.copysign(abs(a) % abs(b), a)) if a else 0
    return math.fmod(a, b) if b and math.isfinite(a) else math.nan


def guarded(function: Callable[..., float], overflow: float = math.inf) -> Callable[..., float]:
    """Return a function of the math module with inf and nan where it raises."""

    def call(*args: float) -> float:
        try:
            return function(*args)
        except OverflowError:
            return overflow
        except ValueError:
            return math.nan

    return call


def logarithm(function: Callable[[float], float], pole: float = 0.0) -> Callable[[float], float]:
    """Return a logarithm that is -inf at its pole."""
    safe = guarded(function)
    return lambda a: -math.inf if a == pole else safe(a)


def power(a: float, b: float) -> float:
    """Return a to the power of b."""
    try:
        result = a**b
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return math.inf
    return math.nan if isinstance(result, complex) else result


def larger(a: Number, b: Number) -> Number:
    """Return the larger, or nan if either is."""
    return a if a != a or a >= b else b


def smaller(a: Number, b: Number) -> Number:
    """Return the smaller, or nan if either is."""
    return a if a != a or a <= b else b


def sigmoid(a: float) -> float:
    """Return the logistic function."""
    return 1 / (1 + math.exp(-a)) if a > -700 else 0.0


def unary(op: str, function: Callable[[Any], Any], dtypes: Any = DTYPES) -> None:
    """Add the kernel of a function of one number."""

    def kernel(input: VaultArray) -> VaultArray:
        return new(map(function, input.values()), input.shape, input.dtype)

    table.add(op, kernel, dtypes=dtypes)


def binary(
    op: str, function: Callable[[Any, Any], Any], dtypes: Any = DTYPES, result: DType | None = None
) -> None:
    """Add the kernel of a function of two numbers."""

    def kernel(input: VaultArray, other: VaultArray) -> VaultArray:
        shape = common_shape(input, other)
        values = map(function, input.values(shape), other.values(shape))
        return new(values, shape, result or input.dtype)

    table.add(op, kernel, dtypes=dtypes)


UNARY = {
    "conj_physical": lambda a: a.conjugate(),
    "neg": operator.neg,
    "square": lambda a: a * a,
}
UNARY_REAL = {
    "abs": abs,
    "relu": lambda a: a if a != a or a > 0 else type(a)(0),
    "sign": lambda a: type(a)((a > 0) - (a < 0)),
}
UNARY_FLOAT = {
    "erf": math.erf,
    "erfc": math.erfc,
    "cos": guarded(math.cos),
    "exp": guarded(math.exp),
    "expm1": guarded(math.expm1),
    "floor": lambda a: float(math.floor(a)) if math.isfinite(a) else a,
    "log": logarithm(math.log),
    "log1p": logarithm(math.log1p, -1.0),
    "rint": lambda a: float(round(a)) if math.isfinite(a) else a,
    "rsqrt": lambda a: divided(1.0, math.sqrt(a)) if a >= 0 else math.nan,
    "sigmoid": sigmoid,
    "sin": guarded(math.sin),
    "sqrt": guarded(math.sqrt),
    "tanh": math.tanh,
}
BINARY = {"add": operator.add, "mul": operator.mul, "sub": operator.sub}
BINARY_REAL = {
    "clamp_max": smaller,
    "clamp_min": larger,
    "floor_divide": floor_divided,
    "fmod": truncated_remainder,
    "maximum": larger,
    "minimum": smaller,
    "pow": power,
    "remainder": remainder,
}
EQUALITY = {"eq": operator.eq, "ne": operator.ne}
ORDER = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
BITWISE = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}
SHIFTS = {
    "bitwise_left_shift": lambda a, b: a << b if 0 <= b < 64 else 0,
    "bitwise_right_shift": lambda a, b: a >> b if 0 <= b < 64 else -(a < 0),
}
INTEGRAL = tuple(dtype for dtype in REALS if not dtype.is_floating_point)
INTEGERS = tuple(dtype for dtype in INTEGRAL if dtype is not BOOL)

for name, function in UNARY.items():
    unary(name, function)
for name, function in UNARY_REAL.items():
    unary(name, function, REALS)
for name, function in UNARY_FLOAT.items():
    unary(name, function, FLOATS)
for name, function in BINARY.items():
    binary(name, function)
for name, function in BINARY_REAL.items():
    binary(name, function, REALS)
for name, function in BITWISE.items():
    binary(name, function, INTEGRAL)
for name, function in SHIFTS.items():
    binary(name, function, INTEGERS)
for name, function in EQUALITY.items():
    binary(name, function, result=BOOL)
for name, function in ORDER.items():
    binary(name, function, REALS, BOOL)
unary("bitwise_not", operator.invert, INTEGERS)
binary("div", divided, FLOATS)
binary("atan2", math.atan2, FLOATS)


@table.kernel("bitwise_not", dtypes=(BOOL,))
def invert_truth(input: VaultArray) -> VaultArray:
    return new([not value for value in input.values()], input.shape, BOOL)


@table.kernel(dtypes=DTYPES)
def where(condition: VaultArray, input: VaultArray, other: VaultArray) -> VaultArray:
    shape = common_shape(condition, input, other)
    triples = zip(condition.values(shape), input.values(shape), other.values(shape), strict=True)
    return new([a if c else b for c, a, b in triples], shape, input.dtype)


# --- copies and new arrays --------------------------------------------------------------------


@table.kernel(dtypes=DTYPES)
def cast(input: VaultArray, dtype: DType) -> VaultArray:
    values = input.values()
    if input.dtype.is_complex and not dtype.is_complex and dtype is not BOOL:
        values = [value.real for value in values]
    return new(values, input.shape, dtype)


@table.kernel(dtypes=DTYPES)
def clone(input: VaultArray) -> VaultArray:
    return new(input.values(), input.shape, input.dtype)


@table.kernel(dtypes=DTYPES, out=True)
def copy(input: VaultArray, src: VaultArray, out: VaultArray | None = None) -> VaultArray:
    if out is None:
        return new(src.values(input.shape), input.shape, input.dtype)
    out.write(src.values(out.shape))
    return out


@table.kernel(dtypes=DTYPES)
def fill_new(shape: Shape, value: Number, dtype: DType) -> VaultArray:
    return new([value] * math.prod(shape), shape, dtype)


@table.kernel(dtypes=DTYPES)
def arange_new(start: Number, step: Number, count: int, dtype: DType) -> VaultArray:
    return new([start + step * number for number in range(count)], (count,), dtype)


@table.kernel(dtypes=(INT64,))
def philox_bits(shape: Shape, seed: int, offset: int) -> VaultArray:
    """Philox 4x32-10 (Salmon et al. 2011), counter by counter."""
    count = math.prod(shape)
    words = [word for n in range(-(-count // 4)) for word in philox_block(seed, offset + n)]
    return new(words[:count], shape, INT64)


def philox_block(seed: int, number: int) -> list[int]:
    """Return four random words."""
    a, b, c, d = (number >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96))
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (
            (q >> 32) ^ b ^ key0,
            q & 0xFFFFFFFF,
            (p >> 32) ^ d ^ key1,
            p & 0xFFFFFFFF,
        )
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return [a, b, c, d]


# --- reductions -------------------------------------------------------------------------------


def groups(input: VaultArray, dim: Shape) -> tuple[list[list[Any]], Shape]:
    """Return the elements that are reduced to one, for each result, and the results' shape."""
    kept = tuple([d for d in range(len(input.shape)) if d not in dim])
    ordered = relaid_dims(input, (*kept, *dim))
    values = ordered.values()
    size = math.prod([input.shape[d] for d in dim])
    count = math.prod([input.shape[d] for d in kept])
    return [values[n * size : (n + 1) * size] for n in range(count)], kept


def relaid_dims(array: VaultArray, dims: Shape) -> VaultArray:
    """Return a view with the dimensions in another order."""
    return VaultArray(
        array.store,
        tuple([array.shape[d] for d in dims]),
        tuple([array.strides[d] for d in dims]),
        array.offset,
        array.dtype,
    )


def reduction(
    op: str, function: Callable[[list[Any]], Any], dtypes: Any = DTYPES, result: DType | None = None
) -> None:
    """Add the kernel that applies a function of a list of numbers."""

    def kernel(input: VaultArray, dim: Any, keepdim: bool) -> VaultArray:
        dims = tuple(range(len(input.shape))) if dim is None else dim
        dims = (dims,) if isinstance(dims, int) and input.shape else dims
        dims = () if isinstance(dims, int) else dims
        lists, _ = groups(input, dims)
        shape = reduced_shape(input.shape, dims, keepdim)
        return new(map(function, lists), shape, result or input.dtype)

    table.add(op, kernel, dtypes=dtypes)


def first_of(best: Callable[..., Any]) -> Callable[[list[Any]], int]:
    """Return a function that finds the first place of the best value, or of a nan."""

    def place(values: list[Any]) -> int:
        for position, value in enumerate(values):
            if value != value:
                return position
        return values.index(best(values))

    return place


def with_nan(best: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """Return a function that finds the best value, which nan always is."""
    return lambda values: next((v for v in values if v != v), None) or best(values)


def truth(dtype: DType) -> DType | None:
    """Return the dtype of truth values made from a dtype: uint8 stays, as in torch."""
    return None if dtype.name == "uint8" else BOOL


reduction("sum", sum)
reduction("mean", lambda values: divided(math.fsum(values), len(values)), FLOATS)
reduction("prod", math.prod)
reduction("amax", with_nan(max), REALS)
reduction("amin", with_nan(min), REALS)
reduction("argmax", first_of(max), REALS, INT64)
reduction("argmin", first_of(min), REALS, INT64)
for dtype in DTYPES:
    reduction("any", any, (dtype,), truth(dtype))
    reduction("all", all, (dtype,), truth(dtype))


def along(op: str, function: Callable[[list[Any]], list[Any]], dtypes: Any = DTYPES) -> None:
    """Add the kernel that applies a function of a list, which returns one as long, along a dim."""

    def kernel(input: VaultArray, dim: int) -> VaultArray:
        dims = (dim,) if input.shape else ()
        lists, kept = groups(input, dims)
        values = [value for items in lists for value in function(items)]
        shape = tuple([input.shape[d] for d in (*kept, *dims)])
        order = (*kept, *dims)
        back = tuple(sorted(range(len(order)), key=order.__getitem__))
        return clone(relaid_dims(new(values, shape, input.dtype), back))

    table.add(op, kernel, dtypes=dtypes)


along("cumsum", lambda values: list(itertools.accumulate(values)))
along("cumprod", lambda values: list(itertools.accumulate(values, operator.mul)))

# --- products ---------------------------------------------------------------------------------


@table.kernel(dtypes=DTYPES)
def matmul(input: VaultArray, other: VaultArray) -> VaultArray:
    left = input if len(input.shape) > 1 else with_dim(input, 0)
    right = other if len(other.shape) > 1 else with_dim(other, 1)
    (rows, inner), columns = left.shape[-2:], right.shape[-1]
    batch = common_shape(relaid_to(left, left.shape[:-2]), relaid_to(right, right.shape[:-2]))
    a = left.values((*batch, rows, inner))
    b = relaid_dims(
        right, (*range(len(right.shape) - 2), len(right.shape) - 1, len(right.shape) - 2)
    ).values((*batch, columns, inner))
    result = []
    for number in range(math.prod(batch)):
        at, bt = number * rows * inner, number * columns * inner
        across = [b[bt + c * inner : bt + (c + 1) * inner] for c in range(columns)]
        for r in range(rows):
            row = a[at + r * inner : at + (r + 1) * inner]
            result += [sum(map(operator.mul, row, column)) for column in across]
    shape = (
        *batch,
        *((rows,) if len(input.shape) > 1 else ()),
        *((columns,) if len(other.shape) > 1 else ()),
    )
    return new(result, shape, input.dtype)


def with_dim(array: VaultArray, dim: int) -> VaultArray:
    """Return a 1-d array with a dimension of size 1 before or behind."""
    shape, strides = (array.shape[0], 1), (array.strides[0], 0)
    if dim == 0:
        shape, strides = shape[::-1], strides[::-1]
    return VaultArray(array.store, shape, strides, array.offset, array.dtype)


def relaid_to(array: VaultArray, shape: Shape) -> VaultArray:
    """Return an array that has only the leading dimensions."""
    return VaultArray(array.store, shape, array.strides[: len(shape)], array.offset, array.dtype)


# --- joining and indexing ---------------------------------------------------------------------


@table.kernel(dtypes=DTYPES)
def cat(tensors: list[VaultArray], dim: int) -> VaultArray:
    first = tensors[0]
    total = sum([tensor.shape[dim] for tensor in tensors])
    shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
    result = new([0] * math.prod(shape), shape, first.dtype)
    start = 0
    for tensor in tensors:
        key = (*[slice(None)] * dim, slice(start, start + tensor.shape[dim]))
        VIEW["basic_index"](result, key).write(tensor.values())
        start += tensor.shape[dim]
    return result


@table.kernel(dtypes=DTYPES)
def place(input: VaultArray, shape: Shape, key: tuple[Any, ...]) -> VaultArray:
    result = new([0] * math.prod(shape), shape, input.dtype)
    VIEW["basic_index"](result, key).write(input.values())
    return result


VIEW = {kernel.op: kernel.function for kernel in table if kernel.op == "basic_index"}


def indexed_places(array: VaultArray, indices: list[VaultArray | None]) -> tuple[list[int], Shape]:
    """Return where the elements are that index arrays name, and the shape they come in.

    The dimensions of the index arrays, broadcast, stand where the first of them stood if they are
    neighbours, else in front.
    """
    dims = [d for d, item in enumerate(indices) if item is not None]
    chosen = [indices[d] for d in dims]
    shape = common_shape(*chosen)
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    at = dims[0] if together else 0
    rest = [d for d in range(len(array.shape)) if d not in dims]
    before, behind = rest[:at], rest[at:]
    picked = [0] * math.prod(shape)
    for d, item in zip(dims, chosen, strict=True):
        size = array.shape[d]
        for position, number in enumerate(item.values(shape)):
            if not -size <= number < size:
                raise IndexError(
                    f"index {number} is out of bounds for dimension {d} with size {size}"
                )
            picked[position] += (number % size) * array.strides[d]
    places = [array.offset]
    for d in before:
        places = [p + step * array.strides[d] for p in places for step in range(array.shape[d])]
    places = [p + extra for p in places for extra in picked]
    for d in behind:
        places = [p + step * array.strides[d] for p in places for step in range(array.shape[d])]
    sizes = [array.shape[d] for d in before], [array.shape[d] for d in behind]
    return places, (*sizes[0], *shape, *sizes[1])


@table.kernel(dtypes=DTYPES)
def index(input: VaultArray, indices: list[VaultArray | None]) -> VaultArray:
    places, shape = indexed_places(input, indices)
    numbers = input.cells
    return new([numbers[p] for p in places], shape, input.dtype)


@table.kernel(dtypes=DTYPES)
def index_put(
    input: VaultArray, indices: list[VaultArray | None], values: VaultArray, accumulate: bool
) -> VaultArray:
    result = clone(input)
    places, shape = indexed_places(result, indices)
    numbers = result.cells
    for p, value in zip(places, values.values(shape), strict=True):
        numbers[p] = numbers[p] + value if accumulate else value
    return result


@table.kernel("nonzero", dtypes=DTYPES)
def nonzero(input: VaultArray) -> VaultArray:
    everywhere = itertools.product(*[range(size) for size in input.shape])
    found = [where for where, value in zip(everywhere, input.values(), strict=True) if value]
    flat = [number for where in found for number in where]
    return new(flat, (len(found), len(input.shape)), INT64)


def along_places(array: VaultArray, dim: int, index: VaultArray) -> list[int]:
    """Return where the elements are that index numbers name along one dimension."""
    if not array.shape:
        return [array.offset] * len(index.values())
    size, stride = array.shape[dim], array.strides[dim]
    strides = tuple([0 if d == dim else step for d, step in enumerate(array.strides)])
    strides = strides[: len(index.shape)]  # a 0-d index counts as one of a single number
    starts = VaultArray(array.store, index.shape, strides, array.offset, array.dtype).places()
    numbers = index.values()
    for number in numbers:
        if not 0 <= number < size:
            raise RuntimeError(
                f"index {number} is out of bounds for dimension {dim} with size {size}"
            )
    return [start + number * stride for start, number in zip(starts, numbers, strict=True)]


@table.kernel(dtypes=DTYPES)
def gather(input: VaultArray, dim: int, index: VaultArray) -> VaultArray:
    numbers = input.cells
    return new([numbers[p] for p in along_places(input, dim, index)], index.shape, input.dtype)


def scattered(
    input: VaultArray, dim: int, index: VaultArray, src: Any, combine: Callable[..., Any]
) -> VaultArray:
    """Return a copy of `input` that holds `src` combined with what was there."""
    result = clone(input)
    numbers = result.cells
    places = along_places(result, dim, index)
    if isinstance(src, VaultArray):
        strides = src.strides if len(src.shape) == len(index.shape) else (0,) * len(index.shape)
        part = VaultArray(src.store, index.shape, strides, src.offset, src.dtype)
        values = part.values()
    else:
        values = [src] * len(places)
    for p, value in zip(places, values, strict=True):
        numbers[p] = combine(numbers[p], value)
    return result


@table.kernel(dtypes=DTYPES)
def scatter(
    input: VaultArray, dim: int, index: VaultArray, src: Any, reduce: str | None
) -> VaultArray:
    combine = {None: lambda _, new: new, "add": operator.add, "multiply": operator.mul}[reduce]
    return scattered(input, dim, index, src, combine)
