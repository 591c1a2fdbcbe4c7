"""Walking a tree of modules: its parameters, buffers and sub-modules by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from tensorplug.core import Tensor

from .module_base import ModuleBase
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module


class ModuleTraversal(ModuleBase):
    """Iterators over the tree below a module, and look-up by dotted path."""

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and every one below it; shared ones once unless told otherwise."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self,
        memo: set[Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """Yield (path, module) of this module and every one below it, parents first.

        Parameters
        ----------
        memo : set of Module, optional
            Modules to leave out; those yielded are added.
        prefix : str
            Put before each path.
        remove_duplicate : bool
            Yield a module that has several paths only once.

        Examples
        --------
        >>> import tensorplug as tp
        >>> [path for path, _ in tp.nn.Sequential(tp.nn.Identity()).named_modules()]
        ['', '0']
        """
        if memo is None:
            memo = set()
        module = cast("Module", self)
        if module in memo:
            return
        if remove_duplicate:
            memo.add(module)
        yield prefix, module
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Yield the modules directly below this one."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) of the modules directly below this one, shared ones once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Yield (path, member) for what `get_members_fn` finds in each module."""
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, cast("Module", self))]
        )
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, shared ones once; of this module only with ``recurse=False``."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter).

        Examples
        --------
        >>> import tensorplug as tp
        >>> [path for path, _ in tp.nn.Sequential(tp.nn.Linear(2, 3)).named_parameters()]
        ['0.weight', '0.bias']
        """
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, shared ones once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer)."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    # --- look-up ---

    def get_submodule(self, target: str) -> Module:
        """Return the module at a dotted path such as ``"encoder.0"``; ``""`` is this one.

        Raises
        ------
        AttributeError
            If the path names nothing, or something that is no module.
        """
        from .module import Module  # on first use: it needs this module

        module = cast(Module, self)
        if target == "":
            return module
        for name in target.split("."):
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` in the place of the one at a dotted path.

        Parameters
        ----------
        target : str
            The path.
        module : Module
            The new module.
        strict : bool
            Fail if there is no module at the path yet.

        Raises
        ------
        ValueError
            If the path is empty or `module` is no module.
        AttributeError
            If the path does not lead to a module.
        """
        from .module import Module  # on first use: it needs this module

        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(
                f"Cannot set submodule {target!r} to {type(module).__name__}: not an nn.Module"
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path; raise AttributeError if there is none."""
        owner, name, value = self._look_up(target)
        if not isinstance(value, Parameter) or name not in owner._parameters:
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path; raise AttributeError if there is none."""
        owner, name, value = self._look_up(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return cast(Tensor, value)

    def _look_up(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)
