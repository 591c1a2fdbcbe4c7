"""The state of a tensor, and how one is made.

Every attribute that an op reads or writes on the hot path is a slot here; what few tensors have
(a gradient, hooks) is together in one lazily made :class:`Extra`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dispatch.keys import DispatchKey
from .shapes import Shape

# Values of ``_state``. A view of a tensor that requires no grad must ask its base each time, because an
# in-place op on the base or on another view can change the answer.
PLAIN, TRACKED, VIEW = 0, 1, 2


class Storage:
    """What tensors over the same memory share: the version counter.

    A tensor that shares with nobody counts in its own slot; the Storage is made when the first view is.
    """

    __slots__ = ("__weakref__", "mirror", "version")

    # Other memory that shows the conjugate of this one, or is shown so, see :mod:`.mirrors`.
    mirror: Any

    def __init__(self, version: int) -> None:
        self.version = version
        self.mirror = None


class Extra:
    """Attributes of a tensor that most tensors never have."""

    __slots__ = (
        "accumulation_hooks", "accumulation_metadata", "backward_hooks", "grad", "inference", "name",
        "output_nr", "post_accumulate_hooks", "retains_grad",
    )  # fmt: skip

    grad: Any
    # Before and after gradients are added to a leaf's `grad`: those of its AccumulateGrad node.
    accumulation_hooks: tuple[dict[int, Any], dict[int, Any]] | None
    accumulation_metadata: dict[Any, Any] | None
    backward_hooks: dict[int, Any] | None
    post_accumulate_hooks: dict[int, Any] | None
    retains_grad: bool
    output_nr: int
    name: str | None
    inference: bool


class TensorBase:
    """The slots of a tensor. Users meet :class:`~tensorplug.Tensor`."""

    __slots__ = (
        "_array", "_extra", "_key", "_node", "_shape", "_state", "_storage", "_view", "_writes",
    )  # fmt: skip

    _array: Any
    _key: DispatchKey
    _shape: Shape
    _state: int
    _node: Any
    _writes: int
    _storage: Storage | None
    _extra: Extra | None
    # What the gradient layer knows of a view; None of any other tensor.
    _view: Any


# The class that ops return.
tensor_class: type[Any] = TensorBase
# Makes an object of a class without calling its __new__; compiled, a C function, see tensor_base.pxd.
blank: Callable[[type[Any]], Any]


def set_tensor_class(made: type[Any]) -> None:
    """Have ops return objects of this class."""
    global tensor_class
    tensor_class = made


def bare_tensor(cls: type[Any]) -> Any:
    """Return a tensor of a class whose slots are still to be set."""
    return blank(cls)


def unset_tensor() -> Any:
    """Return a new tensor whose slots are still to be set."""
    return blank(tensor_class)


def new_tensor(array: Any, key: DispatchKey, shape: Shape) -> Any:
    """Return a tensor over `array`, which must be of `key.array_type` and of `shape`."""
    tensor = blank(tensor_class)
    tensor._array = array
    tensor._key = key
    tensor._shape = shape
    tensor._state = 0
    tensor._node = None
    tensor._writes = 0
    tensor._storage = None
    tensor._extra = None
    tensor._view = None
    return tensor


def wrap(array: Any, key: DispatchKey) -> Any:
    """Return a tensor over a kernel's result."""
    if type(array) is not key.array_type:
        array = key.as_array(array)
    return new_tensor(array, key, tuple(array.shape))


def extra_of(tensor: TensorBase) -> Extra:
    """Return the tensor's Extra, made now if need be."""
    extra = tensor._extra
    if extra is None:
        extra = tensor._extra = Extra()
        extra.grad = extra.name = extra.accumulation_metadata = None
        extra.accumulation_hooks = extra.backward_hooks = extra.post_accumulate_hooks = None
        extra.retains_grad = extra.inference = False
        extra.output_nr = 0
    return extra


def storage_of(tensor: TensorBase) -> Storage:
    """Return the tensor's Storage, made now if need be."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage(tensor._writes)
    return storage


def version_of(tensor: TensorBase) -> int:
    """Return how often the tensor's memory was written to in place."""
    storage = tensor._storage
    return tensor._writes if storage is None else storage.version


def bump_version(tensor: TensorBase) -> None:
    """Count one in-place write, and carry it over to memory that shows the conjugate."""
    storage = tensor._storage
    if storage is None:
        tensor._writes += 1
        return
    storage.version += 1
    if storage.mirror is not None and not storage.mirror.busy:
        storage.mirror.carry_over(storage)
