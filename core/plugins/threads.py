"""How many threads kernels may use: told to each device, whenever it or its libraries are loaded."""

from __future__ import annotations

from .manager import device_listeners, runtime_parts, runtimes

_limit: list[int] = []


def thread_limit() -> int | None:
    """Return the limit, or None if nobody has set one."""
    return _limit[0] if _limit else None


def limit_threads(number: int) -> None:
    """Limit how many threads the kernels of each device, and the libraries that they call, use."""
    _limit[:] = [number]
    for type_ in runtimes():
        renew_thread_limit(type_)


def renew_thread_limit(device: str) -> None:
    """Have the runtime of a device take the limit once more.

    For kernels that load a library with threads of its own when they are first called: what was loaded
    after the limit had been set would know nothing of it.

    Parameters
    ----------
    device : str
        The device's type.

    Examples
    --------
    >>> from tensorplug.plugin import renew_thread_limit
    >>> import scipy.linalg  # which brings a BLAS
    >>> renew_thread_limit("cpu")
    """
    if _limit:
        for part in runtime_parts(device):
            part.set_num_threads(_limit[0])


device_listeners.append(renew_thread_limit)
