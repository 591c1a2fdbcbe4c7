"""Parameters and buffers: the tensors that a module owns."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self, TypeGuard, cast

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.dispatch.layers import recording
from tensorplug.core.dispatch.overrides import disabled_torch_function_impl
from tensorplug.core.errors import check_flag, type_name
from tensorplug.core.ops import empty
from tensorplug.core.tensor.copies import of_class
from tensorplug.core.tensor.uninitialized import refuse_ops


class _Owned(Tensor):
    """A tensor class whose instances are made from a tensor and share its memory."""

    __slots__ = ()
    __torch_function__: Any = staticmethod(disabled_torch_function_impl)

    @classmethod
    def _over(cls, data: Any, requires_grad: bool) -> Self:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"{cls.__name__}(): argument 'data' must be Tensor, not {type_name(data)}"
            )
        owned: Self = of_class(data.detach(), cls)
        if requires_grad:
            if data.is_inference() and not recording.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed; "
                    "make a normal tensor with clone()"
                )
            owned.requires_grad_()
        return owned


def _is_of_own_class(data: Any) -> TypeGuard[Tensor]:
    """Return whether data is a tensor of somebody's own class, which stays what it is."""
    return isinstance(data, Tensor) and type(data) is not Tensor and not isinstance(data, _Owned)


class _OwnedType(type):
    """Has tensors of classes of their own be parameters or buffers: no other class is put over them."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        mark = _MARKS.get(cls)
        return bool(mark and isinstance(instance, Tensor) and instance.__dict__.get(mark))


class Parameter(_Owned, metaclass=_OwnedType):
    """A tensor that a module registers as its parameter when it is assigned as an attribute.

    Parameters
    ----------
    data : Tensor, optional
        The values; memory is shared. By default an empty tensor.
    requires_grad : bool
        Whether gradients are computed for it.

    Raises
    ------
    TypeError
        If `data` is not a tensor.
    RuntimeError
        If gradients are asked for of a dtype that is neither floating-point nor complex.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nn.Parameter(tp.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        """Make a parameter over the memory of `data`."""
        check_flag(requires_grad, "Parameter", "requires_grad")
        if _is_of_own_class(data):
            given: Any = data
            made: Any = given.detach()
            if given._batched:
                made.wants_grad = requires_grad
            else:
                made.requires_grad_(requires_grad)
            if type(made) is not type(data):
                raise RuntimeError(
                    f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
                    "detach() returns an instance of the same type, but return type "
                    f"{type(made).__name__} was found instead"
                )
            made.__dict__["_is_param"] = True
            return cast("Self", made)
        return cls._over(data, requires_grad)

    def __repr__(self) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) in memo:
            return memo[id(self)]
        # Memory of its own and no gradient, as in torch: an optimizer would step along that of the original.
        result: Any = self._over(self.detach().clone(), self.requires_grad)
        memo[id(self)] = result
        Tensor.__setstate__(result, deepcopy(Tensor.__getstate__(self), memo))
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = self.__getstate__() or None
        return _rebuild_parameter, (type(self), self.detach(), self.requires_grad, state)


class Buffer(_Owned, metaclass=_OwnedType):
    """A tensor that a module registers as a buffer when it is assigned as an attribute.

    Parameters
    ----------
    data : Tensor, optional
        The values; memory is shared.
    persistent : bool
        Whether the buffer is part of the module's ``state_dict``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> module = tp.nn.Module()
    >>> module.mean = tp.nn.Buffer(tp.zeros(2))
    >>> [name for name, _ in module.named_buffers()]
    ['mean']
    """

    __slots__ = ()
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        """Make a buffer over the memory of `data`."""
        buffer: Any
        if _is_of_own_class(data):
            buffer = data.detach()
            buffer.__dict__["_is_buffer"] = True
        else:
            buffer = cls._over(data, False)
        buffer.persistent = persistent
        return buffer

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_parameter, (type(self), self.detach(), False, self.__getstate__() or None)


