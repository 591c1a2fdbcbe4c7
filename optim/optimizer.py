"""The base of optimizers: parameter groups, state, hooks and checkpoints."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeAlias

from tensorplug.autograd import enable_grad, set_grad_enabled
from tensorplug.autograd.graph.handles import RemovableHandle
from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.tensor.layout import strided

from .groups import by_kind, new_group, repr_of_groups, updates_together
from .state import load_group, pack_groups, restore_state

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Closure: TypeAlias = Callable[[], Any]


# The hooks of all optimizers.
_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of any optimizer; it may return others."""
    return _add_hook(_step_pre_hooks, hook, False)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of any optimizer."""
    return _add_hook(_step_post_hooks, hook, False)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a ``step`` that runs the optimizer's hooks around it, once however it is nested."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._stepping or "_optimizer_step_pre_hooks" not in self.__dict__:
            # Nested, or a wrapper of another optimizer that has not called Optimizer.__init__.
            self._steps_taken += not self._stepping
            return step(self, *args, **kwargs)
        for hook in [*_step_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
            replaced = hook(self, args, kwargs)
            if replaced is not None:
                if not (isinstance(replaced, tuple) and len(replaced) == 2):
                    raise RuntimeError(
                        f"{hook} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{replaced}."
                    )
                args, kwargs = replaced
        self._stepping = True
        try:
            result = step(self, *args, **kwargs)
        finally:
            self._stepping = False
        self._steps_taken += 1
        for hook in [*self._optimizer_step_post_hooks.values(), *_step_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    hooked._runs_hooks = True  # type: ignore[attr-defined]
    return hooked


class Optimizer:
    """Base of optimizers.

    A subclass passes its options to ``super().__init__(params, defaults)`` and defines
    :meth:`update`, which handles one parameter, or else overrides :meth:`step` as a whole. With an
    option ``foreach`` it also defines :meth:`update_together`, which handles several.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize. A dict is a group: its ``"params"``, and options that differ from
        `defaults`.
    defaults : dict
        The options of groups that don't say otherwise.

    Attributes
    ----------
    param_groups : list of dict
        The groups with all their options.
    state : dict
        What the optimizer remembers of each parameter.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class SignDescent(Optimizer):
    ...     def update(self, parameter, gradient, state, group):
    ...         parameter.sub_(gradient.sign() * group["lr"])
    >>> x = tp.tensor([1.0, -1.0], requires_grad=True)
    >>> x.square().sum().backward()
    >>> SignDescent([x], {"lr": 0.5}).step()
    >>> x
    tensor([ 0.5000, -0.5000], requires_grad=True)
    """

    param_groups: list[dict[str, Any]]
    state: defaultdict[Tensor, Any]
    defaults: dict[str, Any]

    #: Whether a step runs now, and how many have; here for what does not call ``Optimizer.__init__``.
    _stepping: bool = False
    _steps_taken: int = 0

    #: The hooks of one optimizer, by the attribute that holds them.
    _HOOKS: ClassVar[tuple[str, ...]] = (
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_optimizer_state_dict_pre_hooks",
        "_optimizer_state_dict_post_hooks",
        "_optimizer_load_state_dict_pre_hooks",
        "_optimizer_load_state_dict_post_hooks",
    )
    _optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("step")
        if own is not None and not hasattr(own, "_runs_hooks"):
            cls.step = _with_hooks(own)  # type: ignore[method-assign]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type(params).__name__}; for a single tensor pass [tensor]"
            )
        self._make_hooks()
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for name in self._HOOKS:
            setattr(self, name, OrderedDict())
        self._stepping = False
        self._steps_taken = 0

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Any]], with_indices: bool = False
    ) -> dict[tuple[Device | None, Any], tuple[list[list[Any]], list[int]]]:
        """Sort lists of tensors that belong together by device and dtype of the first list's."""
        sorted_lists: dict[tuple[Device | None, Any], tuple[list[list[Any]], list[int]]] = {}
        for index, together in enumerate(zip(*tensorlistlist, strict=True)):
            key = (together[0].device, together[0].dtype)
            lists, indices = sorted_lists.setdefault(key, ([[] for _ in tensorlistlist], []))
            for values, value in zip(lists, together, strict=True):
                values.append(value)
            if with_indices:
                indices.append(index)
        return sorted_lists

    # --- groups ---

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, for example a layer that is unfrozen during training.

        Parameters
        ----------
        param_group : dict
            ``"params"`` (a tensor or an ordered collection of them, or of pairs with their names),
            and options that differ from the defaults.

        Raises
        ------
        TypeError
            If it is no dict, or holds something other than tensors.
        ValueError
            If an option without default is missing, a tensor is no leaf, or one is in a group
            already.
        """
        known = {id(param) for group in self.param_groups for param in group["params"]}
        named = bool(self.param_groups) and "param_names" in self.param_groups[0]
        group = new_group(param_group, self.defaults, known, named if self.param_groups else None)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradient of every parameter.

        Parameters
        ----------
        set_to_none : bool
            Drop the gradients, which saves memory and time; otherwise fill them with zeros.
        """
        for group in self.param_groups:
            for parameter in group["params"]:
                clear_gradient(parameter, set_to_none)

    # --- the step ---

    @_with_hooks
    def step(self, closure: Closure | None = None) -> Any:
        """Update every parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and the gradients anew, and returns the loss.

        Returns
        -------
        Any
            What `closure` returned, else None.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if parameters:
                with set_grad_enabled(bool(group.get("differentiable", False))):
                    self.update_group(parameters, group)
        return loss

    def update_group(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update the parameters of a group that have a gradient, together if the options let it."""
        together = updates_together(group) and (
            self._counts_together or not group.get("capturable")
        )
        kinds = by_kind(parameters)
        for alike in kinds:
            if self._refusal is not None and _is_sparse(alike[0]):
                raise RuntimeError(self._refusal.format(name=type(self).__name__))
        for alike in kinds:
            if _is_sparse(alike[0]):
                for parameter in alike:
                    self.update_sparse(parameter, parameter.grad, self.state[parameter], group)
            elif together:
                self.update_together(alike, group)
            else:
                self._update_each(alike, group)

    #: Whether the op that updates all parameters counts their steps on the device, with ``capturable``.
    _counts_together: ClassVar[bool] = False

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device; a subclass with `foreach` does it in one op."""
        self._update_each(parameters, group)

    def _update_each(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            gradient: Any = parameter.grad
            self.update(parameter, gradient, self.state[parameter], group)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place; a subclass defines it. Nothing is recorded meanwhile."""
        raise NotImplementedError(f"{type(self).__name__} defines neither update nor step")

    #: Why the class takes no sparse gradients; None if it does.
    _refusal: ClassVar[str | None] = "{name} does not support sparse gradients"

    def update_sparse(
        self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter whose gradient is sparse, in place; a subclass that can sets no `_refusal`."""
        raise NotImplementedError(f"{type(self).__name__} does not define update_sparse")

    # --- scaled gradients ---

    #: By device: what a scaler found in the gradients, while it has the optimizer step; see GradScaler.step.
    _found_inf: Mapping[Device, Tensor] | None = None

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Whether :meth:`step` looks itself, on the device, if gradients were finite; torch's name."""
        if self._scales is not None:
            return self._scales
        return self._skips_on_device and all([group.get("fused") for group in self.param_groups])

    @_step_supports_amp_scaling.setter
    def _step_supports_amp_scaling(self, value: bool) -> None:
        self._scales = value

    #: What an optimizer of a program said of itself.
    _scales: bool | None = None

    #: Whether the class can do that with the option ``fused``.
    _skips_on_device: ClassVar[bool] = False

    def found_inf_of(self, parameter: Tensor) -> Tensor | None:
        """Return what says on a parameter's device whether to skip this step; None if nothing does."""
        return None if self._found_inf is None else self._found_inf.get(parameter.device)

    # --- hooks ---

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return others."""
        return _add_hook(self._optimizer_step_pre_hooks, hook, False)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook, False)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before :meth:`state_dict`."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after :meth:`state_dict`; it may return another."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another state."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # --- checkpoints ---

    def state_dict(self) -> dict[str, Any]:
        """Return state and options as plain data, in torch's layout.

        Returns
        -------
        dict
            ``"state"``: what is remembered, by the parameter's number; ``"param_groups"``: the
            options of each group, with the numbers of its parameters. Tensors are shared, not
            copied.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        state_dict = pack_groups(self.param_groups, self.state)
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned, of this or an equal optimizer.

        State is converted to each parameter's dtype and device.

        Raises
        ------
        ValueError
            If the number of groups, or of the parameters in one, differs. Nothing is changed then.
        """
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved)} instead of {len(self.param_groups)}"
            )
        for i, (group, loaded) in enumerate(zip(self.param_groups, saved, strict=True)):
            if len(group["params"]) != len(loaded["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    f"optimizer's group: group {i} has {len(loaded['params'])} parameters instead "
                    f"of {len(group['params'])}"
                )
        state = restore_state(state_dict["state"], saved, self.param_groups)
        groups = [
            load_group(group, loaded)
            for group, loaded in zip(self.param_groups, saved, strict=True)
        ]
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hooks()
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)  # a checkpoint from before the option existed

    def __repr__(self) -> str:
        return f"{type(self).__name__} ({repr_of_groups(self.param_groups)})"


def _add_hook(
    hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool
) -> RemovableHandle:
    handle = RemovableHandle.register(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _is_sparse(parameter: Any) -> bool:
    """Return whether the gradient of a parameter is sparse."""
    return bool(parameter.grad.layout is not strided)


def clear_gradient(parameter: Tensor, set_to_none: bool) -> None:
    """Drop the gradient of a parameter, or fill it with zeros."""
    gradient = parameter.grad
    if gradient is None:
        return
    if set_to_none:
        parameter.grad = None
        return
    if gradient.grad_fn is not None:
        gradient.detach_()
    else:
        gradient.requires_grad_(False)
    gradient.zero_()
