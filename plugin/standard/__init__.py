"""An array library as a device: :func:`array_api_backend`."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import numpy as np

from tensorplug.core.device.dtypes import DType, bfloat16, bool_, float16, float32, int64
from tensorplug.core.device.runtime import DeviceRuntime
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.kernel_registry import Kernel
from tensorplug.core.plugins import hookimpl
from tensorplug.core.tensor.shapes import Shape

from ..host_kernels import host_kernels
from ..strided import view_kernels, view_layout
from ..tables import KernelTable
from .kernels import FLOATS, HALVES, REQUIRED, add_kernels
from .runtime import ArrayApiRuntime
from .stores import StoredArray, layout_of, relaid

__all__ = ["ArrayApiBackend", "ArrayApiRuntime", "array_api_backend"]

F = TypeVar("F", bound=Callable[..., Any])


class ArrayApiBackend:
    """The plugin that :func:`array_api_backend` makes; an entry point can name it.

    Attributes
    ----------
    name : str
        The plugin's name.
    runtime : ArrayApiRuntime
        The device's; its ``expected_failures`` and ``capabilities`` may be set.
    """

    def __init__(self, name: str, runtime: ArrayApiRuntime) -> None:
        self.name = name
        self.runtime = runtime
        self._own = KernelTable(runtime.type, priority=1)

    def kernel(
        self,
        op: str | None = None,
        *,
        dtypes: Iterable[DType] | None = None,
        writes: bool = False,
    ) -> Callable[[F], F]:
        """Add the decorated function as a kernel that wins over those of the adapter.

        It sees the library's own arrays and plain values, and returns arrays; it must not write to
        its arguments.

        Parameters
        ----------
        op : str, optional
            The op; by default the function's name.
        dtypes : iterable of DType, optional
            Those it takes; by default all that the library has.
        writes : bool
            Whether it is of an op that writes to its arguments: it then sees the device's arrays, of
            which ``runtime.read`` gives the library's and to which ``runtime.write`` writes, and
            returns what the op returns as ``runtime.new`` makes it.
        """

        def decorate(function: F) -> F:
            taken = self.runtime.natives if dtypes is None else dtypes
            name = op or function.__name__
            out = not writes and _pointwise(name)
            kernel = function if writes else self._wrapped(function, out)
            self._own.add(name, kernel, dtypes=taken, out=out)
            return function

        return decorate

    @hookimpl
    def tensorplug_devices(self) -> Iterable[DeviceRuntime]:
        """Return the runtime."""
        return [self.runtime]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        """Return the kernels: views, the standard's functions, the host's for what is left, its own."""
        table = KernelTable(self.runtime.type)
        view_kernels(table, layout_of, relaid)
        table.add("copy", self._copy, dtypes=self.runtime.natives, out=True)
        table.add("place", self._place, dtypes=self.runtime.dtypes)

        def add(
            op: str, function: Callable[..., Any], dtypes: Iterable[DType], needs: str = ""
        ) -> None:
            if not all(hasattr(self.runtime.xp, name) for name in needs.split()):
                return
            known = [dtype for dtype in dtypes if dtype in self.runtime.natives]
            if not known:
                return
            pointwise = op_registry.get_op(op).pointwise
            table.add(op, self._wrapped(function, pointwise), dtypes=known, out=pointwise)
            halves = [d for d in HALVES if d in self.runtime.natives and d not in known]
            if halves and set(FLOATS) & set(known) and pointwise:
                wide = self._wrapped(self._through_float32(function), out=True)
                table.add(op, wide, dtypes=halves, out=True)

        add_kernels(self.runtime, add)
        return [*host_kernels(self.runtime), *table, *self._own]

    # --- between the library's arrays and the stores ---

    def _wrapped(self, function: Callable[..., Any], out: bool = False) -> Callable[..., Any]:
        """Return a function of the library's arrays as a kernel over stores, which may write into one."""
        array_type, read, new = self.runtime.array_type, self.runtime.read, self.runtime.new

        def unwrap(value: Any) -> Any:
            if isinstance(value, array_type):
                return read(value)
            if isinstance(value, (list, tuple)):
                return type(value)([unwrap(item) for item in value])
            return value

        write = self.runtime.write

        @functools.wraps(function)
        def kernel(*values: Any, out: Any = None) -> Any:
            arguments = []
            for value in values:
                if type(value) is array_type:
                    arguments.append(read(value))
                elif type(value) is list or type(value) is tuple:
                    arguments.append(unwrap(value))
                else:
                    arguments.append(value)
            result = function(*arguments)
            if out is not None:
                write(out, result)
                return out
            return tuple(map(new, result)) if type(result) is tuple else new(result)

        if out:
            _takes_out(kernel, function)
        if type(self.runtime).quiet is DeviceRuntime.quiet:
            return kernel

        @functools.wraps(kernel)
        def quiet_kernel(*values: Any, out: Any = None) -> Any:
            with self.runtime.quiet():
                return kernel(*values, out=out)

        return quiet_kernel

    def _through_float32(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a pointwise function that computes half precision in float32, as torch does."""
        xp, natives = self.runtime.xp, self.runtime.natives
        halves = [natives[d] for d in (float16, bfloat16) if d in natives]

        @functools.wraps(function)
        def compute(*values: Any) -> Any:
            half = values[-1].dtype
            result = function(*[xp.astype(value, natives[float32]) for value in values])
            return xp.astype(result, half) if result.dtype == natives[float32] else result

        return compute if halves else function

    def _copy(self, input: StoredArray, src: StoredArray, out: StoredArray | None = None) -> Any:
        source = self.runtime.xp.broadcast_to(self.runtime.read(src), input.shape)
        if out is None:
            return self.runtime.new(source)
        self.runtime.write(out, source)
        return out

    def _place(self, input: StoredArray, shape: Shape, key: tuple[Any, ...]) -> StoredArray:
        result = self.runtime.empty(shape, input.dtype, 0)
        target = relaid(result, view_layout("basic_index", layout_of(result), key))
        self.runtime.write(target, self.runtime.read(input))
        return result


def _takes_out(kernel: Any, function: Callable[..., Any]) -> None:
    """Give a kernel the signature of what it wraps and `out`, where the library tells a signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    taken = [p for p in signature.parameters.values() if p.name != "out"]
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken):
        kernel.__signature__ = signature.replace(parameters=[*taken, out])


