"""Settings of torch's top level that programs call, and what they mean here."""

from __future__ import annotations

import os

from tensorplug.core.device import determinism
from tensorplug.core.dispatch import fast_path, layers
from tensorplug.core.dispatch.arguments import plain
from tensorplug.core.errors import type_name
from tensorplug.core.plugins.threads import limit_threads, thread_limit
from tensorplug.core.processors import available_processors

_deterministic = determinism.wanted
_precision = ["highest"]
_warn_always = [False]
_interop = [1]


def _default_threads() -> int:
    """Return what ``OMP_NUM_THREADS`` says, else the CPUs of the process: what BLAS starts with too."""
    wish = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if wish.isdecimal() and int(wish):
        return int(wish)
    return available_processors()


_threads_at_start = _default_threads()


def compiled() -> bool:
    """Return whether the hot path was compiled when tensorplug was built; it runs uncompiled else.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.compiled() in (True, False)
    True
    """
    return fast_path.hot_path_compiled()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for kernels that give the same result each time, on the same device, from the same input.

    Those of the CPU always do. Those of other devices that cannot raise a RuntimeError, or warn.

    Parameters
    ----------
    mode : bool
        Whether to.
    warn_only : bool
        Whether kernels that cannot should warn rather than raise.

    Raises
    ------
    TypeError
        If one of them is no bool.

    Notes
    -----
    Memory without contents (:func:`empty` and its kin, what ``resize_`` adds) is filled meanwhile, with NaN
    or the largest integer, so that a program that reads it does the same each time too;
    ``utils.deterministic.fill_uninitialized_memory = False`` saves the time.
    """
    for name, value in (("mode' (position 1)", mode), ("warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms(): argument '{name} must be bool, not {type(value).__name__}"
            )
    layers.note_opaque("use_deterministic_algorithms()")
    determinism.want(mode, warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Return what :func:`use_deterministic_algorithms` was told."""
    layers.note_setting(are_deterministic_algorithms_enabled)
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether kernels that are not deterministic only warn."""
    layers.note_setting(is_deterministic_algorithms_warn_only_enabled)
    return _deterministic[1]


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Say by one word or number what :func:`use_deterministic_algorithms` says.

    Parameters
    ----------
    debug_mode : {"default", "warn", "error"} or {0, 1, 2}
        Off; on, with warnings; on, with errors.

    Raises
    ------
    TypeError, RuntimeError
        If it is none of these.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(
            f"set_deterministic_debug_mode(): expects str or int, got {type(debug_mode).__name__}"
        )
    modes = _DEBUG_MODES if isinstance(debug_mode, str) else (0, 1, 2)
    if debug_mode not in modes:
        raise RuntimeError(
            f"set_deterministic_debug_mode(): expected one of {modes}, got {debug_mode!r}"
        )
    number = modes.index(debug_mode)
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """Return 0, 1 or 2, see :func:`set_deterministic_debug_mode`."""
    layers.note_setting(get_deterministic_debug_mode)
    on, warn_only = _deterministic
    return (1 if warn_only else 2) if on else 0


def set_warn_always(b: bool, /) -> None:
    """Remember whether warnings should come each time; ours always do, as Python's filters say."""
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always(): expects a bool, got {type(b).__name__}")
    layers.note_opaque("set_warn_always()")
    _warn_always[0] = b


def is_warn_always_enabled() -> bool:
    """Return what :func:`set_warn_always` was told."""
    layers.note_setting(is_warn_always_enabled)
    return _warn_always[0]


def set_flush_denormal(mode: bool) -> bool:
    """Return False: subnormal numbers are computed as they are, and this cannot be changed."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type_name(mode)}")
    return False


def set_num_interop_threads(number: int, /) -> None:
    """Remember a number: ops run one after another here, each on the threads that its kernel takes."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"set_num_interop_threads(): expects an int, got {type(number).__name__}")
    if number < 1:
        raise RuntimeError(f"set_num_interop_threads(): expects a positive int, got {number}")
    layers.note_opaque("set_num_interop_threads()")
    _interop[0] = number


def get_num_interop_threads() -> int:
    """Return what :func:`set_num_interop_threads` was told, 1 by default."""
    layers.note_setting(get_num_interop_threads)
    return _interop[0]


def set_float32_matmul_precision(precision: str) -> None:
    """Say how exactly float32 matrices have to be multiplied; plugins may read it.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        As in torch.
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            "set_float32_matmul_precision(): expected 'highest', 'high' or 'medium', got "
            f"{precision!r}"
        )
    layers.note_opaque("set_float32_matmul_precision()")
    _precision[0] = precision


def get_float32_matmul_precision() -> str:
    """Return what :func:`set_float32_matmul_precision` was told."""
    layers.note_setting(get_float32_matmul_precision)
    return _precision[0]


def set_num_threads(number: int) -> None:
    """Limit how many threads the kernels of each device use, those of BLAS included.

    Raises
    ------
    TypeError, RuntimeError
        If the number is no int, or not positive.
    """
    number = plain(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"set_num_threads(): expects an int, got {type(number).__name__}")
    if number < 1:
        raise RuntimeError(f"set_num_threads(): expects a positive integer, got {number}")
    layers.note_opaque("set_num_threads()")
    limit_threads(number)


def get_num_threads() -> int:
    """Return how many threads kernels may use: ``OMP_NUM_THREADS``, else all CPUs of the process."""
    layers.note_setting(get_num_threads)
    return thread_limit() or _threads_at_start
