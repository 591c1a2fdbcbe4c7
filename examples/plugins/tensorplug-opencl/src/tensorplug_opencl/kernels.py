"""The kernels: which source computes which op for which dtypes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorplug.plugin import (
    INTEGRAL,
    DType,
    KernelTable,
    Number,
    Shape,
    dtype_named,
    host_kernels,
    reduced_shape,
    view_kernels,
    view_layout,
)

from .arrays import (
    NATIVES,
    OpenCLArray,
    common_shape,
    layout_of,
    packed,
    place_of,
    relaid,
)
from .runtime import OpenCLRuntime

BOOL, UINT8, INT64, FLOAT32 = map(dtype_named, ("bool", "uint8", "int64", "float32"))
DTYPES = tuple(NATIVES)
COMPLEX = tuple([dtype for dtype in DTYPES if dtype.is_complex])
FLOATS = tuple([dtype for dtype in DTYPES if dtype.is_floating_point])
INTEGERS = tuple([dtype for dtype in INTEGRAL if dtype is not BOOL])
NUMBERS = (*INTEGERS, *FLOATS)
REALS = (*NUMBERS, BOOL)

# By op: the expression, and the dtypes for which it is right.
UNARY: dict[str, tuple[str, tuple[DType, ...]]] = {
    "abs": ("a < 0 ? -a : a", INTEGERS),
    "bitwise_not": ("~a", INTEGERS),
    "clone": ("a", DTYPES),
    "conj_physical": ("a", REALS),
    "cos": ("cos(a)", FLOATS),
    "erf": ("erf(a)", FLOATS),
    "erfc": ("erfc(a)", FLOATS),
    "exp": ("exp(a)", FLOATS),
    "expm1": ("expm1(a)", FLOATS),
    "floor": ("floor(a)", FLOATS),
    "log": ("log(a)", FLOATS),
    "log1p": ("log1p(a)", FLOATS),
    "neg": ("-a", (*NUMBERS, *COMPLEX)),
    "relu": ("a > 0 ? a : a != a ? a : 0", NUMBERS),
    "rint": ("rint(a)", FLOATS),
    "rsqrt": ("1 / sqrt(a)", FLOATS),
    "sigmoid": ("1 / (1 + exp(-a))", FLOATS),
    "sign": ("(a > 0) - (a < 0)", NUMBERS),
    "sin": ("sin(a)", FLOATS),
    "sqrt": ("sqrt(a)", FLOATS),
    "square": ("a * a", NUMBERS),
    "tanh": ("tanh(a)", FLOATS),
}
BINARY: dict[str, tuple[str, tuple[DType, ...]]] = {
    "add": ("a + b", DTYPES),
    "atan2": ("atan2(a, b)", FLOATS),
    "bitwise_and": ("a & b", (*INTEGERS, BOOL)),
    "bitwise_or": ("a | b", (*INTEGERS, BOOL)),
    "bitwise_xor": ("a ^ b", (*INTEGERS, BOOL)),
    "clamp_max": ("a != a ? a : b != b ? b : a < b ? a : b", NUMBERS),
    "clamp_min": ("a != a ? a : b != b ? b : a > b ? a : b", NUMBERS),
    "copysign": ("copysign(a, b)", FLOATS),
    "floor_divide": ("FLOOR_DIVIDE(a, b)", FLOATS),
    "fmod": ("fmod(a, b)", FLOATS),
    "maximum": ("a != a ? a : b != b ? b : a > b ? a : b", NUMBERS),
    "minimum": ("a != a ? a : b != b ? b : a < b ? a : b", NUMBERS),
    "mul": ("a * b", (*NUMBERS, BOOL)),
    "pow": ("b == 2 ? a * a : pow(a, b)", FLOATS),
    "remainder": ("python_remainder(a, b)", FLOATS),
    "sub": ("a - b", (*NUMBERS, *COMPLEX)),
    "div": ("a / b", FLOATS),
}
COMPARISONS = {"eq": "==", "ge": ">=", "gt": ">", "le": "<=", "lt": "<", "ne": "!="}


def all_kernels(runtime: OpenCLRuntime) -> KernelTable:
    """Return the kernels of a runtime's devices."""
    table = KernelTable(runtime.type)
    view_kernels(table, layout_of, relaid)
    for family in (_pointwise, _copies, _reductions, _products, _places):
        family(runtime, table)
    return table


