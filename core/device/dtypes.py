"""Data types, their limits, and torch's promotion rules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

Number: TypeAlias = bool | int | float | complex

# Categories in the order in which a higher one wins promotion.
BOOL, INTEGER, FLOATING, COMPLEX = range(4)


#: What stands before names in text. Programs written for torch compare and cut that text.
_shown_as = ["tensorplug"]


def show_names_as(namespace: str) -> None:
    """Have dtypes, layouts, types and sizes print as those of a module of this name."""
    _shown_as[0] = namespace


def shown(name: str) -> str:
    """Return a name of the namespace as text has it, such as ``"tensorplug.strided"``."""
    return f"{_shown_as[0]}.{name}"


class DType:
    """The type of a tensor's elements, such as ``tp.float32``.

    Attributes
    ----------
    name : str
        The name within the package, for example ``"float32"``.
    itemsize : int
        Bytes of one element.
    is_floating_point, is_complex, is_signed : bool
        As in ``torch.dtype``.
    is_half : bool
        Whether it is of half precision, which torch computes in float32 and rounds at the end.
    takes_floats, takes_integers : bool
        Whether a Python float or int beside its elements is computed with as it is. Half precision may have
        to round it, other dtypes are promoted.
    """

    __slots__ = (
        "category", "index", "is_complex", "is_floating_point", "is_half", "is_signed", "itemsize", "name",
        "takes_floats", "takes_integers",
    )  # fmt: skip

    def __init__(self, name: str, itemsize: int, category: int, *, signed: bool = True) -> None:
        self.name: Final = name
        self.itemsize: Final = itemsize
        self.category: Final = category
        self.is_floating_point: Final = category == FLOATING
        self.is_complex: Final = category == COMPLEX
        self.is_signed: Final = signed and category != BOOL
        self.is_half: Final = category == FLOATING and itemsize == 2
        self.takes_floats: Final = category >= FLOATING and not self.is_half
        self.takes_integers: Final = category >= INTEGER and not self.is_half
        self.index: Final = len(_BY_NAME)
        _BY_NAME[name] = self

    def __repr__(self) -> str:
        return f"{_shown_as[0]}.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return dtype_named, (self.name,)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self

    def to_complex(self) -> DType:
        """Return the complex dtype whose parts have this precision; of bfloat16 it is complex64.

        Raises
        ------
        RuntimeError
            Of a bool or integer dtype.
        """
        if self.category < FLOATING:
            raise RuntimeError(f"to_complex(): there is no complex dtype of {self.name}")
        return _COMPLEX.get(self, complex64)

    def to_real(self) -> DType:
        """Return the dtype of the parts of a complex dtype; any other dtype is returned as it is."""
        return _REAL.get(self, self)


_BY_NAME: dict[str, DType] = {}

bool_ = DType("bool", 1, BOOL)
uint8 = DType("uint8", 1, INTEGER, signed=False)
uint16 = DType("uint16", 2, INTEGER, signed=False)
uint32 = DType("uint32", 4, INTEGER, signed=False)
uint64 = DType("uint64", 8, INTEGER, signed=False)
int8 = DType("int8", 1, INTEGER)
int16 = DType("int16", 2, INTEGER)
int32 = DType("int32", 4, INTEGER)
int64 = DType("int64", 8, INTEGER)
float16 = DType("float16", 2, FLOATING)
bfloat16 = DType("bfloat16", 2, FLOATING)
float32 = DType("float32", 4, FLOATING)
float64 = DType("float64", 8, FLOATING)
complex64 = DType("complex64", 8, COMPLEX)
complex128 = DType("complex128", 16, COMPLEX)

ALL_DTYPES: Final[tuple[DType, ...]] = tuple(_BY_NAME.values())
INTEGRAL: Final = tuple(d for d in ALL_DTYPES if d.category == INTEGER)
FLOATS: Final = tuple(d for d in ALL_DTYPES if d.is_floating_point)
COMPLEXES: Final = (complex64, complex128)

# Floats of eight bits: memory is kept in them, and almost nothing is computed. They stand apart from
# ALL_DTYPES, which ops take: a kernel serves them only if it names them.
float8_e4m3fn = DType("float8_e4m3fn", 1, FLOATING)
float8_e5m2 = DType("float8_e5m2", 1, FLOATING)
float8_e4m3fnuz = DType("float8_e4m3fnuz", 1, FLOATING)
float8_e5m2fnuz = DType("float8_e5m2fnuz", 1, FLOATING)
float8_e8m0fnu = DType("float8_e8m0fnu", 1, FLOATING, signed=False)

FLOAT8: Final = tuple(_BY_NAME.values())[len(ALL_DTYPES) :]

# Complex numbers of two halves stand apart, too. What is pointwise is computed in complex64.
complex32 = DType("complex32", 4, COMPLEX)

#: The dtypes that memory is kept in, and that a kernel serves only if it names them.
STORED: Final = (*FLOAT8, complex32)

_REAL = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX = {real: complex_ for complex_, real in _REAL.items()} | {c: c for c in _REAL}


def dtype_named(name: str) -> DType:
    """Return the dtype called `name`.

    Raises
    ------
    TypeError
        If there is none of that name.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise TypeError(f"unknown dtype {name!r}; known are {', '.join(_BY_NAME)}") from None


