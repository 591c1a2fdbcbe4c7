"""Parameters and buffers: the tensors that a module owns."""

from __future__ import annotations

from typing import Any, Self

from tensorplug.core import Tensor
from tensorplug.core.ops import empty


class _Owned(Tensor):
    """A tensor class whose instances are made from a tensor and share its memory."""

    __slots__ = ()

    @classmethod
    def _over(cls, data: Any, requires_grad: bool) -> Self:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"{cls.__name__}(): argument 'data' must be Tensor, not {type(data).__name__}"
            )
        owned: Self = data.detach().as_subclass(cls)
        if requires_grad:
            owned.requires_grad_()
        return owned


class Parameter(_Owned):
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
        return cls._over(data, requires_grad)

    def __repr__(self) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        attributes = self.__dict__ or None
        return _rebuild_parameter, (type(self), self.detach(), self.requires_grad, attributes)


class Buffer(_Owned):
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
        buffer = cls._over(data, False)
        buffer.persistent = persistent
        return buffer

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_parameter, (type(self), self.detach(), False, self.__dict__ or None)


def _rebuild_parameter(
    cls: type[_Owned], data: Tensor, requires_grad: bool, attributes: dict[str, Any] | None
) -> _Owned:
    owned = cls._over(data, requires_grad)
    if attributes:
        owned.__dict__.update(attributes)
    return owned
