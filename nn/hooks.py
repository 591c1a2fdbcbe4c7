"""Hooks of modules: registering them, and the call of a module that has some."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, cast

from tensorplug.autograd.graph.handles import RemovableHandle
from tensorplug.core import Tensor

from .backward_hooks import BackwardTap, watch_node
from .module_base import Hook, Hooks, ModuleBase, add_hook

if TYPE_CHECKING:
    from .module import Module


class GlobalHooks:
    """The hooks that every module runs; ``any`` says quickly whether there are some."""

    def __init__(self) -> None:
        self.forward_pre: Hooks = OrderedDict()
        self.forward: Hooks = OrderedDict()
        self.forward_with_kwargs: dict[int, bool] = {}
        self.forward_always: dict[int, bool] = {}
        self.backward_pre: Hooks = OrderedDict()
        self.backward: Hooks = OrderedDict()
        self.buffer_registration: Hooks = OrderedDict()
        self.module_registration: Hooks = OrderedDict()
        self.parameter_registration: Hooks = OrderedDict()

    def any(self) -> bool:
        """Return whether a call of a module has to look here."""
        return bool(self.forward_pre or self.forward or self.backward_pre or self.backward)


global_hooks = GlobalHooks()


class ModuleHooks(ModuleBase):
    """Registration of hooks around ``forward`` and ``backward``."""

    #: The kind of the module's backward hooks; None before the first.
    _is_full_backward_hook: bool | None = None

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward; what it returns replaces the arguments.

        Parameters
        ----------
        hook : callable
            May return None, one value, or a tuple of arguments.
        prepend : bool
            Put it before the hooks that are there.
        with_kwargs : bool
            Call ``hook(module, args, kwargs)``, which returns None or ``(args, kwargs)``.
        """
        handle = add_hook(self._forward_pre_hooks, hook, prepend=prepend)
        if with_kwargs:
            handle.note(self._forward_pre_hooks_with_kwargs)
        return handle

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each forward; it may return another output.

        Parameters
        ----------
        hook : callable
            May return None or another output.
        prepend : bool
            Put it before the hooks that are there.
        with_kwargs : bool
            Call ``hook(module, args, kwargs, output)``.
        always_call : bool
            Call it even if forward raises.

        Examples
        --------
        >>> import tensorplug as tp
        >>> layer = tp.nn.Identity()
        >>> with layer.register_forward_hook(lambda module, args, output: output + 1):
        ...     layer(tp.zeros(2))
        tensor([1., 1.])
        """
        handle = add_hook(self._forward_hooks, hook, prepend=prepend)
        if with_kwargs:
            handle.note(self._forward_hooks_with_kwargs)
        if always_call:
            handle.note(self._forward_hooks_always_called)
        return handle

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the output's gradients are known.

        What it returns replaces them.
        """
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are known.

        What it returns replaces ``grad_input``, which holds an entry per positional argument, None
        for what is no tensor or requires no grad.

        Examples
        --------
        >>> import tensorplug as tp
        >>> layer = tp.nn.Linear(1, 1, bias=False)
        >>> handle = layer.register_full_backward_hook(
        ...     lambda module, grad_input, grad_output: print(grad_output)
        ... )
        >>> layer(tp.ones(1, requires_grad=True)).sum().backward()
        (tensor([1.]),)
        """
        self._use_backward_hooks(full=True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Do what :meth:`register_full_backward_hook` does; stands for torch's older form.

        Of an output that is no tensor and no tuple of them, such as a dict, the hook gets the gradients of
        the node that made the first tensor in it, as in torch.
        """
        self._use_backward_hooks(full=False)
        return add_hook(self._backward_hooks, hook)

    def _use_backward_hooks(self, *, full: bool) -> None:
        """Raise RuntimeError if the module has backward hooks of the other kind."""
        if self._is_full_backward_hook is not None and self._is_full_backward_hook != full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = full

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``forward`` with every hook around it."""
        called: set[int] = set()
        result: Any = None
        module = cast("Module", self)
        try:
            args, kwargs = _run_pre_hooks(module, args, kwargs)
            tap = None
            if (
                self._backward_hooks
                or self._backward_pre_hooks
                or global_hooks.backward
                or global_hooks.backward_pre
            ):
                tap = BackwardTap(
                    module,
                    [*global_hooks.backward.values(), *self._backward_hooks.values()],
                    [*global_hooks.backward_pre.values(), *self._backward_pre_hooks.values()],
                )
                args = tap.inputs(args)
            result = module.forward(*args, **kwargs)
            for key, hook, with_kwargs, _ in _forward_hooks(module):
                called.add(key)
                replaced = (
                    hook(module, args, kwargs, result)
                    if with_kwargs
                    else hook(module, args, result)
                )
                if replaced is not None:
                    result = replaced
            if tap is None:
                return result
            if (
                self._is_full_backward_hook is False
                and self._backward_hooks
                and not isinstance(result, (Tensor, tuple))
            ):
                watch_node(module, [*self._backward_hooks.values()], result)
                return result
            return tap.outputs(result)
        except Exception:
            _run_remaining(module, args, kwargs, result, called)
            raise


def _run_pre_hooks(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    hooks = [*global_hooks.forward_pre.items(), *module._forward_pre_hooks.items()]
    for key, hook in hooks:
        if key in module._forward_pre_hooks_with_kwargs:
            replaced = hook(module, args, kwargs)
            if replaced is None:
                continue
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but "
                    f"got {replaced}."
                )
            args, kwargs = replaced
        else:
            replaced = hook(module, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
    return args, kwargs


def _forward_hooks(module: Module) -> list[tuple[int, Hook, bool, bool]]:
    """Return (key, hook, whether it takes kwargs, whether it is always called) in order."""
    everywhere = [
        (key, hook, key in global_hooks.forward_with_kwargs, key in global_hooks.forward_always)
        for key, hook in global_hooks.forward.items()
    ]
    own = [
        (
            key,
            hook,
            key in module._forward_hooks_with_kwargs,
            key in module._forward_hooks_always_called,
        )
        for key, hook in module._forward_hooks.items()
    ]
    return everywhere + own


def _run_remaining(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, called: set[int]
) -> None:
    """Run the hooks that are to be called even now that something has raised."""
    for key, hook, with_kwargs, always in _forward_hooks(module):
        if not always or key in called:
            continue
        try:
            if with_kwargs:
                hook(module, args, kwargs, result)
            else:
                hook(module, args, result)
        except Exception as error:
            warnings.warn(
                "module forward hook with ``always_call=True`` raised an exception that was "
                f"silenced as another error was raised in forward: {error}",
                UserWarning,
                stacklevel=2,
            )


# --- hooks of all modules ---------------------------------------------------------------------


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, args)`` before each forward of every module."""
    return add_hook(global_hooks.forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after each forward of every module."""
    handle = add_hook(global_hooks.forward, hook)
    if with_kwargs:
        handle.note(global_hooks.forward_with_kwargs)
    if always_call:
        handle.note(global_hooks.forward_always)
    return handle


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` in each backward of every module."""
    return add_hook(global_hooks.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` in each backward of every module."""
    return add_hook(global_hooks.backward, hook)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Do what :func:`register_module_full_backward_hook` does; stands for torch's older form."""
    return add_hook(global_hooks.backward, hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` at each registration; it may return another buffer."""
    return add_hook(global_hooks.buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, child)`` at each registration; it may return another child."""
    return add_hook(global_hooks.module_registration, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` at each registration; it may return another one."""
    return add_hook(global_hooks.parameter_registration, hook)
