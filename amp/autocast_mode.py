"""The contexts in which ops compute in half precision where that is safe."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self, TypeVar, overload

from tensorplug.core import Tensor
from tensorplug.core.contexts import Context, thread
from tensorplug.core.device.dtypes import DType, bfloat16, float16
from tensorplug.core.dispatch.counts import count_layers
from tensorplug.core.dispatch.layers import note_opaque, note_setting, with_layer
from tensorplug.core.errors import DeviceNotAvailableError, check_flag
from tensorplug.core.plugins import discovery

from .layer import convert, default_dtype, layer, type_of

F = TypeVar("F", bound=Callable[..., Any])


class autocast(Context):
    """Have ops compute in half precision where that is safe, within a ``with`` block or a function.

    Matrix products and convolutions get their inputs in `dtype`; losses and what else needs the range or the
    precision get float32; where several tensors meet, the widest wins. float64 is left alone, and so are
    in-place ops and ``out=``. Use it around the forward pass and the loss, not around ``backward``.

    Parameters
    ----------
    device_type : str
        The device type whose tensors are converted.
    dtype : DType, optional
        bfloat16 or float16; by default what the device's runtime prefers, bfloat16 on "cpu".
    enabled : bool
        False switches it off, also within another context.
    cache_enabled : bool, optional
        Whether the converted parameters are kept until the outermost context ends.

    Raises
    ------
    ValueError
        If `device_type` is no string.
    TypeError
        If a flag is no bool.
    RuntimeError
        If it names no device type.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.ones(2, 2)
    >>> with tp.autocast("cpu", dtype=tp.bfloat16):
    ...     product = a @ a
    ...     total = a + 1
    >>> product.dtype, total.dtype
    (tensorplug.bfloat16, tensorplug.float32)

    As a decorator:

    >>> @tp.autocast("cpu")
    ... def square(x):
    ...     return x @ x
    >>> square(a).dtype
    tensorplug.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = type_of(device_type)
        flags: dict[str, Any] = {"enabled": enabled}
        if cache_enabled is not None:
            flags["cache_enabled"] = cache_enabled
        for name, flag in flags.items():
            if not isinstance(flag, bool):
                raise TypeError(f"autocast(): {name} must be a bool, got {flag!r}")
        self._enabled = enabled
        self._cache_enabled = cache_enabled
        self.fast_dtype: DType = bfloat16 if dtype is None else dtype
        if not self._enabled:
            return
        if not is_autocast_available(self.device):
            warnings.warn(
                f"autocast for device type {self.device!r} has no effect: no such device can be used here",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False
            return
        if dtype is None:
            self.fast_dtype = get_autocast_dtype(self.device)
        elif dtype not in (bfloat16, float16):
            warnings.warn(
                f"autocast computes in bfloat16 or float16, not in {dtype}; it is off",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False

    def _changes(self) -> dict[str, Any]:
        known = thread.autocast
        settings = replace(
            known,
            enabled=known.enabled | {self.device: self._enabled},
            cache={} if known.cache is None else known.cache,
        )
        if self._cache_enabled is not None:
            settings = replace(settings, cache_enabled=self._cache_enabled)
        if not self._enabled:
            return {"autocast": settings}
        settings = replace(settings, dtypes=known.dtypes | {self.device: self.fast_dtype})
        return count_layers() | {"autocast": settings, "stack": with_layer(thread.stack, layer)}

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __call__(self, function: F) -> F:
        """Return `function` with the context around each of its calls."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        decorated: Any = wrapper
        return decorated


def is_autocast_available(device_type: str) -> bool:
    """Return whether tensors of a device type can be autocast, which means that one can be used.

    Raises
    ------
    RuntimeError
        If that is no device type.
    """
    try:
        return discovery.find_runtime(type_of(device_type)).unavailable_reason() is None
    except DeviceNotAvailableError:
        return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether autocast is on in this thread, for a device type or for any.

    Examples
    --------
    >>> import tensorplug as tp
    >>> with tp.autocast("cpu"):
    ...     tp.is_autocast_enabled("cpu")
    True
    """
    if device_type is None:
        return any(thread.autocast.enabled.values())
    on: bool = thread.autocast.enabled.get(type_of(device_type), False)
    return on


def get_autocast_dtype(device_type: str) -> DType:
    """Return the dtype that autocast computes in on a device type.

    Raises
    ------
    DeviceNotAvailableError
        If there is no such device.
    """
    device = type_of(device_type)
    note_setting(default_dtype, device)
    return default_dtype(device)


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the dtype that autocast computes in on a device type, in this thread."""
    note_opaque("set_autocast_dtype()")
    known = thread.autocast
    thread.autocast = replace(known, dtypes=known.dtypes | {type_of(device_type): dtype})


def is_autocast_cache_enabled() -> bool:
    """Return whether converted parameters are kept until the outermost context ends."""
    on: bool = thread.autocast.cache_enabled
    return on


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether converted parameters are kept until the outermost context ends."""
    check_flag(enabled, "set_autocast_cache_enabled", "enabled")
    note_opaque("set_autocast_cache_enabled()")
    thread.autocast = replace(thread.autocast, cache_enabled=enabled)


def clear_autocast_cache() -> None:
    """Drop the converted parameters that are kept."""
    if thread.autocast.cache is not None:
        thread.autocast.cache.clear()


# --- custom functions -------------------------------------------------------------------------


@overload
def custom_fwd(fwd: F, *, device_type: str, cast_inputs: DType | None = None) -> F: ...
@overload
def custom_fwd(
    fwd: None = None, *, device_type: str, cast_inputs: DType | None = None
) -> Callable[[F], F]: ...
def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """Mark the ``forward`` of an :class:`autograd.Function` as one that knows of autocast.

    Parameters
    ----------
    fwd : callable
        The static method ``forward(ctx, …)``.
    device_type : str
        The device type whose tensors are meant.
    cast_inputs : DType, optional
        What floating-point tensors become where autocast is on; it is off within ``forward`` then.
        Without it, ``forward`` runs under the autocast that it is called in.
    """
    device = type_of(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        on = is_autocast_enabled(device)
        ctx._autocast_dtype = get_autocast_dtype(device) if on else None
        ctx._autocast_on = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device, enabled=False):
            return fwd(
                ctx,
                *[convert(arg, device, cast_inputs) for arg in args],
                **{name: convert(value, device, cast_inputs) for name, value in kwargs.items()},
            )

    return forward


@overload
def custom_bwd(bwd: F, *, device_type: str) -> F: ...
@overload
def custom_bwd(bwd: None = None, *, device_type: str) -> Callable[[F], F]: ...
def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Mark the ``backward`` that belongs to a ``forward`` with :func:`custom_fwd`.

    It runs under the autocast that ``forward`` ran under.
    """
    device = type_of(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device)

    @functools.wraps(bwd)
    def backward(ctx: Any, *grads: Tensor) -> Any:
        with autocast(device, dtype=ctx._autocast_dtype, enabled=ctx._autocast_on):
            return bwd(ctx, *grads)

    return backward


class _Restored(Context):
    """Autocast, for all device types, as it was."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings

    def _changes(self) -> dict[str, Any]:
        known = thread.autocast.cache
        settings = replace(self._settings, cache={} if known is None else known)
        if not any(settings.enabled.values()):
            return {"autocast": settings}
        return count_layers() | {"autocast": settings, "stack": with_layer(thread.stack, layer)}


def saved_autocast() -> Callable[[], Context]:
    """Return what makes contexts in which autocast is as it is now."""
    return functools.partial(_Restored, thread.autocast)
