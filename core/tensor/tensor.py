"""The Tensor class; what concerns autograd, and other devices and libraries, is in its bases.

The methods that are ops (``sum``, ``reshape``, ``add_`` …) come from the declarations in :mod:`.ops`; for
type checkers and editors they are listed in :mod:`.methods`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ..device.device import Device
from ..device.dtypes import DType
from ..dispatch import composite_calls, execution, fast_path, op_registry
from ..dispatch.fast_path import is_operand
from ..dispatch.state import dispatch_state
from . import base
from .base import TensorBase
from .conversion import Exchange
from .creation import legacy_tensor
from .layout import check_format, contiguous_format, in_format
from .shapes import Shape, Size, normalize_dim

_handle = op_registry.handle
ADJOINT = _handle("adjoint")
MATRIX_H = _handle("matrix_H")
REAL = _handle("real")
IMAG = _handle("imag")
PERMUTE = _handle("permute")
TRANSPOSE = _handle("transpose")
VIEW = _handle("view")
VIEW_DTYPE = _handle("view_dtype")


@functools.cache
def _reversed(ndim: int) -> tuple[Shape]:
    """Return the arguments of the permutation that reverses so many dimensions."""
    return (tuple(range(ndim))[::-1],)


class Tensor(Exchange):
    """A multi-dimensional array on a device that records operations for differentiation.

    Tensors are made by ``tp.tensor``, ``tp.zeros`` and the like, or as results of ops.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 4.],
            [6., 8.]])
    """

    __slots__ = ("__dict__", "__weakref__")

    # What the functional transforms of autograd tell tensors by: whether a dimension is hidden, and the
    # tangents of forward mode, by level.
    _batched = False
    _tangents: Any = None

    __array_priority__ = 1000  # NumPy arrays leave binary operators to us
    __array_ufunc__: Any = None

    if TYPE_CHECKING:  # see Operators

        def __radd__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __rlshift__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __rrshift__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...

    def __new__(cls, *data: Any, device: Device | str | None = None) -> Self:
        """Build a tensor of the default dtype from sizes or a sequence, as ``torch.Tensor`` does."""
        made: Any = legacy_tensor(*data, device=device)
        result: Self = made if cls is Tensor else made.as_subclass(cls)
        return result

    # --- what it is ---

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return Size(self._shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the size of all dimensions, or of one."""
        if dim is None:
            return Size(self._shape)
        if not self._shape:
            raise IndexError(f"size(): a 0-d tensor has no dimension {dim}")
        return self._shape[normalize_dim(dim, len(self._shape), "size")]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._shape)

    ndimension = dim

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self._shape)

    nelement = numel

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._key.dtype

    @property
    def device(self) -> Device:
        """Where the data lives."""
        return self._key.device

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._key.dtype.itemsize

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self._key.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self._key.dtype.itemsize

    @property
    def is_meta(self) -> bool:
        """Whether the tensor is on the "meta" device, without data."""
        return self._key.is_meta

    def is_floating_point(self) -> bool:
        """Return whether the dtype is a floating-point one."""
        return self._key.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return whether the dtype is a complex one."""
        return self._key.dtype.is_complex

    def is_signed(self) -> bool:
        """Return whether the dtype has a sign."""
        return self._key.dtype.is_signed

    # --- memory ---

    def stride(self, dim: int | None = None) -> Any:
        """Return the step in memory, in elements, along all dimensions or one."""
        strides = self._key.runtime.strides(self._array)
        if dim is None:
            return strides
        return strides[normalize_dim(dim, len(self._shape), "stride")]

    def storage_offset(self) -> int:
        """Return how many elements of the storage lie before the first of this tensor."""
        return self._key.runtime.storage_offset(self._array)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._key.runtime.data_pointer(self._array)

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Return whether the elements lie in memory in the order of a format, without gaps."""
        if memory_format is contiguous_format:
            return self._key.runtime.is_contiguous(self._array)
        check_format(memory_format, "is_contiguous")
        return in_format(self._shape, self.stride(), memory_format)

    def is_set_to(self, tensor: Tensor) -> bool:
        """Return whether both show the same memory in the same way."""
        return (
            self._key is tensor._key
            and self._shape == tensor._shape
            and self.stride() == tensor.stride()
            and self.data_ptr() == tensor.data_ptr()
        )

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of, or None."""
        view = None if self._extra is None else self._extra.view
        return None if view is None else view.base

    def _is_view(self) -> bool:
        return self._base is not None

    # --- views ---

    def view(self, *shape: Any, dtype: DType | None = None, size: Any = None) -> Tensor:
        """Return the same memory in another shape, ``view(2, -1)``, or as another dtype, ``view(tp.int32)``.

        Raises
        ------
        RuntimeError
            If the sizes do not fit, or no strides show the memory so; ``reshape`` copies then.
        """
        if dtype is None and len(shape) == 1 and isinstance(shape[0], DType):
            dtype = shape[0]
        if dtype is not None:
            return VIEW_DTYPE.call(self, dtype)
        return VIEW.call(self, *shape) if size is None else VIEW.call(self, size)

    @property
    def T(self) -> Tensor:
        """A view with all dimensions in reverse order."""
        shape = self._shape
        return execution.show(PERMUTE, self, _reversed(len(shape)), shape[::-1])

    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions exchanged."""
        if len(self._shape) < 2:
            raise RuntimeError(
                "tensor.mT is only supported on matrices or batches of matrices. Got "
                f"{len(self._shape)}-D tensor."
            )
        return TRANSPOSE.call(self, -2, -1)

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
        return MATRIX_H.call(self)

    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of a matrix or of each matrix of a batch."""
        return ADJOINT.call(self)

    # --- parts of complex numbers ---

    @property
    def real(self) -> Tensor:
        """The real parts, a view; the tensor itself if it is real."""
        return REAL.call(self)

    @real.setter
    def real(self, value: Any) -> None:
        self.real.copy_(value)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, a view."""
        return IMAG.call(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag.copy_(value)

    # --- container ---

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, element: Any) -> bool:
        if not is_operand(element):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        return bool((self == element).any().item())

    # --- Python values ---

    def item(self) -> Any:
        """Return the only element as a Python number.

        Raises
        ------
        RuntimeError
            If there is not exactly one element.
        """
        if math.prod(self._shape) != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self._key.runtime.to_host(self._array).item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return self._key.runtime.to_host(self._array).tolist()

    def __bool__(self) -> bool:
        if math.prod(self._shape) != 1:
            raise RuntimeError(
                f"Boolean value of Tensor with {'no' if not self.numel() else 'more than one'} "
                f"value{'s' if not self.numel() else ''} is ambiguous"
            )
        return bool(self.item())

    def _number(self) -> Any:
        if math.prod(self._shape) != 1:  # ValueError, as in torch, where item() raises RuntimeError
            raise ValueError(
                "only one element tensors can be converted to Python scalars, got "
                f"{self.numel()} elements"
            )
        return self.item()

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.dtype.category > 1 or self._shape:
            raise TypeError(
                "only integer tensors of a single element can be converted to an index, got "
                f"{self.dtype} of shape {list(self._shape)}"
            )
        return int(self.item())

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        from .printing import tensor_repr  # on first use: it needs this module

        return tensor_repr(self, contents=tensor_contents)

    def __format__(self, spec: str) -> str:
        if not self._shape and type(self) is Tensor:
            return format(self.item(), spec)
        return object.__format__(self, spec)


def _add_method(name: str, function: Callable[..., Any]) -> bool:
    """Add a method; return False if there is one of that name, such as a hand-written form."""
    if hasattr(Tensor, name):
        return False
    setattr(Tensor, name, function)
    return True


def _remove_method(name: str, function: Callable[..., Any]) -> None:
    if Tensor.__dict__.get(name) is function:
        delattr(Tensor, name)


base.set_tensor_class(Tensor)
# As Python, isinstance is quickest with an object's own class, and a call of one function than of two.
fast_path.TensorBase = Tensor  # type: ignore[attr-defined]
fast_path.unset_tensor = functools.partial(TensorBase.__new__, Tensor)  # type: ignore[attr-defined]
composite_calls.unset_tensor = fast_path.unset_tensor  # type: ignore[attr-defined]
base.blank = TensorBase.__new__
dispatch_state.add_method = _add_method
dispatch_state.remove_method = _remove_method
