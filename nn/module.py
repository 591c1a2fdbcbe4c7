"""The base of all neural network modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

from tensorplug.core import Device, Tensor
from tensorplug.core.tensor import device_members

from .conversion import ModuleConversion
from .hooks import ModuleHooks, global_hooks
from .module_base import HOOK_TABLES
from .parameter import Buffer, Parameter
from .state_dict import ModuleStateDict
from .traversal import ModuleTraversal


def _forward_unimplemented(self: Module, *input: Any) -> Any:
    """Compute the output; every subclass defines it."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(ModuleHooks, ModuleTraversal, ModuleStateDict, ModuleConversion):
    """Base of neural network modules.

    A subclass calls ``super().__init__()``, assigns parameters, buffers and sub-modules as
    attributes, and defines ``forward``. It is used by calling it, which runs hooks around
    ``forward``.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode, see :meth:`train`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Scale(tp.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = tp.nn.Parameter(tp.tensor(2.0))
    ...
    ...     def forward(self, input):
    ...         return input * self.factor
    >>> Scale()(tp.tensor([1.0, 3.0]))
    tensor([2., 6.], grad_fn=<MulBackward0>)
    """

    dump_patches: bool = False
    #: Whether ``__init__`` passes its arguments on, for classes with further bases.
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            given = f"keyword argument {next(iter(kwargs))!r}" if kwargs else f"{args[0]!r}"
            raise TypeError(f"{type(self).__name__}.__init__() takes no argument, got {given}")
        # Straight into the dictionary: __setattr__ below needs these to be there.
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_modules"] = {}
        for table in HOOK_TABLES:
            state[table] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``forward(*args, **kwargs)``, with the hooks around it."""
        if self._has_hooks():
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _has_hooks(self) -> bool:
        """Return whether a call runs more than ``forward``."""
        return bool(
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or global_hooks.any()
        )

    # --- registration ---

    def _check_name(self, sort: str, name: Any, table: dict[str, Any]) -> None:
        """Raise TypeError or KeyError unless `name` is free and well-formed."""
        if not isinstance(name, str):
            raise TypeError(f"{sort} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{sort} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{sort} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None holds the place of one that is not there.

        Raises
        ------
        AttributeError
            Before ``Module.__init__()``.
        KeyError
            If the name is empty, has a dot, or is taken.
        TypeError
            If `param` is no :class:`~tensorplug.nn.Parameter`.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                "(tensorplug.nn.Parameter or None required)"
            )
        hooks = () if param is None else global_hooks.parameter_registration.values()
        for hook in hooks:
            replaced = hook(self, name, param)
            param = param if replaced is None else replaced
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module but is no parameter, such as a running mean.

        Parameters
        ----------
        name : str
            The attribute it becomes.
        tensor : Tensor or None
            None holds the place of one that is not there; it is not saved.
        persistent : bool
            Whether it is part of ``state_dict``.

        Raises
        ------
        AttributeError
            Before ``Module.__init__()``.
        KeyError
            If the name is empty, has a dot, or is taken.
        TypeError
            If `tensor` is no tensor.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' "
                "(tensorplug Tensor or None required)"
            )
        for hook in global_hooks.buffer_registration.values():
            replaced = hook(self, name, tensor)
            tensor = tensor if replaced is None else replaced
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a sub-module under a name; None holds the place of one that is not there.

        Raises
        ------
        KeyError
            If the name is empty, has a dot, or is taken.
        TypeError
            If `module` is no module.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._set_module(name, module)

    def _set_module(self, name: str, module: Module | None) -> None:
        for hook in global_hooks.module_registration.values():
            replaced = hook(self, name, module)
            module = module if replaced is None else replaced
        self._modules[name] = module

    register_module = add_module

    # --- attributes ---

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            members = self.__dict__.get(table)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            if "_parameters" not in self.__dict__:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, self._parameters)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in self.__dict__:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, self._modules)
            # Asks for no attribute: a __getattr__ may not be ready yet.
            self._set_module(name, value)
        elif isinstance(value, Buffer):
            if "_buffers" not in self.__dict__:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            self._forget(name, self._buffers)
            self.register_buffer(name, value, value.persistent)
        elif not self._replace(name, value):
            object.__setattr__(self, name, value)

    def _forget(self, name: str, keep: dict[str, Any]) -> None:
        """Take a name out of wherever it stands, except out of `keep`."""
        self.__dict__.pop(name, None)
        for table in (self._parameters, self._buffers, self._modules):
            if table is not keep:
                table.pop(name, None)
        if keep is not self._buffers:
            self._non_persistent_buffers_set.discard(name)

    def _replace(self, name: str, value: Any) -> bool:
        """Put a plain value in the place of a registered name; return whether it is one."""
        members = self.__dict__
        if name in members.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' "
                    "(tensorplug.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
            return True
        if name in members.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' "
                    "(tensorplug.nn.Module or None expected)"
                )
            self._set_module(name, None)
            return True
        if name in members.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as buffer '{name}' "
                    "(tensorplug.nn.Buffer, tensorplug.Tensor or None expected)"
                )
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
            return True
        return False

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers}
        names.update(self._modules)
        return sorted(name for name in names if not name[0].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in HOOK_TABLES:  # a pickle from before the table existed
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    # --- modes ---

    def train(self, mode: bool = True) -> Self:
        """Set this module and all below to training mode, or to evaluation mode; return it.

        Raises
        ------
        ValueError
            If `mode` is no bool.
        """
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {mode!r}")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Set this module and all below to evaluation mode; return it."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make all parameters require grad, or freeze them; return the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for parameter in self.parameters():
            gradient = parameter.grad
            if gradient is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = gradient.detach()
                parameter.grad.zero_()

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn(module)`` for all modules below, then for this one; return it.

        Examples
        --------
        >>> import tensorplug as tp
        >>> def fill(module):
        ...     if isinstance(module, tp.nn.Linear):
        ...         tp.nn.init.ones_(module.weight)
        >>> tp.nn.Sequential(tp.nn.Linear(2, 1)).apply(fill)[0].weight
        Parameter containing:
        tensor([[1., 1.]], requires_grad=True)
        """
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # --- text ---

    def extra_repr(self) -> str:
        """Return what ``repr`` shows of the module itself; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        below = [f"({name}): {indent(repr(module), 2)}" for name, module in self._modules.items()]
        return framed(self._get_name(), lines, below)

    def _repr_html_(self) -> str:
        from .notebook import as_html  # on first use: saves import time

        return as_html(self)


def framed(name: str, lines: list[str], below: list[str]) -> str:
    """Return ``name(...)`` with the module's own lines, then those of the modules below."""
    if len(lines) == 1 and not below:
        return f"{name}({lines[0]})"
    inner = lines + below
    return f"{name}({''.join(f'{chr(10)}  {line}' for line in inner)}{chr(10) if inner else ''})"


def indent(text: str, spaces: int) -> str:
    """Return `text` with all lines but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def _typename(value: Any) -> str:
    return type(value).__name__


def _add_mover(device_type: str) -> None:
    """Give Module the method that moves it to a device type, such as ``module.<type>()``."""

    def move(self: Module, device: int | str | Device | None = None) -> Module:
        if device is None or isinstance(device, int):
            where = Device(device_type, device)
        else:
            where = Device(device)
        # Not by `to`: a subclass may lead its own `to` through this.
        return self._apply(lambda tensor: tensor.to(where))

    move.__doc__ = f"Move the module to a {device_type!r} device, by default the current one."
    move.__name__, move.__qualname__ = device_type, f"Module.{device_type}"
    if not hasattr(Module, device_type):
        setattr(Module, device_type, move)


device_members.listeners.append(_add_mover)
for _type in device_members.types:
    _add_mover(_type)
