"""The same bytes as other numbers: complex ones as pairs, other dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device.dtypes import DType, as_dtype, float16, float32, float64
from ...dispatch.op_registry import Spec, primitive
from ..rules import check_tensor
from .strided import offset_of

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["view_as_complex", "view_as_real", "view_dtype"]


@primitive("input", view=True)
def view_as_real(input: Tensor) -> Spec:
    """Return a view of complex numbers as pairs (real, imaginary) in a new last dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.view_as_real(tp.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    check_tensor(input, "view_as_real")
    if not input.dtype.is_complex:
        raise RuntimeError(
            f"view_as_real is only supported for complex tensors, got dtype {input.dtype.name}"
        )
    return Spec((input,), (*input._shape, 2), input.dtype.to_real())


@primitive("input", view=True)
def view_as_complex(input: Tensor) -> Spec:
    """Return a view of pairs (real, imaginary), the last dimension, as complex numbers.

    Raises
    ------
    RuntimeError
        If the last dimension is not of size 2 and stride 1, or the dtype is not float16, float32 or float64.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.view_as_complex(tp.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    check_tensor(input, "view_as_complex")
    if input.dtype not in (float16, float32, float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of dtype "
            f"{input.dtype.name}"
        )
    if not input._shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input._shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got {list(input._shape)}")
    strides = input._key.runtime.strides(input._array)
    if strides[-1] != 1 and input.numel():
        raise RuntimeError(f"Tensor must have a last dimension with stride 1, got {strides[-1]}")
    if any([stride % 2 for stride in strides[:-1]]):
        raise RuntimeError(
            f"Tensor must have a stride divisible by 2 for all but last dimension, got {strides}"
        )
    if offset_of(input) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return Spec((input,), input._shape[:-1], input.dtype.to_complex())


@primitive("input, dtype", view=True, method=False)
def view_dtype(input: Tensor, dtype: DType) -> Spec:
    """Return a view of the bytes of `input` as another dtype: what ``input.view(dtype)`` calls.

    Raises
    ------
    RuntimeError
        If the element sizes differ and the last dimension is not contiguous or not divisible.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1.0]).view(tp.int32)
    tensor([1065353216], dtype=tensorplug.int32)
    """
    check_tensor(input, "view")
    dtype = as_dtype(dtype)
    old, new = input.dtype.itemsize, dtype.itemsize
    shape = input._shape
    names = f"{input.dtype.name} as {dtype.name} (different element sizes)"
    if old != new:
        if not shape:
            raise RuntimeError(f"self.dim() cannot be 0 to view {names}")
        strides = input.stride()
        if strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {names}, but got {strides[-1]}")
        if shape[-1] * old % new:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {new // old} to view {names}, but got {shape[-1]}"
            )
        if new > old:
            ratio = new // old
            if offset_of(input) % ratio:
                raise RuntimeError(
                    f"self.storage_offset() must be divisible by {ratio} to view {names}, but got "
                    f"{offset_of(input)}"
                )
            for dim, stride in enumerate(strides[:-1]):
                if stride % ratio:
                    raise RuntimeError(
                        f"self.stride({dim}) must be divisible by {ratio} to view {names}, but got {stride}"
                    )
        shape = (*shape[:-1], shape[-1] * old // new)
    return Spec((input, dtype), shape, dtype)