def wrap_integer(value: Number, dtype: DType) -> Number:
    """Return an int as one that an integer `dtype` can hold, modulo its width as in C.

    For a runtime's ``scalar``: array libraries refuse ints that are out of range. Anything else than an
    int with an integer dtype is returned as it is.

    Examples
    --------
    >>> wrap_integer(-1, uint8), wrap_integer(128, int8), wrap_integer(300, float32)
    (255, -128, 300)
    """
    if dtype.category != INTEGER or not isinstance(value, int):
        return value
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.is_signed and value >> (bits - 1) else value


_PYTHON_TYPES: dict[type, DType] = {bool: bool_, int: int64, complex: complex128}


def as_dtype(value: DType | type, name: str = "dtype") -> DType:
    """Return `value` as a dtype; Python's bool, int, float and complex stand for torch's choices."""
    if isinstance(value, DType):
        return value
    if value is float:
        return float64
    if value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    raise TypeError(f"{name} must be a tensorplug dtype such as tp.float32, got {value!r}")


# --- default dtype ----------------------------------------------------------------------------

_default: list[DType] = [float32]
_default_listeners: list[Any] = []


def get_default_dtype() -> DType:
    """Return the dtype that Python floats become (``tp.float32`` unless changed)."""
    return _default[0]


def set_default_dtype(dtype: DType) -> None:
    """Make `dtype`, a floating-point dtype, the one that Python floats become.

    Raises
    ------
    TypeError
        If `dtype` is not a floating-point dtype.
    """
    given: object = dtype
    if not isinstance(given, DType) or not given.is_floating_point or given in FLOAT8:
        raise TypeError(
            f"set_default_dtype(): only floating-point dtypes are supported, got {dtype!r}"
        )
    _default[0] = dtype
    for listener in _default_listeners:
        listener()


def on_default_dtype_change(listener: Any) -> None:
    """Call `listener()` after each change of the default dtype (dispatch tables depend on it)."""
    _default_listeners.append(listener)


def default_complex() -> DType:
    """Return the complex dtype whose parts have the default dtype's precision."""
    return get_default_dtype().to_complex()


# --- promotion --------------------------------------------------------------------------------


def _promote_integers(a: DType, b: DType) -> DType:
    if a.is_signed == b.is_signed:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned.itemsize > 1:
        raise RuntimeError(
            f"promotion of {unsigned} with {signed} is not supported; convert one of them with .to()"
        )
    return signed if signed.itemsize > 1 else int16


def _promote(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if a in FLOAT8 or b in FLOAT8:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a.name} and {b.name}; "
            "convert with .to() first"
        )
    if a.category < b.category:
        a, b = b, a
    if a.category == b.category:
        if a.category == INTEGER:
            return _promote_integers(a, b)
        if a.itemsize == b.itemsize:  # float16 with bfloat16
            return float32
        return a if a.itemsize > b.itemsize else b
    if a.category == COMPLEX and b.category == FLOATING:
        return _promote(a, b.to_complex())
    return a


_PROMOTED: dict[tuple[DType, DType], DType] = {}


def promote_types(type1: DType, type2: DType) -> DType:
    """Return the smallest dtype that both can be converted to without losing their category.

    Raises
    ------
    RuntimeError
        For uint16, uint32 or uint64 with a signed integer: torch defines no result.

    Examples
    --------
    >>> promote_types(int32, float16)
    tensorplug.float16
    """
    key = (type1, type2)
    result = _PROMOTED.get(key)
    if result is None:
        result = _PROMOTED[key] = _promote(as_dtype(type1), as_dtype(type2))
    return result