def _pointwise(name: str) -> bool:
    """Return whether an op is one of elements, whose kernels can write in place; False of unknown ones."""
    try:
        return op_registry.get_op(name).pointwise
    except KeyError:
        return False


#: Libraries that array_api_compat makes follow the standard.
_WRAPPED = ("torch", "dask.array")


def _with_standard_names(xp: Any) -> Any:
    """Return array_api_compat's namespace for a library that has other names than the standard's."""
    library = getattr(xp, "__name__", "")
    if library not in _WRAPPED:
        return xp
    try:
        return importlib.import_module(f"array_api_compat.{library}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("array_api_compat"):
            raise
        raise TypeError(
            f"array_api_backend(): {library} does not follow the array API standard by itself; "
            "`pip install array-api-compat`, which is then used, or pass a namespace that does"
        ) from error


def array_api_backend(
    xp: Any,
    *,
    device_type: str,
    name: str | None = None,
    to_host: Callable[[Any], Any] = np.asarray,
    from_host: Callable[[Any, Any], Any] | None = None,
    unavailable_reason: Callable[[], str | None] = lambda: None,
    dtypes: Collection[DType] | None = None,
    runtime: type[ArrayApiRuntime] = ArrayApiRuntime,
) -> ArrayApiBackend:
    """Make a device out of an array library that follows the Python array API standard.

    The library needs neither strides nor arrays that can be written to: views and in-place ops are the
    adapter's, over stores that hold the library's arrays. What the standard has a function for runs in
    the library; the other primitives compute on the host, until :meth:`ArrayApiBackend.kernel` supplies
    better.

    Parameters
    ----------
    xp : module
        The library's namespace, of the standard's version 2022.12 or later. It need not be complete: the
        arrays' operators, the dtypes bool, int64 and float32, and eleven functions are needed.
    device_type : str
        The device type, as in ``to("type")``.
    name : str, optional
        The plugin's name; by default the device type.
    to_host : callable, optional
        ``to_host(array)`` returns one of the library's arrays as a NumPy array; by default
        ``numpy.asarray``.
    from_host : callable, optional
        ``from_host(array, dtype)`` returns a NumPy array as one of the library's, of the library's
        dtype; by default ``xp.asarray``.
    unavailable_reason : callable, optional
        Returns why the library's hardware cannot be used, or None.
    dtypes : collection of DType, optional
        Those of the library's dtypes that the device has; by default all.
    runtime : type, optional
        A subclass of :class:`ArrayApiRuntime`, for what the library does better than by the standard's
        functions: strides, queues, figures of memory.

    Returns
    -------
    ArrayApiBackend
        The plugin.

    Raises
    ------
    TypeError
        If the library lacks what is needed; the message lists it.

    Examples
    --------
    >>> import numpy
    >>> import tensorplug as tp
    >>> plugin = array_api_backend(numpy, device_type="second")
    >>> record = tp.plugins.register(plugin)
    >>> (tp.arange(3.0).to("second") * 2).sum()
    tensor(6., device='second:0')
    >>> tp.plugins.unregister("second")
    """
    xp = _with_standard_names(xp)

    def carry_in(array: Any, dtype: Any) -> Any:
        return xp.asarray(array, dtype=dtype)

    library = getattr(xp, "__name__", repr(xp))
    missing = [name for name in REQUIRED if not hasattr(xp, name)]
    if missing:
        raise TypeError(
            f"array_api_backend(): {library} lacks {', '.join(missing)}, which the adapter needs; "
            "pass a namespace that adds them"
        )
    made = runtime(xp, device_type, to_host, from_host or carry_in, unavailable_reason, dtypes)
    lacks = [d.name for d in (bool_, int64, float32) if d not in made.natives]
    if lacks:
        fix = (
            '; run jax.config.update("jax_enable_x64", True) first'
            if library.startswith("jax")
            else ""
        )
        raise TypeError(f"array_api_backend(): {library} lacks the dtypes {', '.join(lacks)}{fix}")
    return ArrayApiBackend(name or device_type, made)
