"""The dtypes that ``out=`` and in-place variants take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..device.dtypes import FLOATING, INTEGER, DType, can_cast, scalar_type
from ..device.runtime import RefusingRuntime
from .execution import overlap_error, overlaps
from .keys import DispatchKey
from .op import Op, Spec

#: Ops that compute in the dtype of ``out=``, as in torch.
OF_TARGET: set[Op] = set()


def computes_in_out(function: Any) -> None:
    """Have an op compute in the dtype of its ``out=``, unless a call names another."""
    OF_TARGET.add(function.op)


#: Ops that give ``out=`` of another shape new memory without a word, as torch's factories do.
SILENT: set[Op] = set()


def resizes_silently(*functions: Any) -> None:
    """Have ops say nothing of an ``out=`` tensor that they give another shape."""
    SILENT.update([function.op for function in functions])


#: Ops whose ``out=`` is of the result's dtype, or of these, as in torch: it is not converted.
EXACT: dict[Op, tuple[DType, ...]] = {}


#: By op, the calls of which that holds, where it does not hold of all.
EXACT_CALLS: dict[Op, Callable[[dict[str, Any]], bool]] = {}


#: By op, what is said of another dtype, where torch has words of its own.
_UNLIKE: dict[Op, str] = {}


def exact_out(
    *functions: Any,
    others: tuple[DType, ...] = (),
    where: Callable[[dict[str, Any]], bool] | None = None,
    said: str | None = None,
) -> None:
    """Have ``out=`` of ops take no dtype but the result's, and `others`.

    With `where`, that holds of the calls of which it says so, by their arguments' names.
    """
    for function in functions:
        if said is not None:
            _UNLIKE[function.op] = said
        if where is None:
            EXACT[function.op] = others
        else:
            EXACT_CALLS[function.op] = where


#: By op, the error of an ``out=`` that its result can't be cast to, where it isn't RuntimeError.
ERRORS: dict[Op, type[Exception]] = {}


def cast_error(*functions: Any, error: type[Exception]) -> None:
    """Have ops raise `error` if ``out=`` is of a dtype that their result can't be cast to."""
    ERRORS.update((function.op, error) for function in functions)


#: Ops that convert their results and name each one, with both dtypes, where they can't.
NAMED: dict[Op, tuple[str, ...]] = {}


def names_results(*functions: Any, names: tuple[str, ...] = ()) -> None:
    """Have ops say which result can't be cast to its ``out=``, as torch's linear algebra does."""
    NAMED.update({function.op: names or function.op.outputs for function in functions})


def uncastable(op: Op, position: int, given: DType, wanted: DType) -> RuntimeError:
    """Return the error for an ``out=`` that a result, which is named, can't be cast to."""
    output = NAMED[op][position]
    return RuntimeError(
        f"{op.name}(): Expected {output} to be safely castable from {scalar_type(wanted)} dtype, but "
        f"got {output} with dtype {scalar_type(given)}"
    )


def is_exact(op: Op) -> bool:
    """Return whether an op does not convert what it writes."""
    return op in EXACT


def check_own_dtype(
    op: Op, given: DType, wanted: DType, first: Any, outputs: int = 1, position: int = 0
) -> None:
    """Refuse to convert what an op does not convert, and indices that it returns for other tensors."""
    if given is wanted:
        return
    exact = EXACT.get(op)
    if exact is not None and len(op.outputs) != outputs:
        return  # max and min of two tensors are the pointwise ops
    if exact is None:
        of_others = first is not None and first._key.dtype.category > INTEGER
        refused = of_others and wanted.category == INTEGER
    else:
        # Where others are taken, those that are not are refused as of an op that converts.
        refused = given not in exact and (not exact or can_cast(wanted, given))
    if refused:
        raise unlike(op, given, wanted, position)


def fits_number(given: DType, spec: Spec) -> bool:
    """Return whether ``out=`` is of the input's dtype, or floating for a real number of complex ones."""
    own, result = spec.key.dtype, spec.outputs[0][1]
    if given is own:
        return True
    return given.category == FLOATING == result.category and own.is_complex


def unlike(op: Op, given: DType, wanted: DType, position: int = 0) -> RuntimeError:
    """Return the error for an ``out=`` of another dtype than the result's."""
    said = _UNLIKE.get(
        op, "{name}(): Expected out tensor to have dtype {words[0]}, but got {words[1]} instead"
    )
    words = [_WORDS.get(dtype.name, dtype.name) for dtype in (wanted, given)]
    kinds = scalar_type(wanted), scalar_type(given)
    return RuntimeError(
        said.format(
            wanted, given, name=op.name, kinds=kinds, words=words, output=op.outputs[position]
        )
    )


#: The names of C that torch's messages have for dtypes here, so far as this library has them too.
_WORDS = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "int16": "short",
    "int32": "int",
    "int64": "long",
}


def check_out(
    name: str,
    target: Any,
    dtype: DType,
    key: DispatchKey,
    error: type[Exception] = RuntimeError,
) -> None:
    """Refuse to write a result of some dtype and key into a tensor that can't take it."""
    if target._key.device is not key.device:
        if isinstance(target._key.runtime, RefusingRuntime):
            target._key.runtime.refuse()
        raise RuntimeError(
            f"{name}(): expected out= on {key.device}, got a tensor on {target._key.device}"
        )
    if not can_cast(dtype, target._key.dtype):
        raise error(
            f"{name}(): result type {scalar_type(dtype)} can't be cast to the desired output type "
            f"{scalar_type(target._key.dtype)}"
        )
    if target._storage is not None and overlaps(target):
        raise overlap_error(name)
