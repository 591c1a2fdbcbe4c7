"""An array library as the shared kernels see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensorplug.core.device.dtypes import DType, bfloat16, float16, float32


class ArrayNamespace:
    """A NumPy-like library: its functions, and its names for our dtypes.

    Parameters
    ----------
    xp : module
        ``numpy``, ``cupy`` or another library with the same functions.
    device : str
        The device type its arrays belong to.
    natives : mapping
        The library's dtype object for each of our dtypes that it has.
    checks_bounds : bool
        Whether positions that gather and scatter take are checked first, which waits for the device.
    reduce_add : callable, optional
        What adds up over dimensions, by default the library's ``add.reduce``, whose arguments it takes.
    """

    def __init__(
        self,
        xp: Any,
        device: str,
        natives: Mapping[DType, Any],
        *,
        checks_bounds: bool = True,
        reduce_add: Callable[..., Any] | None = None,
    ) -> None:
        self.xp = xp
        self._reduce_add = reduce_add
        self.checks_bounds = checks_bounds
        self.device = device
        self.natives = dict(natives)
        self.dtypes = {native: dtype for dtype, native in natives.items()}

    @property
    def reduce_add(self) -> Callable[..., Any]:
        """What adds up over dimensions: ``(array, axis, dtype, out, keepdims)``."""
        reduce_add: Callable[..., Any] = self._reduce_add or self.xp.add.reduce
        return reduce_add

    def native(self, dtype: DType) -> Any:
        """Return the library's name for a dtype.

        Raises
        ------
        TypeError
            If the library has none.
        """
        try:
            return self.natives[dtype]
        except KeyError:
            raise TypeError(f"device {self.device!r} has no dtype {dtype.name}") from None

    def through_float32(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` computing half-precision arrays in float32.

        That is what torch does on the CPU, and what array libraries lack for bfloat16.
        """
        halves = {self.natives[d] for d in (float16, bfloat16) if d in self.natives}
        single = self.natives[float32]

        def wide(value: Any) -> Any:
            return value.astype(single) if getattr(value, "dtype", None) in halves else value

        def compute(*args: Any) -> Any:
            half = next(a.dtype for a in args if getattr(a, "dtype", None) in halves)

            def narrow(value: Any) -> Any:
                return value.astype(half) if value.dtype == single else value

            result = function(*[wide(arg) for arg in args])
            return tuple(map(narrow, result)) if isinstance(result, tuple) else narrow(result)

        return compute
