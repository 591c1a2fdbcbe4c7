"""Batched tensors: tensors of which ``vmap`` hides a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeGuard

from tensorplug.core.device.meta import MetaArray
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.overrides import disabled_torch_function_impl
from tensorplug.core.tensor.base import TensorBase, bare_tensor
from tensorplug.core.tensor.tensor import Tensor

from ..transforms.levels import REQUIRES_GRAD_INSIDE, Level, state

_BASIC_INDEX = op_registry.handle("basic_index")
_ALL = slice(None)


class BatchLevel(Level):
    """One ``vmap`` at work.

    Attributes
    ----------
    size : int
        How many samples.
    randomness : {"error", "same", "different"}
        What random ops do.
    """

    def __init__(self, size: int, randomness: str = "error") -> None:
        super().__init__()
        self.size = size
        self.randomness = randomness

    def end(self) -> None:
        """Make the tensors that are left useless: without the level nobody knows the dimension they hide."""
        for tensor in self.live():
            tensor._array = _Ended()
        super().end()

    @property
    def position(self) -> int:
        """The number of levels outside of this one.

        Raises
        ------
        RuntimeError
            If the level is not at work here.
        """
        for number, level in enumerate(state.batches):
            if level is self:
                return number
        raise RuntimeError(
            "vmap: a tensor made inside of vmap is used where that vmap is not at work; return it from the "
            "function instead"
        )


def check_randomness(randomness: str) -> None:
    """Refuse random ops where the ``vmap`` was not told what they shall do."""
    if randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )


class _Ended:
    """The array of a tensor that outlived its vmap."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(
            "vmap: a tensor made inside of vmap is used after that vmap has ended; return it from the "
            "function instead"
        )


def _refused(name: str) -> Callable[..., NoReturn]:
    """Return a method that has no meaning for a part of memory that the samples share."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            f"vmap: Cannot access data pointer of Tensor that doesn't have storage: {name} is not possible "
            "inside of vmap, where a tensor shows one sample of the memory of all"
        )

    return refuse


class BatchedTensor(Tensor):
    """A tensor that shows all but one of the dimensions of another one.

    Attributes
    ----------
    value : Tensor
        The one behind, perhaps batched itself at a level further out.
    bdim : int
        The dimension that is hidden.
    level : BatchLevel
        The vmap that hides it.
    """

    _batched = True
    __torch_function__: Any = staticmethod(disabled_torch_function_impl)

    value: Any
    bdim: int
    level: BatchLevel
    #: Of a parameter that was made inside of vmap, where nothing but transforms differentiates.
    wants_grad = False

    # --- reverse mode records the tensor behind ---

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor behind are recorded."""
        return bool(self.value.requires_grad or self.wants_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Raise: transforms differentiate inside of vmap."""
        raise RuntimeError(REQUIRES_GRAD_INSIDE)

    @property
    def grad_fn(self) -> Any:
        """The node that made the tensor behind."""
        return self.value.grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor behind is a leaf."""
        return bool(self.value.is_leaf)

    def detach(self) -> Any:
        """Return a tensor over the same memory, cut off from the graph."""
        return wrap(self.value.detach(), self.bdim, self.level)

    @property
    def data(self) -> Any:
        """The same memory, without history."""
        return wrap(self.value.data, self.bdim, self.level)

    @data.setter
    def data(self, value: Any) -> None:
        raise RuntimeError("vmap: data cannot be set inside of vmap")

    def detach_(self) -> Any:
        """Cut the tensor behind off from its graph."""
        self.value.detach_()
        return self

    def register_hook(self, hook: Any) -> Any:
        """Call `hook` with the gradient of the tensor behind, as a batched tensor."""
        level, bdim = self.level, self.bdim

        def batched(gradient: Any) -> Any:
            result = hook(wrap(gradient, bdim, level))
            return None if result is None else front(result, level).movedim(0, bdim)

        return self.value.register_hook(batched)

    # --- what has no meaning for all samples at once ---

    def item(self) -> Any:
        """Raise: there is a number per sample."""
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
            ".item() on a Tensor, please try to rewrite what you're doing with other operations."
        )

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. "
            "We don't support that yet; tp.where chooses by element."
        )

    def __index__(self) -> int:
        return int(self.item())

    def tolist(self) -> Any:
        """Raise: there is a list per sample."""
        raise RuntimeError("vmap: cannot convert a batched tensor to a list inside of vmap")

    def numpy(self, *, force: bool = False) -> Any:
        """Raise: there is an array per sample."""
        raise RuntimeError("vmap: cannot convert a batched tensor to a NumPy array inside of vmap")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.numpy()

    # The memory is that of all samples.
    __dlpack__: Any = _refused("__dlpack__()")
    data_ptr: Any = _refused("data_ptr()")
    const_data_ptr: Any = data_ptr
    resize_: Any = _refused("resize_()")
    resize_as_: Any = _refused("resize_as_()")
    set_: Any = _refused("set_()")
    storage: Any = _refused("storage()")
    _typed_storage: Any = storage
    untyped_storage: Any = _refused("untyped_storage()")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.clone()

    # mypy forgets what parameters of such methods are called.
    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        depth = state.batches.index(self.level) + 1 if self.level in state.batches else "ended"
        inner = repr(self.value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={depth}, bdim={self.bdim}, value=\n    {inner}\n)"


def wrap(value: Any, bdim: int, level: BatchLevel) -> BatchedTensor:
    """Return a tensor that hides dimension `bdim` of `value`."""
    shape = value._shape
    tensor: Any = bare_tensor(BatchedTensor)
    key = value._key
    shown = shape[:bdim] + shape[bdim + 1 :]
    if key.is_meta:
        strides = key.runtime.strides(value._array)
        array = MetaArray(shown, key.dtype, strides[:bdim] + strides[bdim + 1 :])
    elif shape[bdim]:
        # One sample stands for all where memory is asked about: its strides are those of each.
        array = key.kernels[_BASIC_INDEX.index](value._array, (*((_ALL,) * bdim), 0))
    else:
        array = key.runtime.empty(shown, key.dtype, key.device.index or 0)
    tensor._array = array if type(array) is key.array_type else key.as_array(array)
    tensor._key = key
    tensor._shape = shown
    tensor._state = 0
    tensor._node = None
    tensor._writes = 0
    tensor._storage = None
    tensor._extra = None
    tensor._view = None
    tensor.value = value
    tensor.bdim = bdim
    tensor.level = level
    level.note(tensor)
    return tensor


def is_batched(value: Any, level: BatchLevel) -> TypeGuard[BatchedTensor]:
    """Return whether a value hides a dimension at a level."""
    return isinstance(value, BatchedTensor) and value.level is level


def moved(value: Any, source: int, target: int) -> Any:
    """Return a view with one dimension moved."""
    if source == target:
        return value
    order = [d for d in range(len(value._shape)) if d != source]
    order.insert(target, source)
    return value.permute(tuple(order))


def front(value: Any, level: BatchLevel) -> Any:
    """Return the tensor behind with the hidden dimension first; any other tensor expanded to have one."""
    if is_batched(value, level):
        return moved(value.value, value.bdim, 0)
    return value.expand((level.size, *value._shape))


def ordinary(tensor: Any) -> Any:
    """Return the tensor behind all batching."""
    while isinstance(tensor, BatchedTensor):
        tensor = tensor.value
    return tensor


def same_value(a: TensorBase, b: TensorBase) -> bool:
    """Return whether two tensors are one, seen through batching."""
    while isinstance(a, BatchedTensor) and isinstance(b, BatchedTensor) and a.level is b.level:
        a, b = a.value, b.value
    return a is b