def scalar_dtype(value: Number) -> DType:
    """Return the dtype that a Python number has where nothing else decides."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return get_default_dtype()
    return default_complex()


def result_dtype(operands: Iterable[Any]) -> DType:
    """Return the dtype of an op over tensors and Python numbers.

    Dimensioned tensors decide among themselves; 0-d tensors, then numbers, only count where their
    category is higher (torch's type promotion).
    """
    groups: list[DType | None] = [None, None, None]  # dimensioned, 0-d, numbers
    for operand in operands:
        shape = getattr(operand, "_shape", None)
        if shape is None:
            wide = type(operand) is int and operand >= 1 << 63  # of no signed dtype
            rank, dtype = 2, uint64 if wide else scalar_dtype(operand)
        else:
            rank, dtype = (0 if shape else 1), operand._key.dtype
        known = groups[rank]
        groups[rank] = dtype if known is None or known is dtype else promote_types(known, dtype)
    result: DType | None = None
    for rank, group in enumerate(groups):
        if group is None:
            continue
        dtype = group
        if result is None:
            result = dtype
        elif dtype.category > result.category:
            if dtype.is_complex and result.is_floating_point:
                # Its own width never counts: 1j beside float64 gives complex128.
                result = result.to_complex()
            else:
                result = promote_types(result, dtype) if rank < 2 else dtype
    assert result is not None
    return result


def can_cast(from_: DType, to: DType) -> bool:
    """Return whether a result of dtype `from_` may be written into a tensor of dtype `to`.

    Examples
    --------
    >>> can_cast(float64, float32), can_cast(float32, int64)
    (True, False)
    """
    given: Any
    for given in (from_, to):
        if not isinstance(given, DType):
            raise TypeError(f"can_cast(): arguments must be dtypes, got {given!r}")
    if from_.category == INTEGER and to.category == BOOL:
        return False
    return from_.category <= to.category


# --- limits -----------------------------------------------------------------------------------

# (bits of the exponent's range, bits of the stored fraction): IEEE 754, and bfloat16's own.
_FORMATS: dict[str, tuple[int, int, int]] = {
    "float16": (16, 15, 10),
    "bfloat16": (16, 127, 7),
    "float32": (32, 127, 23),
    "float64": (64, 1023, 52),
    "float8_e4m3fn": (8, 8, 3),
    "float8_e5m2": (8, 15, 2),
    "float8_e4m3fnuz": (8, 7, 3),
    "float8_e5m2fnuz": (8, 15, 2),
    "float8_e8m0fnu": (8, 127, 0),
}
# What the formulas below do not give: one code more is a NaN, or none is infinite.
_LIMITS: dict[str, dict[str, float]] = {
    "float8_e4m3fn": {"max": 448.0, "tiny": 2.0**-6},
    "float8_e4m3fnuz": {"max": 240.0, "tiny": 2.0**-7},
    "float8_e5m2fnuz": {"eps": 0.125, "tiny": 2.0**-15},
    "float8_e8m0fnu": {"max": 2.0**127, "min": 2.0**-127, "tiny": 2.0**-127},
}


class finfo:
    """Limits of a floating-point (or complex: of its parts) dtype, as ``torch.finfo``.

    Examples
    --------
    >>> finfo(float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, dtype: DType | None = None) -> None:
        chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
        real = chosen.to_real()
        if not real.is_floating_point:
            raise TypeError(f"finfo(): expected a floating-point or complex dtype, got {dtype!r}")
        bits, exponent, fraction = _FORMATS[real.name]
        self.dtype = real.name
        self.bits = bits
        known = _LIMITS.get(real.name, {})
        self.eps = known.get("eps", math.ldexp(1.0, -fraction))
        self.max = known.get("max", math.ldexp(2.0 - math.ldexp(1.0, -fraction), exponent))
        self.min = known.get("min", -self.max)
        self.tiny = self.smallest_normal = known.get("tiny", math.ldexp(1.0, 1 - exponent))
        self.resolution = 10.0 ** -math.floor(fraction * math.log10(2))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return self.dtype == other.dtype if isinstance(other, finfo) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as in torch


class iinfo:
    """Limits of an integer dtype, as ``torch.iinfo``.

    Examples
    --------
    >>> iinfo(int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, dtype: DType) -> None:
        chosen = as_dtype(dtype)
        if chosen.category != INTEGER:
            raise TypeError(f"iinfo(): expected an integer dtype, got {dtype!r}")
        self.dtype = chosen.name
        self.bits = chosen.itemsize * 8
        self.min = -(1 << (self.bits - 1)) if chosen.is_signed else 0
        self.max = (1 << (self.bits - chosen.is_signed)) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return self.dtype == other.dtype if isinstance(other, iinfo) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as in torch


#: What torch's messages, and names of types, call the dtypes.
SCALAR_TYPES: Final = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
}


def scalar_type(dtype: DType) -> str:
    """Return what torch's messages call a dtype: people search for their words."""
    return SCALAR_TYPES.get(dtype.name, dtype.name)
