"""Parts: where a program is not captured whole, the modules that it calls are compiled each by itself.

What breaks a graph is most often at the top: a print, a read of data, ``backward()`` in a training step. The
blocks below it are whole. While such a program runs, the ``forward`` of each of its modules that has modules
of its own is the compiled one; one that breaks as well runs in parts in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import MethodType
from typing import Any

from tensorplug.core.contexts import Block, Steps
from tensorplug.nn import Module, ModuleDict, ModuleList

from .classes import is_foreign

__all__ = ["Part", "Parts", "children", "outermost"]


class Part:
    """A compiled ``forward``, in the place of a module's own."""

    def __init__(self, compiled: Callable[..., Any], module: Module) -> None:
        self.compiled = compiled
        self.module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.compiled(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copy = memo.get(id(self.module), self.module)
        return MethodType(type(copy).forward, copy)


class Parts:
    """The modules of a program, compiled while it runs.

    Parameters
    ----------
    modules : iterable of Module
        What the program calls.
    make : callable
        Returns the compiled form of a function.
    """

    def __init__(self, modules: Iterable[Module], make: Callable[[Any], Any]) -> None:
        found = [module for module in modules if _is_worth_it(module)]
        self.compiled = [make(module.forward) for module in found]
        self._places = [
            (vars(module), Part(compiled, module))
            for module, compiled in zip(found, self.compiled, strict=True)
        ]

    def place(self, module: Module, compiled: Callable[..., Any]) -> None:
        """Have another module run as something else."""
        self._places.append((vars(module), Part(compiled, module)))

    def running(self) -> Block:
        """Have the modules run compiled within a ``with`` block.

        Where blocks overlap, in other threads or in one another, the first that ends takes the compiled forms
        away; what runs then is the module's own.
        """

        def steps() -> tuple[Steps, Steps]:
            return (
                [partial(table.__setitem__, "forward", part) for table, part in self._places],
                [partial(table.pop, "forward", None) for table, _ in self._places],
            )

        return Block(steps)


def _is_worth_it(module: Module) -> bool:
    """Return whether a module computes more than an op, and nobody put another ``forward`` in its place."""
    several = any(True for _ in module.children()) or not is_foreign(type(module).__module__)
    return several and "forward" not in vars(module)


def children(module: Module) -> Iterator[Module]:
    """Yield the modules that a module calls: for a list of modules those in it."""
    for child in module.children():
        if isinstance(child, (ModuleList, ModuleDict)):
            yield from children(child)
        else:
            yield child


def outermost(objects: Iterable[Any]) -> list[Module]:
    """Return the modules among objects that are in none of the others."""
    modules = [value for value in objects if isinstance(value, Module)]
    inside = {id(child) for module in modules for child in module.modules() if child is not module}
    return [module for module in modules if id(module) not in inside]
