"""Checkpoints of modules: ``state_dict`` and ``load_state_dict``."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tensorplug.autograd import no_grad
from tensorplug.autograd.graph.handles import RemovableHandle
from tensorplug.core import Tensor

from .module_base import Hook, ModuleBase, add_hook
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

_EXTRA_STATE = "_extra_state"


class StateDict(OrderedDict[str, Any]):
    """A state dictionary: values by path, and the modules' versions in ``_metadata``."""

    _metadata: OrderedDict[str, dict[str, Any]]

    def copy(self) -> StateDict:
        """Return a shallow copy that keeps the versions."""
        clone = StateDict(self)
        if hasattr(self, "_metadata"):
            clone._metadata = self._metadata
        return clone


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict`` did not find in the checkpoint, or in the module."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, "
            f"unexpected_keys={self.unexpected_keys!r})"
        )


class ModuleStateDict(ModuleBase):
    """Saving to and loading from plain dictionaries."""

    _version: int = 1

    # --- saving ---

    def get_extra_state(self) -> Any:
        """Return what belongs in the checkpoint beside tensors; override with `set_extra_state`."""
        raise RuntimeError(
            f"{self._get_name()}.get_extra_state() is only called where a subclass overrides it"
        )

    def set_extra_state(self, state: Any) -> None:
        """Take over what `get_extra_state` returned."""
        raise RuntimeError(
            f"{self._get_name()}.set_extra_state() is only called where a subclass overrides it"
        )

    def _persistent_buffers(self) -> dict[str, Tensor | None]:
        return {
            name: buffer
            for name, buffer in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put the tensors of this module, not of those below, into `destination`."""
        for name, tensor in (*self._parameters.items(), *self._persistent_buffers().items()):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Return parameters and persistent buffers by path.

        Parameters
        ----------
        *args
            Destination, prefix and keep_vars by position, as older code has them.
        destination : dict, optional
            What to fill.
        prefix : str
            Put before each path.
        keep_vars : bool
            Return the tensors themselves instead of detached ones over the same memory.

        Examples
        --------
        >>> import tensorplug as tp
        >>> list(tp.nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
        """
        if args:
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and not keep_vars else keep_vars
        if destination is None:
            destination = StateDict()
            destination._metadata = OrderedDict()
        module = cast("Module", self)
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(module, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            replaced = hook(module, destination, prefix, metadata)
            if not isinstance(hook, _Replacing):
                if replaced is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif replaced is not None:
                destination = replaced
        return destination

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before the state is gathered."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after the state is gathered."""
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """Register a post-hook that may also return another dictionary."""
        return add_hook(self._state_dict_hooks, _Replacing(hook))

    # --- loading ---

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook` before a module's own tensors are loaded.

        Its arguments: ``module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs``; it may change the dictionary and the lists.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Hook, with_module: bool = False
    ) -> RemovableHandle:
        return add_hook(
            self._load_state_dict_pre_hooks, hook if with_module else _WithoutModule(hook)
        )

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the lists."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the tensors of this module, not of those below; collect what does not fit."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                cast("Module", self), state_dict, prefix, local_metadata, strict, missing_keys,
                unexpected_keys, error_msgs,
            )  # fmt: skip
        own = {**self._parameters, **self._persistent_buffers()}
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        for name, present in own.items():
            key = prefix + name
            if present is None:
                continue
            if key in state_dict:
                error = self._load_tensor(name, key, present, state_dict[key], assign)
                if error is not None:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE
        if _overrides(self, "set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra_key:
                    continue
                name, dot, _ = key[len(prefix) :].partition(".")
                if name not in (self._modules if dot else own):
                    unexpected_keys.append(key)

    def _load_tensor(
        self, name: str, key: str, present: Tensor, loaded: Any, assign: bool
    ) -> str | None:
        """Load one tensor; return what is wrong with it, or None."""
        if not isinstance(loaded, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                f"from checkpoint but received {type(loaded)}"
            )
        if present.dim() == 0 and tuple(loaded.shape) == (1,):
            loaded = loaded[0]
        if loaded.shape != present.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {loaded.shape} from "
                f"checkpoint, the shape in current model is {present.shape}."
            )
        if present.is_meta and not loaded.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                UserWarning,
                stacklevel=2,
            )
        try:
            if assign:
                if isinstance(present, Parameter) and not isinstance(loaded, Parameter):
                    loaded = Parameter(loaded, requires_grad=present.requires_grad)
                elif isinstance(present, Parameter):
                    loaded.requires_grad_(present.requires_grad)
                setattr(self, name, loaded)
            else:
                with no_grad():
                    present.copy_(loaded)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{present.shape} and whose dimensions in the checkpoint are {loaded.shape}, an "
                f"exception occurred : {error.args}."
            )
        return None

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy parameters and buffers from what :meth:`state_dict` returned.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
            The values by path.
        strict : bool
            Fail if paths are missing or unknown.
        assign : bool
            Make the given tensors the module's own, with their dtype and device, instead of
            copying.

        Returns
        -------
        IncompatibleKeys
            The paths that are missing and those that are unknown.

        Raises
        ------
        TypeError
            If `state_dict` is no mapping.
        RuntimeError
            If something does not fit; the message lists everything that does not.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        values = StateDict(state_dict)  # hooks may change it
        if metadata is not None:
            values._metadata = metadata
        _load_tree(cast("Module", self), values, "", strict, assign, missing, unexpected, errors)
        if strict:
            if unexpected:
                errors.insert(0, _listing("Unexpected", unexpected))
            if missing:
                errors.insert(0, _listing("Missing", missing))
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {self._get_name()}:\n\t" + "\n\t".join(errors)
            )
        return IncompatibleKeys(missing, unexpected)


# Classes rather than functions within functions, so that modules with hooks can be pickled.
class _Replacing:
    """A hook that may return another dictionary."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook

    def __call__(self, *args: Any) -> Any:
        return self.hook(*args)


class _WithoutModule:
    """A loading hook of the older form, which does not get the module."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook

    def __call__(self, module: Module, *args: Any) -> None:
        self.hook(*args)


def _load_tree(
    module: Module,
    values: StateDict,
    prefix: str,
    strict: bool,
    assign: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    metadata = getattr(values, "_metadata", {}).get(prefix[:-1], {})
    if assign:
        metadata = {**metadata, "assign_to_params_buffers": True}
    # Always gathered as for strict loading: without `strict` the lists are returned instead.
    module._load_from_state_dict(values, prefix, metadata, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}{name}."
            below = StateDict({key: value for key, value in values.items() if key.startswith(path)})
            if hasattr(values, "_metadata"):
                below._metadata = values._metadata
            _load_tree(child, below, path, strict, assign, missing, unexpected, errors)
    incompatible = IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, incompatible) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                "return new values; change the lists of the given incompatible_keys in place"
            )


def _listing(what: str, keys: list[str]) -> str:
    quoted = ", ".join(f'"{key}"' for key in keys)
    return f"{what} key(s) in state_dict: {quoted}. "


def _overrides(module: ModuleStateDict, name: str) -> bool:
    return getattr(type(module), name) is not getattr(ModuleStateDict, name)
