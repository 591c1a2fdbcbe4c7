"""Complex numbers from their parts, and their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device.dtypes import float16, float32, float64, scalar_type
from ..dispatch import op_registry
from ..dispatch.op_registry import composite
from ..dispatch.out_dtypes import exact_out
from ..tensor.shapes import broadcast_shapes
from .rules import check_tensor

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["complex", "imag", "polar", "real"]

_STACK = op_registry.handle("stack")
_VIEW_AS_COMPLEX = op_registry.handle("view_as_complex")
_VIEW_AS_REAL = op_registry.handle("view_as_real")
_BROADCAST = op_registry.handle("broadcast_tensors")


def _check_parts(name: str, first: Any, second: Any, labels: tuple[str, str]) -> None:
    for value, label in zip((first, second), labels, strict=True):
        check_tensor(value, name, label)
    for value in (first, second):
        if value._key.dtype not in (float16, float32, float64):
            raise RuntimeError(
                f"{name}(): Expected both inputs to be Half, Float or Double tensors but got "
                f"{scalar_type(first.dtype)} and {scalar_type(second.dtype)}"
            )
    if first._key.dtype is not second._key.dtype:
        raise RuntimeError(
            f"{name}(): Expected object of scalar type {scalar_type(first.dtype)} but got scalar type "
            f"{scalar_type(second.dtype)} for second argument"
        )


def _canonical_complex(real: Any, imag: Any) -> Any:
    _check_parts("complex", real, imag, ("real", "imag"))
    broadcast_shapes(real._shape, imag._shape)
    return real, imag


@composite(rule=_canonical_complex, method=False)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return complex numbers from their real and imaginary parts.

    Parameters
    ----------
    real, imag : Tensor
        float32, or float64, or float16, both; they broadcast.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.complex(tp.tensor([1.0]), tp.tensor([2.0]))
    tensor([1.+2.j])
    """
    return _VIEW_AS_COMPLEX.call(_STACK.call(list(_BROADCAST.call(real, imag)), -1))


@composite(method=False)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return complex numbers from their absolute values and angles.

    Parameters
    ----------
    abs, angle : Tensor
        float32, or float64, or float16, both; they broadcast.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.polar(tp.tensor([2.0]), tp.tensor([0.0]))
    tensor([2.+0.j])
    """
    _check_parts("polar", abs, angle, ("abs", "angle"))
    size: Any = abs
    turn: Any = angle
    return complex(size * turn.cos(), size * turn.sin())


@composite(method=False, view=True)
def real(input: Tensor) -> Tensor:
    """Return a view of the real parts; of a real tensor, the tensor itself.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.real(tp.tensor([1 + 2j]))
    tensor([1.])
    """
    check_tensor(input, "real")
    if not input._key.dtype.is_complex:
        return input
    return _VIEW_AS_REAL.call(input).select(-1, 0)


@composite(method=False, view=True)
def imag(input: Tensor) -> Tensor:
    """Return a view of the imaginary parts.

    Raises
    ------
    RuntimeError
        If the tensor is real.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.imag(tp.tensor([1 + 2j]))
    tensor([2.])
    """
    check_tensor(input, "imag")
    if not input._key.dtype.is_complex:
        raise RuntimeError(
            f"imag is not implemented for tensors with non-complex dtypes, got {input.dtype.name}"
        )
    return _VIEW_AS_REAL.call(input).select(-1, 1)


exact_out(
    complex,
    polar,
    said="{name}(): Expected object of scalar type {kinds[0]} but got scalar type {kinds[1]} "
    "for argument 'out'",
)
