"""Who runs an op, and why: ``tp.explain``, and the log of choices."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..device.device import META, Device
from ..device.dtypes import DType, as_dtype, get_default_dtype
from . import keys, op_registry, resolution
from .choice import Choice, choose, render
from .op_registry import Op
from .state import dispatch_state


def explain(
    op: str | Callable[..., Any] | Op,
    *,
    device: Device | str = "cpu",
    dtype: DType | type | None = None,
) -> Choice:
    """Tell which kernel runs an op on a device and dtype, and why the others do not.

    Parameters
    ----------
    op : str or callable
        Any name that users call, or the function or method itself: ``"mul"``, ``"linalg.svd"``,
        ``tp.mul``, ``tp.Tensor.mul``. A function that another op defines stands for that op.
    device : Device or str
        The device; its plugins are loaded, but its hardware need not be there.
    dtype : DType, optional
        The dtype of the arguments; by default the default dtype.

    Returns
    -------
    Choice
        Prints as text; its attributes ``way``, ``kernel`` and ``losers`` hold the same for
        programs.

    Raises
    ------
    KeyError
        If there is no such op; the message lists names that are near.
    DeviceNotAvailableError
        If no plugin serves the device type.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.core.dispatch.explain import explain
    >>> choice = explain("mul", dtype=tp.float32)
    >>> choice.way, choice.kernel.plugin
    ('kernel', 'cpu_numpy')
    """
    found = _as_op(op)
    index = Device(device)
    asked = get_default_dtype() if dtype is None else as_dtype(dtype)
    dispatch_state.find_runtime(index.type)
    computed = asked
    if found.pointwise and found.kind == "primitive":
        try:
            computed = resolution.pointwise_keys(found, keys.dispatch_key(META, asked))[0].dtype
        except (RuntimeError, TypeError) as error:  # the op's rule refuses the dtype
            refused = Choice(found.name, index.type, asked, "none")
            refused.refused = str(error)
            return refused
    choice = choose(found, index.type, computed, resolution.preferred_backends())
    if computed is not asked:
        choice.dtype, choice.computed_in = asked, computed
    return choice


def _as_op(op: Any) -> Op:
    if isinstance(op, str):
        return op_registry.get_op(op)
    found = op if isinstance(op, Op) else getattr(op, "op", None)
    if not isinstance(found, Op):
        raise TypeError(f"explain(): expected an op or the name of one, got {op!r}")
    return found


# --- the log ----------------------------------------------------------------------------------

LOGGER = "tensorplug.dispatch"


def log_dispatch(on: bool = True) -> None:
    """Log each choice of a kernel as it is made: once per op, device and dtype.

    The messages go to the logger "tensorplug.dispatch" of :mod:`logging`, at level INFO; where the
    program has set up no handler, they are written to stderr. ``TENSORPLUG_LOG=dispatch`` in the
    environment does the same from the start. A composite that runs as its body, without a kernel or a
    derivative of its own anywhere, is chosen without being asked for.
    """
    dispatch_state.log_choice = _Log() if on else None
    keys.reset_tables()


class _Log:
    """Logs a choice that was not logged before."""

    def __init__(self) -> None:
        import logging

        self.logger = logging.getLogger(LOGGER)
        self.known: set[Any] = set()
        if self.logger.level == logging.NOTSET:
            self.logger.setLevel(logging.INFO)
        if not self.logger.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            self.logger.addHandler(handler)

    def __call__(self, choice: Choice) -> None:
        key = choice.op, choice.device, choice.dtype, choice.way, choice.kernel
        if key not in self.known:  # the tables resolve anew whenever a plugin comes or goes
            self.known.add(key)
            more = f" ({len(choice.losers)} not used)" if choice.losers else ""
            self.logger.info("%s%s", render(choice).partition("\n")[0], more)


if "dispatch" in os.environ.get("TENSORPLUG_LOG", "").split(","):
    dispatch_state.log_choice = _Log()
