"""Settings of torch's top level that programs call, and what they mean here."""

from __future__ import annotations

import os

_deterministic: list[bool] = [False, False]  # on, and warnings only
_precision = ["highest"]
_threads = [os.cpu_count() or 1]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for kernels that give the same result each time; cpu_numpy's always do.

    Parameters
    ----------
    mode : bool
        Whether to.
    warn_only : bool
        Whether kernels that cannot should warn rather than raise.
    """
    _deterministic[:] = [bool(mode), bool(warn_only)]


def are_deterministic_algorithms_enabled() -> bool:
    """Return what :func:`use_deterministic_algorithms` was told."""
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether kernels that are not deterministic only warn."""
    return _deterministic[1]


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
    _precision[0] = precision


def get_float32_matmul_precision() -> str:
    """Return what :func:`set_float32_matmul_precision` was told."""
    return _precision[0]


def set_num_threads(number: int) -> None:
    """Say how many threads kernels may use; plugins may read it.

    Raises
    ------
    RuntimeError
        If the number is not positive.
    """
    if number < 1:
        raise RuntimeError(f"set_num_threads(): expects a positive integer, got {number}")
    _threads[0] = int(number)


def get_num_threads() -> int:
    """Return how many threads kernels may use."""
    return _threads[0]