def launch(
    runtime: OpenCLRuntime, expression: str, result: OpenCLArray, *inputs: OpenCLArray
) -> None:
    """Queue a pointwise kernel; there may be fewer than three inputs."""
    three = [inputs[min(n, len(inputs) - 1)].broadcast_to(result.shape) for n in range(3)]
    defines = {"R": result.dtype.name, "EXPRESSION": expression}
    defines |= {name: array.dtype.name for name, array in zip("ABC", three, strict=True)}
    if inputs[0].dtype.is_floating_point:
        defines["FLOATING"] = ""
    if all(array.is_contiguous() for array in (result, *three)):
        defines["DENSE"] = ""
    device = runtime.at(result.index)
    kernel = device.kernel("pointwise.cl", "pointwise", **defines)
    layout = packed(result.shape, *map(place_of, (result, *three)))
    device.run(kernel, (math.prod(result.shape),), layout, result, *three)


def _pointwise(runtime: OpenCLRuntime, table: KernelTable) -> None:
    def add(op: str, expression: str, dtypes: Iterable[DType], result: DType | None = None) -> None:
        def kernel(*inputs: OpenCLArray) -> OpenCLArray:
            first = inputs[0]
            made = runtime.new(common_shape(*inputs), result or first.dtype, first.index)
            launch(runtime, expression, made, *inputs)
            return made

        table.add(op, kernel, dtypes=dtypes)

    for op, (expression, dtypes) in (UNARY | BINARY).items():
        add(op, expression, dtypes)
    for op, sign in COMPARISONS.items():
        add(op, f"a {sign} b", REALS, BOOL)
    add("abs", "fabs(a)", FLOATS)
    add("bitwise_not", "!a", (BOOL,))
    for dtype in INTEGERS:
        bits = 8 * dtype.itemsize
        out_of_range = f"b >= {bits}" + (" || b < 0" if dtype.is_signed else "")
        filled = "a < 0 ? -1 : 0" if dtype.is_signed else "0"
        add("bitwise_left_shift", f"{out_of_range} ? 0 : a << b", (dtype,))
        add("bitwise_right_shift", f"{out_of_range} ? ({filled}) : a >> b", (dtype,))

    @table.kernel(dtypes=DTYPES)
    def where(condition: OpenCLArray, input: OpenCLArray, other: OpenCLArray) -> OpenCLArray:
        made = runtime.new(common_shape(condition, input, other), input.dtype, input.index)
        launch(runtime, "a ? b : c", made, condition, input, other)
        return made


