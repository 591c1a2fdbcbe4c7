"""Moving and converting the tensors of a module."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self, cast

from tensorplug.autograd import no_grad
from tensorplug.core import Device, DType, Tensor
from tensorplug.core.device.dtypes import bfloat16, float16, float32, float64
from tensorplug.core.errors import check_flag
from tensorplug.core.ops import empty_like
from tensorplug.core.tensor.layout import check_format

from .module_base import ModuleBase
from .parameter import Parameter, is_lazy


class ModuleConversion(ModuleBase):
    """Methods that change device or dtype of all parameters and buffers, in place."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by what `fn` makes of it."""
        if recurse:
            for child in self._modules.values():
                if child is not None:
                    child._apply(fn)
        for name, parameter in self._parameters.items():
            if is_lazy(parameter):
                parameter.convert(fn)
            elif parameter is not None:
                self._parameters[name] = _converted(parameter, fn)
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                buffer.convert(fn)
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move or convert: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``.

        Only floating-point and complex tensors change their dtype. Parameters keep their identity,
        so optimizers go on working. ``to(memory_format=tp.channels_last)`` orders the memory of tensors
        of 4 and 5 dimensions.

        Raises
        ------
        TypeError
            If `dtype` is neither floating-point nor complex.

        Examples
        --------
        >>> import tensorplug as tp
        >>> tp.nn.Linear(2, 1).to(tp.float64).weight.dtype
        tensorplug.float64
        """
        options = dict(kwargs)
        memory_format = options.pop("memory_format", None)
        if memory_format is not None:
            check_format(memory_format, "to")
        device, dtype, non_blocking = _parse_to(args, options)
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may "
                "change, and some modules might not work as expected when using complex tensors as "
                "parameters or buffers.",
                UserWarning,
                stacklevel=2,
            )

        def convert(tensor: Tensor) -> Tensor:
            suits = tensor.is_floating_point() or tensor.is_complex()
            return tensor.to(
                device=device,
                dtype=dtype if suits else None,
                non_blocking=non_blocking,
                memory_format=memory_format if tensor.ndim in (4, 5) else None,
            )

        return self._apply(convert)

    def cpu(self) -> Self:
        """Move to the "cpu" device."""
        # Not by `to`: a subclass may lead its own `to` through this.
        return self._apply(lambda tensor: tensor.cpu())

    def type(self, dst_type: Any) -> Self:
        """Convert every tensor, those of integers as well."""
        if dst_type is None:  # of tensors this asks for the name
            raise TypeError("type(): dst_type must be a dtype or the name of a type, not None")
        return self._apply(lambda tensor: cast(Tensor, tensor.type(dst_type)))

    def float(self) -> Self:
        """Convert floating-point tensors to float32."""
        return self._floating(float32)

    def double(self) -> Self:
        """Convert floating-point tensors to float64."""
        return self._floating(float64)

    def half(self) -> Self:
        """Convert floating-point tensors to float16."""
        return self._floating(float16)

    def bfloat16(self) -> Self:
        """Convert floating-point tensors to bfloat16."""
        return self._floating(bfloat16)

    def _floating(self, dtype: DType) -> Self:
        return self._apply(
            lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor
        )

    def to_empty(self, *, device: Device | str | None, recurse: bool = True) -> Self:
        """Give every tensor new, uninitialised memory on a device, for example to leave "meta".

        Parameters
        ----------
        device : Device or str or None
            Where to.
        recurse : bool
            Also in the modules below.
        """
        return self._apply(lambda tensor: empty_like(tensor, device=device), recurse)

    def share_memory(self) -> Self:
        """Move every tensor to memory that other processes can share.

        Raises
        ------
        RuntimeError
            If a parameter or buffer is uninitialized: call the module first.
        """
        module = cast(Any, self)
        if any(map(is_lazy, [*module.parameters(), *module.buffers()])):
            raise RuntimeError(
                "Can't share memory on an uninitialized parameter or buffer; call the module with a batch "
                "before share_memory()"
            )

        def share(tensor: Tensor) -> Tensor:
            move = getattr(tensor, "share_memory_", None)
            if move is None:
                raise NotImplementedError(
                    f"share_memory: tensors on {tensor.device} cannot be shared between processes "
                    "yet"
                )
            return cast(Tensor, move())

        return self._apply(share)


def _converted(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> Parameter:
    """Return the parameter and its gradient with what `fn` makes of them; of another layout, a new one.

    The gradient stays the tensor that it was, too: others may hold it.
    """
    gradient = parameter.grad
    with no_grad():
        made = fn(parameter)
        made_gradient = None if gradient is None else fn(gradient)
    result = parameter
    if made.layout is not parameter.layout:
        result = Parameter(made, parameter.requires_grad)
    elif made is not parameter:
        parameter.data = made
    if gradient is None or made_gradient is None:
        return result
    if result is not parameter or made_gradient.layout is not gradient.layout:
        result.grad = made_gradient.requires_grad_(gradient.requires_grad)
    elif made_gradient is not gradient:
        gradient.data = made_gradient
    return result


def _parse_to(
    args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Device | None, DType | None, bool]:
    """Return (device, dtype, non_blocking) of a call of ``Module.to``."""
    for name, value in _by_name(args).items():
        if name in options:
            raise TypeError(f"to() got multiple values for argument {name!r}")
        options[name] = value
    device = options.pop("device", None)
    dtype = options.pop("dtype", None)
    other = options.pop("tensor", None)
    non_blocking = options.pop("non_blocking", False)
    check_flag(non_blocking, "to", "non_blocking")
    if "copy" in options:
        raise RuntimeError(".to() does not accept copy argument")
    if options:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(options))!r}")
    if other is not None:
        device, dtype = other.device, other.dtype
    if dtype is not None:
        if not isinstance(dtype, DType):
            raise TypeError(f"to(): dtype must be a tensorplug dtype, got {dtype!r}")
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
    return None if device is None else Device(device), dtype, non_blocking


_TYPES: dict[str, type | tuple[type, ...]] = {
    "device": (str, Device, type(None)),
    "dtype": (DType, type(None)),
    "tensor": Tensor,
    "non_blocking": bool,
    "copy": bool,
}


def _by_name(args: tuple[Any, ...]) -> dict[str, Any]:
    """Return the positional arguments of ``Module.to`` by name, which follow from what comes first."""
    first = args[0] if args else None
    flags = ("non_blocking", "copy")
    if isinstance(first, Tensor):
        names: tuple[str, ...] = ("tensor", *flags)
    elif isinstance(first, DType):
        names = ("dtype", *flags)
    else:
        names = ("device", "dtype", *flags)
    given: dict[str, Any] = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not all(
        isinstance(value, _TYPES[name]) for name, value in given.items()
    ):
        got = ", ".join(type(arg).__name__ for arg in args)
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({got}), but expected (device, dtype, "
            "bool non_blocking), (dtype, bool non_blocking) or (Tensor tensor, bool non_blocking)"
        )
    return given
