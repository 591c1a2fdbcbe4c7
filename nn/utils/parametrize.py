"""Parametrisations: tensors of a module that are computed from others."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import DType, Tensor
from tensorplug.core.contexts import Block, Steps

from ..module import Module
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cached: list[None] = []  # an item per context open
_cache: dict[tuple[int, str], Tensor] = {}


def cached() -> Block:
    """Within this context each parametrised tensor is computed once.

    Examples
    --------
    ::

        with parametrize.cached():
            output = model(input)
    """

    def steps() -> tuple[Steps, Steps]:
        outermost = [] if _cached else [_cache.clear]
        return [*outermost, partial(_cached.append, None)], [_cached.pop, *outermost]

    return Block(steps)


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, applied in turn, and the tensors they start from.

    Attributes
    ----------
    original : Parameter or Tensor
        What the first parametrisation is given; `original0`, `original1`, … if it takes several.
    """

    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = tuple(original.shape)
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            self._check_kept(original, new)
            with no_grad():
                original.data = new
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, requires_grad=original.requires_grad)
                else:
                    part = part.detach().requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            self._check_result(original.dtype, before)

    def _check_kept(self, original: Tensor, new: Tensor) -> None:
        if original.dtype is not new.dtype:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
            )
        if original.device != new.device:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the device."
            )

    def _check_result(self, dtype: DType, shape: tuple[int, ...]) -> None:
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(
                f"A parametrization must return a tensor. Got {type(result).__name__}."
            )
        if result.dtype is not dtype:
            raise ValueError(
                "Registering a parametrization may not change the dtype of the tensor, unless `unsafe` "
                f"flag is enabled.\nunparametrized dtype: {dtype}\nparametrized dtype: "
                f"{result.dtype}"
            )
        if tuple(result.shape) != shape:
            raise ValueError(
                "Registering a parametrization may not change the shape of the tensor, unless `unsafe` "
                f"flag is enabled.\nunparametrized shape: {list(shape)}\nparametrized shape: "
                f"{list(result.shape)}"
            )

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrised tensor becomes `value`."""
        with no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                new = module.right_inverse(new)
            parts = [new] if self.is_tensor else list(new)
            if len(parts) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(parts)}."
                )
            for original, part in zip(self._originals(), parts, strict=True):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(part).__name__}"
                    )
                if part.dtype is not original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {part.dtype} while the "
                        f"original has dtype {original.dtype}"
                    )
                original.data = part.detach().clone()

    def forward(self) -> Tensor:
        """Return the parametrised tensor."""
        modules = list(self)
        x: Any = modules[0](*self._originals())
        for module in modules[1:]:
            x = module(x)
        return x


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _make_class(module: Module) -> None:
    """Give the module a class of its own, on which the properties are put."""
    cls = type(module)

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is not None:
            return known
        replica = self.__new__(self.__class__)
        memo[id(self)] = replica
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return replica

    def refused(_self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See the notes "
            "on saving and loading."
        )

    members: dict[str, Any] = {"__getstate__": refused}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _add_property(module: Module, name: str) -> None:
    def compute(self: Any) -> Tensor:
        if name in self.__dict__:  # where functional_call puts another value
            given: Tensor = self.__dict__[name]
            return given
        whole = self.parametrizations[name]
        if not _cached:
            return whole()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = whole()
        return _cache[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(compute, assign))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Replace a parameter or buffer by what `parametrization` makes of it.

    Parameters
    ----------
    module : Module
        Changed in place.
    tensor_name : str
        The parameter or buffer.
    parametrization : Module
        Its ``forward`` gives the tensor; its ``right_inverse``, if there is one, what to start from.
    unsafe : bool
        Whether shape and dtype may change.

    Returns
    -------
    Module
        The module.

    Raises
    ------
    ValueError
        If there is no such tensor, or the parametrisation changes its shape or dtype.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Symmetric(tp.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).transpose(-1, -2)
    >>> layer = register_parametrization(tp.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.t()).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        present = module.parametrizations[tensor_name]
        if not unsafe:
            _check_next(getattr(module, tensor_name), parametrization)
        present.append(parametrization)
        present.unsafe |= unsafe
        return module
    if tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        if original is None:
            raise ValueError(f"cannot parametrize {tensor_name!r}, which is None")
        if not is_parametrized(module):
            _check_first(original, parametrization, unsafe)
        whole = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _make_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = whole
        return module
    raise ValueError(
        f"Module '{type(module).__name__}' does not have a parameter, a buffer, or a parametrized element "
        f"with name '{tensor_name}'"
    )


def _check_first(original: Tensor, parametrization: Module, unsafe: bool) -> None:
    """Check a parametrisation without an inverse before anything is changed."""
    if not unsafe and not hasattr(parametrization, "right_inverse"):
        _check_on(original, parametrization)


def _check_on(value: Tensor, parametrization: Module) -> None:
    with no_grad():
        start: Any = value
        if hasattr(parametrization, "right_inverse"):
            with suppress(NotImplementedError):
                start = parametrization.right_inverse(value)
        result = parametrization(start) if isinstance(start, Tensor) else parametrization(*start)
    _check_like(result, value, "A parametrization")


def _check_next(value: Tensor, parametrization: Module) -> None:
    """Check a parametrisation of what others compute: it and its inverse keep shape and dtype."""
    with no_grad():
        result: Any = parametrization(value)
        _check_like(result, value, "A parametrization")
        if hasattr(parametrization, "right_inverse"):
            with suppress(NotImplementedError):
                _check_like(
                    parametrization.right_inverse(result), value, "parametrization.right_inverse"
                )


def _check_like(result: Any, value: Tensor, what: str) -> None:
    if not isinstance(result, Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(result).__name__}.")
    for kind, before, after in (
        ("dtype", value.dtype, result.dtype),
        ("shape", list(value.shape), list(result.shape)),
    ):
        if before != after:
            wanted = (
                f"Registering a parametrization may not change the {kind} of the tensor"
                if what == "A parametrization"
                else f"The tensor returned by {what} must have the same {kind} as the tensor"
            )
            raise ValueError(f"{wanted}, unless `unsafe` flag is enabled: {before} became {after}")


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether the module, or that tensor of it, is parametrised."""
    found = getattr(module, "_modules", {}).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Undo :func:`register_parametrization`.

    Parameters
    ----------
    module : Module
        Changed in place.
    tensor_name : str
        The tensor.
    leave_parametrized : bool
        Whether it keeps its present value, rather than get the original back.

    Raises
    ------
    ValueError
        If the tensor is not parametrised, or has several originals and none is to be left.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"Module {type(module).__name__} does not have a parametrization on {tensor_name}"
        )
    whole = module.parametrizations[tensor_name]
    if whole.is_tensor:
        original = whole.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name).detach().clone()
            if isinstance(original, Parameter):
                original.data = value
            else:
                original = value
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        tracked = any(part.requires_grad for part in whole._originals())
        original = Parameter(value.detach().clone()) if tracked else value.detach().clone()
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
            "terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type[Module]:
    """Return the class that the module had before it was parametrised."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give a module the parametrisations of another, and the tensors below them.

    Parameters
    ----------
    from_module, to_module : Module
        The second one is changed in place.
    tensor_name : str, optional
        Only this tensor's; by default all.
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, parametrization)
        source = from_module.parametrizations[name]._originals()
        target = to_module.parametrizations[name]._originals()
        for ours, theirs in zip(target, source, strict=True):
            ours.data = theirs.detach().clone()
    return to_module
