"""Anomaly mode: where a NaN came from, and which forward call is to blame."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorplug.core.contexts import OwnContext, Steps
from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.errors import check_flag, warn

from .graph import saved_tensors


class set_detect_anomaly(OwnContext):
    """Check every gradient for NaN, and show the forward call of the op that made one.

    As a call until further notice, as a context within its block. Slow; for debugging.

    Examples
    --------
    >>> import warnings
    >>> import tensorplug as tp
    >>> x = tp.tensor(0.0, requires_grad=True)
    >>> with tp.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     try:
    ...         (x.sqrt() * 0).backward()
    ...     except RuntimeError as error:
    ...         print(str(error).split(".")[0])
    Function 'SqrtBackward0' returned nan values in its 0th output
    >>> print(str(told[0].message).split(":")[0])
    Error detected in SqrtBackward0. Traceback of forward call that caused the error
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        _check_flags(mode, check_nan)
        self.previous = _settings()
        layers.note_opaque("set_detect_anomaly()")
        saved_tensors.set_anomaly(mode, check_nan)

    def _steps(self) -> tuple[Steps, Steps]:
        return (), _restoring(self.previous)


class detect_anomaly(set_detect_anomaly):
    """Anomaly mode within a ``with`` block.

    Parameters
    ----------
    check_nan : bool
        Whether a NaN among the gradients raises, rather than only failing nodes telling their forward call.

    Warns
    -----
    UserWarning
        That everything takes longer.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = bool(check_nan)
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging.",
            UserWarning,
        )

    def _steps(self) -> tuple[Steps, Steps]:
        dispatch_state.gradient.watched = True
        set_both = partial(saved_tensors.__dict__.update, anomaly=True, check_nan=self.check_nan)
        return (set_both,), _restoring(_settings())


def _settings() -> tuple[bool, bool]:
    return saved_tensors.anomaly, saved_tensors.check_nan


def _restoring(settings: tuple[bool, bool]) -> Steps:
    anomaly, check_nan = settings
    restore = partial(saved_tensors.__dict__.update, anomaly=anomaly, check_nan=check_nan)
    return restore, saved_tensors.update_watched


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on."""
    layers.note_setting(is_anomaly_enabled)
    return saved_tensors.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether a NaN among the gradients raises in anomaly mode."""
    layers.note_setting(is_anomaly_check_nan_enabled)
    return saved_tensors.check_nan


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off until further notice; see :class:`set_detect_anomaly`."""
    _check_flags(mode, check_nan)
    layers.note_opaque("set_anomaly_enabled()")
    saved_tensors.set_anomaly(mode, check_nan)


def _check_flags(mode: Any, check_nan: Any) -> None:
    check_flag(mode, "set_anomaly_enabled", "enabled")
    check_flag(check_nan, "set_anomaly_enabled", "check_nan")
