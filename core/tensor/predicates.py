"""Predicates of tensors and dtypes that are no ops."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from ..device.dtypes import DType, Number, result_dtype
from ..errors import type_name
from .base import TensorBase

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from .tensor import Tensor
else:
    from typing import TypeGuard as TypeIs  # for typing.get_type_hints

__all__ = [
    "get_device",
    "is_complex",
    "is_floating_point",
    "is_inference",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "numel",
    "result_type",
    "typename",
]


def _checked(input: Any, name: str) -> Tensor:
    if not is_tensor(input):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type_name(input)}")
    return input


def all_samples(tensor: Any) -> Any:
    """Return a tensor with all the samples that ``vmap`` hides, for what depends on all their values.

    The dimensions of the samples may be anywhere, so that others are no longer where they were.
    """
    while tensor._batched:
        tensor = tensor.value
    return tensor


def any_in_samples(tensor: Any) -> bool:
    """Return whether an element is true, in any of the samples that ``vmap`` hides."""
    every = all_samples(tensor)
    return bool(every.any() if every.ndim else every)


def largest_in_samples(tensor: Any) -> Any:
    """Return the largest element, as a number, of all the samples that ``vmap`` hides."""
    every = all_samples(tensor)
    return (every.max() if every.ndim else every).item()


def is_tensor(obj: Any) -> TypeIs[Tensor]:
    """Return whether `obj` is a tensor.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.is_tensor([1.0])
    False
    """
    return isinstance(obj, TensorBase)


def is_storage(obj: Any) -> bool:
    """Return whether `obj` is a storage.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.is_storage(tp.zeros(1).untyped_storage()), tp.is_storage(tp.zeros(1))
    (True, False)
    """
    from .storages import UntypedStorage  # on first use: saves import time
    from .typed_storages import TypedStorage  # on first use: saves import time

    return isinstance(obj, (TypedStorage, UntypedStorage))


def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype of `input` is a floating-point one."""
    return _checked(input, "is_floating_point").is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Return whether the dtype of `input` is a complex one."""
    return _checked(input, "is_complex").is_complex()


def is_signed(input: Tensor) -> bool:
    """Return whether the dtype of `input` has a sign."""
    return _checked(input, "is_signed").is_signed()


def is_inference(input: Tensor) -> bool:
    """Return whether `input` was made in inference mode."""
    return _checked(input, "is_inference").is_inference()


def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element of `input` is not zero.

    Raises
    ------
    RuntimeError
        If there is not exactly one element.
    """
    return bool(_checked(input, "is_nonzero"))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape."""
    return _checked(input, "is_same_size")._shape == _checked(other, "is_same_size")._shape


def numel(input: Tensor) -> int:
    """Return the number of elements of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.numel(tp.zeros(2, 3))
    6
    """
    return _checked(input, "numel").numel()


def get_device(input: Tensor) -> int:
    """Return the index of the device of `input`; -1 where there is one device without an index."""
    index = _checked(input, "get_device").device.index
    return -1 if index is None else index


def result_type(tensor1: Tensor | Number, tensor2: Tensor | Number) -> DType:
    """Return the dtype of an arithmetic op over two tensors or numbers.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.result_type(tp.tensor([1, 2], dtype=tp.int32), 1.0)
    tensorplug.float32
    """
    for place, value in enumerate((tensor1, tensor2), 1):
        if not isinstance(value, (TensorBase, numbers.Number)):
            raise TypeError(
                f"result_type(): argument 'tensor{place}' must be Tensor or Number, not {type_name(value)}"
            )
    return result_dtype((tensor1, tensor2))


def typename(obj: Any) -> str:
    """Return the name of the type of a tensor, or of any object, with its module.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.typename(tp.zeros(1))
    'tensorplug.FloatTensor'
    """
    if is_tensor(obj):
        name: str = obj.type()
        return name
    key = obj if isinstance(obj, type) else type(obj)
    module = "" if key.__module__ == "builtins" else f"{key.__module__}."
    return module + key.__qualname__