def _copies(runtime: OpenCLRuntime, table: KernelTable) -> None:
    @table.kernel(dtypes=DTYPES)
    def cast(input: OpenCLArray, dtype: DType) -> OpenCLArray:
        made = runtime.new(input.shape, dtype, input.index)
        launch(runtime, _converted(input.dtype, dtype), made, input)
        return made

    @table.kernel(dtypes=DTYPES, out=True)
    def copy(input: OpenCLArray, src: OpenCLArray, out: OpenCLArray | None = None) -> OpenCLArray:
        made = runtime.new(input.shape, input.dtype, input.index) if out is None else out
        runtime.copy_into(made, src)
        return made

    @table.kernel(dtypes=DTYPES)
    def fill_new(shape: Shape, value: Number, dtype: DType) -> OpenCLArray:
        device = runtime.at(runtime.current_device())
        made = runtime.new(shape, dtype, runtime.current_device())
        kernel = device.kernel("creation.cl", "fill", A=dtype.name, NUMBER="long")
        count = math.prod(shape)
        device.run(kernel, (count,), np.int64(count), _computed_in(dtype, value), made)
        return made

    @table.kernel(dtypes=NUMBERS)
    def arange_new(start: Number, step: Number, count: int, dtype: DType) -> OpenCLArray:
        device = runtime.at(runtime.current_device())
        made = runtime.new((count,), dtype, runtime.current_device())
        exact = isinstance(start, int) and isinstance(step, int)
        number, native = ("long", np.int64) if exact else ("double", np.float64)
        kernel = device.kernel("creation.cl", "arange", A=dtype.name, NUMBER=number)
        device.run(kernel, (count,), np.int64(count), native(start), native(step), made)
        return made

    @table.kernel(dtypes=(INT64,))
    def philox_bits(shape: Shape, seed: int, offset: int) -> OpenCLArray:
        device = runtime.at(runtime.current_device())
        made = runtime.new(shape, INT64, runtime.current_device())
        kernel = device.kernel("creation.cl", "philox", A="int64", NUMBER="long")
        count = math.prod(shape)
        high, low = divmod(offset, 1 << 64)
        numbers = (np.int64(count), np.uint64(seed), np.uint64(low), np.uint64(high))
        device.run(kernel, (-(-count // 4),), *numbers, made)
        return made

    @table.kernel(dtypes=DTYPES)
    def cat(tensors: list[OpenCLArray], dim: int) -> OpenCLArray:
        first = tensors[0]
        shape = list(first.shape)
        shape[dim] = sum([tensor.shape[dim] for tensor in tensors])
        made = runtime.new(tuple(shape), first.dtype, first.index)
        start = 0
        for tensor in tensors:
            part = made.relaid(tensor.shape, made.strides, made.offset + start * made.strides[dim])
            runtime.copy_into(part, tensor)
            start += tensor.shape[dim]
        return made

    @table.kernel(dtypes=DTYPES)
    def place(input: OpenCLArray, shape: Shape, key: tuple[Any, ...]) -> OpenCLArray:
        made = fill_new(shape, 0, input.dtype)
        runtime.copy_into(relaid(made, view_layout("basic_index", layout_of(made), key)), input)
        return made


def _converted(source: DType, target: DType) -> str:
    """Return the expression that converts an element."""
    if source.is_complex:
        if target.is_complex:
            return "convert_double2(a)" if target.itemsize == 16 else "convert_float2(a)"
        if target is BOOL:
            return "a.x != 0 || a.y != 0"
        return "(long)a.x" if target in INTEGERS else "a.x"
    if target.is_complex:
        return "(double2)(a, 0)" if target.itemsize == 16 else "(float2)(a, 0)"
    # A number out of an integer's range wraps around by way of the widest one.
    return "(long)a" if target in INTEGERS and source.is_floating_point else "a"


def _computed_in(dtype: DType, value: Number) -> Any:
    """Return a number as what the kernels compute a dtype in, ``X_dtype`` in prelude.cl."""
    if dtype.is_complex:
        return NATIVES[dtype].type(value).tobytes()
    if dtype is BOOL:
        return np.int32(value)
    half = dtype.is_floating_point and dtype.itemsize < 4
    return np.float32(value) if half else NATIVES[dtype].type(value)


# --- reductions -----------------------------------------------------------------------------------

# By op: what a total begins with, how an element joins it, and the dtypes.
TOTALS: dict[str, tuple[str, str, tuple[DType, ...]]] = {
    "all": ("1", "total && a != 0", (*NUMBERS, BOOL)),
    "any": ("0", "total || a != 0", (*NUMBERS, BOOL)),
    "mean": ("0", "total + a", FLOATS),
    "prod": ("1", "total * a", (*NUMBERS, BOOL)),
    "sum": ("0", "total + a", (*NUMBERS, BOOL)),
}
# Results fewer than FEW, of more than MANY elements each, are computed in parts.
FEW, MANY, PARTS = 256, 4096, 128


def _reductions(runtime: OpenCLRuntime, table: KernelTable) -> None:
    def reduce(
        input: OpenCLArray, dim: Shape, keepdim: bool, defines: dict[str, str], result: DType
    ) -> OpenCLArray:
        made = runtime.new(reduced_shape(input.shape, dim, keepdim), result, input.index)
        outer, inner = _split(input, dim)
        count, size = math.prod(outer.shape), math.prod(inner.shape)
        parts = PARTS if count < FEW and size > MANY else 1
        # What the parts come to is not rounded to half precision.
        partial = FLOAT32 if result.is_floating_point and result.itemsize < 4 else result
        target = made if parts == 1 else runtime.new((count, parts), partial, input.index)
        final = defines.pop("FINISH")
        names = {"A": input.dtype.name, "R": target.dtype.name}
        device = runtime.at(input.index)
        kernel = device.kernel(
            "reduce.cl", "reduce", **defines, **names, FINISH=final if parts == 1 else "total"
        )
        flat = made.relaid(outer.shape, _row_strides(outer.shape))
        device.run(
            kernel,
            (count * parts,),
            packed(outer.shape, place_of(flat), place_of(outer)),
            packed(inner.shape, None, (inner.strides, 0)),
            np.int64(parts),
            target,
            input,
        )
        if parts == 1:
            return made
        together = reduce(target, (1,), False, {**defines, "FINISH": final}, result)
        return together.relaid(made.shape, made.strides)

    def add(op: str, start: str, combine: str, dtypes: Iterable[DType]) -> None:
        def kernel(input: OpenCLArray, dim: Shape, keepdim: bool) -> OpenCLArray:
            count = math.prod([input.shape[d] for d in dim])
            truth = op in ("any", "all")
            result = BOOL if truth and input.dtype is not UINT8 else input.dtype
            defines = {
                "TOTAL": "int" if truth else f"W({input.dtype.name})",
                "START": start,
                "COMBINE": combine,
                "FINISH": f"total / (W({input.dtype.name})){count}" if op == "mean" else "total",
            }
            return reduce(input, dim, keepdim, defines, result)

        table.add(op, kernel, dtypes=dtypes)

    for op, (start, combine, dtypes) in TOTALS.items():
        add(op, start, combine, dtypes)

    def extreme(op: str, sign: str) -> None:
        def kernel(input: OpenCLArray, dim: Shape, keepdim: bool) -> OpenCLArray:
            name = input.dtype.name
            # A part may have no element; then it starts from the last of all.
            first = "start + place(&inner, 1, min(first, inner.count - 1))"
            defines = {
                "TOTAL": f"X({name})",
                "START": f"LOAD({name})(pa, {first})",
                "COMBINE": f"total != total ? total : a != a || a {sign} total ? a : total",
                "FINISH": "total",
            }
            return reduce(input, dim, keepdim, defines, input.dtype)

        table.add(op, kernel, dtypes=NUMBERS)

    extreme("amax", ">")
    extreme("amin", "<")

    def best(op: str, sign: str) -> None:
        def kernel(input: OpenCLArray, dim: int | None, keepdim: bool) -> OpenCLArray:
            dims = tuple(range(len(input.shape))) if dim is None else (dim,)
            dims = dims if input.shape else ()
            made = runtime.new(reduced_shape(input.shape, dims, keepdim), INT64, input.index)
            outer, inner = _split(input, dims)
            device = runtime.at(input.index)
            flat = made.relaid(outer.shape, _row_strides(outer.shape))
            device.run(
                device.kernel("best.cl", "find_best", A=input.dtype.name, BETTER=sign),
                (math.prod(outer.shape),),
                packed(outer.shape, place_of(flat), place_of(outer)),
                packed(inner.shape, None, (inner.strides, 0)),
                made,
                input,
            )
            return made

        table.add(op, kernel, dtypes=NUMBERS)

    best("argmax", ">")
    best("argmin", "<")

    def running(op: str, start: str, combine: str) -> None:
        def kernel(input: OpenCLArray, dim: int) -> OpenCLArray:
            made = runtime.new(input.shape, input.dtype, input.index)
            dims = (dim,) if input.shape else ()
            lines, line = _split(input, dims)
            out, _ = _split(made, dims)
            name = input.dtype.name
            names = {"A": name, "TOTAL": f"W({name})", "START": start, "COMBINE": combine}
            device = runtime.at(input.index)
            device.run(
                device.kernel("running.cl", "running", **names),
                (math.prod(lines.shape),),
                packed(lines.shape, place_of(out), place_of(lines)),
                np.int64(line.shape[0] if dims else 1),
                np.int64(made.strides[dim] if dims else 0),
                np.int64(line.strides[0] if dims else 0),
                made,
                input,
            )
            return made

        table.add(op, kernel, dtypes=NUMBERS)

    running("cumsum", "0", "total + a")
    running("cumprod", "1", "total * a")


def _split(array: OpenCLArray, dims: Shape) -> tuple[OpenCLArray, OpenCLArray]:
    """Return the dimensions that stay, and those that are gone through."""
    kept = [d for d in range(len(array.shape)) if d not in dims]
    outer, inner = (
        array.relaid(tuple([array.shape[d] for d in own]), tuple([array.strides[d] for d in own]))
        for own in (kept, sorted(dims))
    )
    return outer, inner


def _row_strides(shape: Shape) -> Shape:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


# --- products -------------------------------------------------------------------------------------


def _products(runtime: OpenCLRuntime, table: KernelTable) -> None:
    @table.kernel(dtypes=FLOATS)
    def matmul(input: OpenCLArray, other: OpenCLArray) -> OpenCLArray:
        left = (
            input if len(input.shape) > 1 else input.relaid((1, *input.shape), (0, *input.strides))
        )
        right = (
            other if len(other.shape) > 1 else other.relaid((*other.shape, 1), (*other.strides, 0))
        )
        stacks = [array.relaid(array.shape[:-2], array.strides[:-2]) for array in (left, right)]
        batch = common_shape(*stacks)
        stacks = [stack.broadcast_to(batch) for stack in stacks]
        (rows, inner), columns = left.shape[-2:], right.shape[-1]
        made = runtime.new((*batch, rows, columns), input.dtype, input.index)
        sizes = [rows, columns, inner, *left.strides[-2:], *right.strides[-2:]]
        device = runtime.at(input.index)
        kernel = device.kernel("matmul.cl", "matmul", A=input.dtype.name)
        device.run(
            kernel,
            (-(-columns // 4), -(-rows // 4), math.prod(batch)),
            packed(batch, None, *map(place_of, stacks)),
            np.array(sizes, np.int64).tobytes(),
            made,
            left,
            right,
        )
        shape = (
            *batch,
            *((rows,) if len(input.shape) > 1 else ()),
            *((columns,) if len(other.shape) > 1 else ()),
        )
        return made.relaid(shape, _row_strides(shape))


# --- positions ------------------------------------------------------------------------------------


def _places(runtime: OpenCLRuntime, table: KernelTable) -> None:
    extremes = {
        name: next(k.function for k in table if k.op == name and INT64 in (k.dtypes or ()))
        for name in ("amin", "amax")
    }

    def checked(index: OpenCLArray, dim: int, size: int) -> None:
        """Raise unless every position is there: reading beyond a buffer would end the process."""
        dims = tuple(range(len(index.shape)))
        for name in ("amin", "amax"):
            found = int(runtime.to_host(extremes[name](index, dims, False)))
            if not 0 <= found < size:
                raise RuntimeError(
                    f"index {found} is out of bounds for dimension {dim} with size {size}"
                )

    def with_dim(array: OpenCLArray) -> OpenCLArray:
        return array if array.shape else array.relaid((1,), (1,))

    @table.kernel(dtypes=DTYPES)
    def gather(input: OpenCLArray, dim: int, index: OpenCLArray) -> OpenCLArray:
        made = runtime.new(index.shape, input.dtype, input.index)
        if 0 in index.shape:
            return made
        source, where, target = with_dim(input), with_dim(index), with_dim(made)
        checked(index, dim, source.shape[dim])
        steps = tuple([0 if d == dim else s for d, s in enumerate(source.strides)])
        device = runtime.at(input.index)
        kernel = device.kernel("places.cl", "gather", A=input.dtype.name, I=index.dtype.name)
        layout = packed(where.shape, place_of(target), (steps, source.offset), place_of(where))
        device.run(
            kernel, (math.prod(where.shape),), layout, np.int64(source.strides[dim]), made, input,
            index,
        )  # fmt: skip
        return made

    def scatter(
        input: OpenCLArray, dim: int, index: OpenCLArray, src: OpenCLArray, **defines: str
    ) -> OpenCLArray:
        made = runtime.new(input.shape, input.dtype, input.index)
        runtime.copy_into(made, input)
        if 0 in index.shape:
            return made
        target, where = with_dim(made), with_dim(index)
        source = src if src.shape else src.broadcast_to(where.shape)  # one number for all
        checked(index, dim, target.shape[dim])
        lines = [_split(array, (dim,))[0] for array in (target, where, source)]
        shape = lines[1].shape
        device = runtime.at(input.index)
        kernel = device.kernel(
            "places.cl", "scatter", A=input.dtype.name, I=index.dtype.name, **defines
        )
        device.run(
            kernel,
            (math.prod(shape),),
            packed(shape, *map(place_of, lines)),
            *map(np.int64, (where.shape[dim], target.strides[dim], where.strides[dim])),
            np.int64(source.strides[dim]),
            made,
            index,
            src,
        )
        return made

    (on_host,) = [kernel.function for kernel in host_kernels(runtime, ["scatter"])]

    @table.kernel("scatter", dtypes=DTYPES)
    def overwrite(
        input: OpenCLArray, dim: int, index: OpenCLArray, src: OpenCLArray, reduce: str | None
    ) -> OpenCLArray:
        if reduce is not None:
            return on_host(input, dim, index, src, reduce)
        return scatter(input, dim, index, src)

    @table.kernel("scatter_add", dtypes=NUMBERS)
    def scatter_add(
        input: OpenCLArray, dim: int, index: OpenCLArray, src: OpenCLArray
    ) -> OpenCLArray:
        return scatter(input, dim, index, src, ADDING="")
