"""Whether kernels have to give the same result each time, and what those do that cannot."""

from __future__ import annotations

from ..errors import warn

#: Whether it is wanted, and whether kernels that cannot only warn. ``use_deterministic_algorithms`` sets it.
wanted: list[bool] = [False, False]


def deterministic_wanted() -> bool:
    """Return whether kernels have to give the same result each time, on the same device."""
    return wanted[0]


def alert_not_deterministic(name: str) -> None:
    """Raise or warn, as ``use_deterministic_algorithms`` said, of a kernel that cannot.

    Parameters
    ----------
    name : str
        What the message calls the kernel.

    Raises
    ------
    RuntimeError
        If determinism is wanted, and not by warnings only.

    Examples
    --------
    >>> from tensorplug.plugin import alert_not_deterministic
    >>> alert_not_deterministic("my_kernel")  # nobody asked for determinism
    """
    if not wanted[0]:
        return
    options = "True, warn_only=True" if wanted[1] else "True"
    text = (
        f"{name} does not have a deterministic implementation, but you set "
        f"'use_deterministic_algorithms({options})'."
    )
    if wanted[1]:
        warn(text, UserWarning)
        return
    raise RuntimeError(
        f"{text} You can turn off determinism just for this operation, or you can use the 'warn_only=True' "
        "option, if that's acceptable for your application."
    )