#: What instances of other classes have that are parameters, or buffers.
_MARKS: dict[type, str] = {Parameter: "_is_param", Buffer: "_is_buffer"}


class _NoShapeError(RuntimeError, ValueError):
    """Raised for the shape of an uninitialized parameter: in torch the latter by ops, the former by it."""


class UninitializedTensor:
    """What a parameter and a buffer have in common whose shape is not known yet.

    Computing with one raises ValueError.
    """

    __slots__ = ()

    @classmethod
    def _made(cls, requires_grad: bool, device: Device | str | None, dtype: DType | None) -> Any:
        data = empty(0, device=device, dtype=dtype)
        owned = cast(Any, cls)._over(data, requires_grad)
        owned._place = data.device
        reason = (
            "Attempted to use an uninitialized parameter in a computation. Parameters of lazy modules, and "
            f"tensorplug.nn.{cls.__name__} objects, have no shape until the module is called: call it with "
            "a batch first, or materialize(shape) the parameter"
        )
        refuse_ops(owned, ValueError, reason)
        return owned

    def convert(self, fn: Callable[[Tensor], Tensor]) -> None:
        """Take over the device and the dtype that `fn` gives a tensor."""
        tensor: Any = self
        like = fn(empty(0, device=tensor.device, dtype=tensor.dtype))
        made = self._made(False, like.device, like.dtype)
        tensor.data = made
        tensor._place = like.device

    @property
    def device(self) -> Device:
        """Where it will be made."""
        index: Device = cast(Any, self)._place
        return index

    @property
    def is_meta(self) -> bool:
        """Whether it will be made without memory."""
        return self.device.type == "meta"

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        """Raise ValueError, where no op would."""
        cast(Any, self)._key.runtime.refuse()

    detach = numpy = _refuse

    def materialize(
        self, shape: Any, device: Device | str | None = None, dtype: DType | None = None
    ) -> None:
        """Give it a shape, and memory that is not filled in; from then on it is an ordinary one.

        Parameters
        ----------
        shape : tuple of int
            The shape.
        device, dtype
            By default as they were given.
        """
        tensor: Any = self
        tensor.data = empty(
            shape, device=device or tensor.device, dtype=tensor.dtype if dtype is None else dtype
        )
        del tensor._place
        tensor.__class__ = Parameter if isinstance(self, Parameter) else Buffer

    @property
    def shape(self) -> Any:
        """There is none yet."""
        raise _NoShapeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
            "in `load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensor, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet.

    Parameters
    ----------
    requires_grad : bool
        Whether gradients are computed for it.
    device : Device or str, optional
        Where it will be made.
    dtype : DType, optional
        Of which dtype.

    Examples
    --------
    >>> import tensorplug as tp
    >>> parameter = UninitializedParameter()
    >>> parameter.materialize((2, 3))
    >>> type(parameter).__name__, parameter.shape
    ('Parameter', Size([2, 3]))
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(
        cls,
        requires_grad: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> Self:
        """Make one without elements."""
        made: Self = cls._made(requires_grad, device, dtype)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self)(self.requires_grad, self.device, self.dtype)


class UninitializedBuffer(UninitializedTensor, Buffer):  # type: ignore[misc]
    """A buffer whose shape is not known yet; see :class:`UninitializedParameter`."""

    __slots__ = ()
    cls_to_become = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
        persistent: bool = True,
    ) -> Self:
        """Make one without elements."""
        buffer: Self = cls._made(requires_grad, device, dtype)
        buffer.persistent = persistent
        return buffer

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype, self.persistent)

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self)(self.requires_grad, self.device, self.dtype, self.persistent)


def is_lazy(tensor: Any) -> TypeGuard[UninitializedTensor]:
    """Return whether the tensor's shape is not known yet."""
    return isinstance(tensor, UninitializedTensor)


def _rebuild_parameter(cls: type[_Owned], data: Tensor, requires_grad: bool, state: Any) -> _Owned:
    owned = cls._over(data, requires_grad)
    if state:
        owned.__setstate__(state)
    return owned
