"""``tp.compile``: what it takes and returns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from tensorplug.nn import Module

from .compiled import Compiled
from .explanations import Explanation

__all__ = ["OptimizedModule", "compile"]

F = TypeVar("F", bound=Callable[..., Any])


class OptimizedModule(Module):
    """What :func:`compile` returns of a module: it runs as captured graphs, and has it as ``_orig_mod``.

    As in torch its state dict has the module's names behind ``_orig_mod.``, and other attributes are the
    module's.
    """

    _orig_mod: Module

    def __init__(self, module: Module, compiled: Compiled | None = None) -> None:
        super().__init__()
        self.__dict__["_compiled"] = compiled or Compiled(module, False, None, True)
        self._orig_mod = module
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.__dict__["_compiled"](*args, **kwargs)

    def explain(self) -> Explanation:
        """Return what was captured so far, and what was not, and why."""
        found: Explanation = self.__dict__["_compiled"].explain()
        return found

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "training") or "_orig_mod" not in self.__dict__.get(
            "_modules", ()
        ):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __reduce__(self) -> Any:
        compiled: Compiled = self.__dict__["_compiled"]
        options = compiled._fullgraph, compiled._dynamic.wanted, compiled._mode
        return _compiled_again, (self._orig_mod, *options)

    def __deepcopy__(self, memo: Any) -> Any:
        import copy

        made, (module, *options) = self.__reduce__()
        return made(copy.deepcopy(module, memo), *options)


def _compiled_again(
    module: Module, fullgraph: bool, dynamic: bool | None, mode: str = "default"
) -> OptimizedModule:
    return OptimizedModule(module, Compiled(module, fullgraph, dynamic, True, mode))


@overload
def compile(
    model: F, *, fullgraph: bool = ..., dynamic: bool | None = ..., backend: Any = ...,
    mode: str | None = ..., options: dict[str, Any] | None = ..., disable: bool = ...,
) -> F: ...  # fmt: skip


@overload
def compile(
    model: None = ..., *, fullgraph: bool = ..., dynamic: bool | None = ..., backend: Any = ...,
    mode: str | None = ..., options: dict[str, Any] | None = ..., disable: bool = ...,
) -> Callable[[F], F]: ...  # fmt: skip


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "default",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a function or module that runs as captured graphs of ops, and as it is where those do not hold.

    Parameters
    ----------
    model : callable or Module, optional
        What to compile; without it a decorator is returned. Of a module an :class:`OptimizedModule`.
    fullgraph : bool
        Raise :class:`~tensorplug.graph.Uncapturable` where the program reads the data of its tensors, or
        does something else that a graph does not hold, instead of running such calls as they are. What it
        sets up in its first calls, such as a cache, is let pass.
    dynamic : bool, optional
        False to count a graph for each size; by default sizes become symbols with the second one.
    backend : str or callable
        "default", or "eager" for the program itself. Of torch's, "inductor" and "aot_eager" are the default
        one, and "cudagraphs" is that with `mode="reduce-overhead"`.
    mode : str, optional
        One of torch's; the fusers of plugins learn it. With "reduce-overhead" or "max-autotune" a device
        whose plugin can do so queues its kernels all at once, as "cuda" does in CUDA graphs.
    options
        Accepted as torch has them; they change nothing.
    disable : bool
        Return what runs the program itself.

    Raises
    ------
    ValueError
        If the backend or the mode is not known.

    Notes
    -----
    The first call with tensors of some shapes and dtypes is the program's own. A graph serves a later one if
    arguments and state are alike: shapes, dtypes, strides and plain values of arguments; attributes of
    modules and objects, closures and globals that the program's functions name. A number or truth value that
    the program reads from a tensor belongs to that, too; up to eight graphs hold for different ones. Results
    are bit for bit those of the program, but where nothing is recorded and a batch norm follows a
    convolution of float32: its factors are multiplied into the weights, and results differ by rounding.

    Examples
    --------
    >>> import tensorplug as tp
    >>> @tp.compile
    ... def act(x):
    ...     return tp.exp(-x * x) if x.sum() > 0 else x
    >>> x = tp.tensor([1.0, -0.5])
    >>> act(x), act(x)
    (tensor([0.3679, 0.7788]), tensor([0.3679, 0.7788]))
    >>> act(-x)
    tensor([-1.0000,  0.5000])
    >>> found = act.explain()
    >>> len(found.graphs), found.captures, found.calls
    (2, 2, 1)
    """
    if backend not in _BACKENDS:
        raise ValueError(
            f"compile(): the backend is one of {', '.join(_BACKENDS)}, got {backend!r}; what runs fused "
            "regions comes from plugins"
        )
    mode = mode or ("reduce-overhead" if backend == "cudagraphs" else "default")
    if mode not in _MODES:
        raise ValueError(f"compile(): the mode is one of {', '.join(_MODES)}, got {mode!r}")
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            disable=disable,
        )
    if isinstance(model, (Compiled, OptimizedModule)):
        return model
    if not callable(model):
        raise TypeError(f"compile() takes a function or a module, got {type(model).__name__}")
    compiled = Compiled(model, fullgraph, dynamic, not disable and backend != "eager", mode)
    return OptimizedModule(model, compiled) if isinstance(model, Module) else compiled


_BACKENDS = ("default", "eager", "inductor", "aot_eager", "cudagraphs")
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
