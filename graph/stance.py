"""Whether what is compiled runs compiled: a state of the process, which programs change for a while."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

__all__ = ["set_stance"]

STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)


class Stance:
    """What the calls of compiled functions look at."""

    #: Run the functions as they are.
    eager = False
    #: What a call does that no graph is there for: "capture", "eager" or "fail".
    missing = "capture"
    name = "default"

    def take(self, name: str) -> None:
        """Take a stance by its name."""
        self.name = name
        self.eager = name == "force_eager"
        self.missing = {"eager_on_recompile": "eager", "fail_on_recompile": "fail"}.get(
            name, "capture"
        )


STANCE = Stance()


class set_stance(ContextDecorator):
    """Say whether compiled functions run as graphs: at once, for a ``with`` block, or in a function's calls.

    Parameters
    ----------
    stance : str
        "default"; "force_eager" to run them as they are; "eager_on_recompile" to do so where no graph was
        captured yet for such a call, and "fail_on_recompile" to raise there. "eager_then_compile" and
        "aot_eager_then_compile" are the default: sizes become symbols when they change.
    skip_guard_eval_unsafe : bool
        Accepted, and without effect: guards are evaluated.
    force_backend : str or callable, optional
        Accepted, and without effect.

    Raises
    ------
    RuntimeError
        If there is no such stance.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.graph import set_stance
    >>> double = tp.compile(lambda x: x * 2)
    >>> with set_stance("force_eager"):
    ...     double(tp.tensor([1.0]))
    tensor([2.])
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:
        if stance not in STANCES:
            raise RuntimeError(
                f"set_stance(): expected one of {', '.join(STANCES)}, got {stance!r}"
            )
        self._stance = stance
        self._before = STANCE.name
        STANCE.take(stance)

    def __call__(self, func: Any) -> Any:
        """Return a function during whose calls the stance holds, and only then."""
        STANCE.take(self._before)
        return super().__call__(func)

    def _recreate_cm(self) -> set_stance:
        return set_stance(self._stance)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        STANCE.take(self._before)
