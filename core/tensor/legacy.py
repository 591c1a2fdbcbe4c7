"""The constructors that torch had first, ``Tensor(...)``, ``LongTensor(...)``, and the names of types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from ..device.determinism import filler, fills_memory
from ..device.device import CPU, Device
from ..device.dtypes import SCALAR_TYPES, DType, as_dtype, dtype_named, get_default_dtype, shown
from ..dispatch.keys import default_device
from .base import TensorBase
from .creation import empty_of, tensor
from .predicates import is_storage, is_tensor
from .shapes import Size, as_shape, check_sizes

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "TensorType",
    "is_size",
    "legacy_of",
    "legacy_tensor",
    "legacy_types",
    "type_name",
    "type_named",
]


def legacy_tensor(*data: Any, device: Device | str | None = None) -> Tensor:
    """Return what ``tp.Tensor(...)`` does: sizes give memory, a sequence gives its numbers.

    Raises
    ------
    TypeError
        For a number that is no size.
    """
    if device is not None:
        form = "Tensor(tensor, device=device)"
        _check_legacy_device(data, Device(device), default_device().type, form)
    return _legacy(data, get_default_dtype(), device, "Tensor")


def legacy_of(
    data: tuple[Any, ...], dtype: DType, device: Device, asked: Device | str | None = None
) -> Tensor:
    """Return what ``tensor.new(...)`` does: :func:`legacy_tensor` of another dtype and device."""
    if asked is not None:
        _check_legacy_device(data, Device(asked), device.type, "tensor.new(tensor, device=device)")
    return _legacy(data, dtype, device if asked is None else asked, "new")


def _check_legacy_device(data: tuple[Any, ...], asked: Device, expected: str, form: str) -> None:
    """Raise unless a constructor that torch had first may take a device."""
    if asked.type != expected:
        raise RuntimeError(
            f"legacy constructor expects device type: {expected} but device type: {asked.type} was passed"
        )
    if len(data) == 1 and is_tensor(data[0]):
        raise RuntimeError(
            f"Legacy tensor constructor of the form {form} is not supported. Use tensor(...) or "
            "as_tensor(...) instead."
        )


def _legacy(data: tuple[Any, ...], dtype: DType, device: Device | str | None, name: str) -> Tensor:
    where = default_device() if device is None else Device(device)
    if not data:
        return empty_of((0,), dtype, where)
    only = data[0]
    if len(data) == 1 and is_storage(only):
        return empty_of((0,), dtype, where).set_(only)
    if len(data) > 1 or isinstance(only, Size) or is_size(only):
        made = empty_of(check_sizes(as_shape(data, name), name), dtype, where)
        return made.fill_(filler(dtype)) if fills_memory[0] else made
    if is_tensor(only):
        if name != "Tensor" and only._key.dtype is not dtype:
            raise TypeError(
                f"{name}(): expected a tensor of {dtype}, got {only._key.dtype}; convert it with "
                ".to()"
            )
        return only.view(only._shape) if only.requires_grad else only.detach()
    if not isinstance(only, Sequence) and not hasattr(only, "__array__"):
        raise TypeError(f"{name}(): data must be a sequence (got {type(only).__name__})")
    return tensor(only, dtype=dtype, device=where)


def is_size(value: Any) -> bool:
    """Return whether something counts elements: an int, or one of another library."""
    return isinstance(value, int) or (
        hasattr(value, "__index__")
        and not isinstance(value, TensorBase)
        and not hasattr(value, "__len__")
    )


class TensorType:
    """A constructor for one dtype, such as ``tp.LongTensor``, that ``isinstance`` takes too.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.LongTensor([1, 2])
    tensor([1, 2])
    >>> isinstance(tp.zeros(2), tp.LongTensor)
    False
    """

    def __init__(self, name: str, dtype: DType, device: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.dtype = dtype
        self.device = device

    def __call__(self, *data: Any, device: Device | str | None = None) -> Tensor:
        """Make a tensor from sizes or a sequence."""
        where = self.device if device is None else device
        if device is not None:
            form = f"{self.__name__}(tensor, device=device)"
            _check_legacy_device(data, Device(device), self.device, form)
        return _legacy(data, self.dtype, where, self.__name__)

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007  # X | Y would ask this again

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007  # as above

    def __instancecheck__(self, value: Any) -> bool:
        return (
            isinstance(value, TensorBase)
            and value._key.dtype is self.dtype
            and value._key.device.type == self.device
        )

    def __repr__(self) -> str:
        return f"<class '{_qualified(self.__name__, self.device)}'>"


_TYPE_NAMES = {name: f"{scalar_type}Tensor" for name, scalar_type in SCALAR_TYPES.items()}


def legacy_types(device: str) -> dict[str, TensorType]:
    """Return the constructors of a device type by name."""
    return {
        name: TensorType(name, dtype_named(dtype), device) for dtype, name in _TYPE_NAMES.items()
    }


def _qualified(name: str, device: str) -> str:
    return shown(name if device == CPU.type else f"{device}.{name}")


def type_name(tensor: Tensor) -> str:
    """Return the name of a tensor's type, such as ``"tensorplug.FloatTensor"``."""
    name = tensor.dtype.name
    return _qualified(_TYPE_NAMES.get(name, f"{name.capitalize()}Tensor"), tensor.device.type)


def type_named(value: Any) -> tuple[DType, Device | None]:
    """Return the dtype, and the device if one is meant, of what ``Tensor.type(...)`` takes.

    Parameters
    ----------
    value : DType, TensorType, str or ``tp.Tensor``
        A name as :func:`type_name` gives it; one that begins with ``torch.`` is taken, too. ``tp.Tensor``
        means the default dtype on "cpu".

    Raises
    ------
    ValueError
        If there is no type of that name.
    """
    if isinstance(value, TensorType):
        return value.dtype, Device(value.device)
    if isinstance(value, type) and issubclass(value, TensorBase):
        return get_default_dtype(), CPU
    if not isinstance(value, str):
        return as_dtype(value), None
    package, _, rest = value.partition(".")
    device, _, name = rest.rpartition(".")
    for dtype, known in _TYPE_NAMES.items():
        if known == name and package in ("tensorplug", "torch"):
            return dtype_named(dtype), Device(device or CPU.type)
    raise ValueError(
        f"type(): invalid type {value!r}; expected a dtype or a name like 'tensorplug.FloatTensor'"
    )
