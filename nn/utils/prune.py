"""Pruning: parts of a parameter set to zero by a mask, which can be laid over others and made permanent.

A pruned parameter ``weight`` becomes ``weight_orig``, which is trained, with a buffer ``weight_mask``; their
product is the attribute ``weight``, made anew before each call of the module.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from tensorplug.core import Tensor
from tensorplug.core.ops import (
    kthvalue,
    norm as norm_of,
    ones_like,
    rand,
    rand_like,
    topk,
    zeros_like,
)

from ..module import Module
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """A way to choose what to prune; an object of it is the hook that prunes before each call.

    A class of one's own sets `PRUNING_TYPE` to ``"unstructured"``, ``"structured"`` (then with an
    attribute `dim`) or ``"global"``, and defines :meth:`compute_mask`.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str | None = None

    def __call__(self, module: Module, inputs: Any) -> None:
        """Set the module's attribute to the pruned tensor."""
        setattr(module, self._name(), self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for a tensor of scores; zeros of `default_mask` remain."""

    def _name(self) -> str:
        assert self._tensor_name is not None, "a module has to be pruned first"
        return self._tensor_name

    def apply_mask(self, module: Module) -> Tensor:
        """Return the pruned tensor of a module."""
        name = self._name()
        mask, orig = getattr(module, f"{name}_mask"), getattr(module, f"{name}_orig")
        pruned: Tensor = mask.to(dtype=orig.dtype) * orig
        return pruned

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a module's parameter, beyond what is pruned already; return the hook.

        Parameters
        ----------
        module : Module
            Whose parameter.
        name : str
            Its name.
        importance_scores : Tensor, optional
            What decides, instead of the parameter's own elements.
        """
        hooks = module._forward_pre_hooks
        found = [key for key, hook in hooks.items() if _prunes(hook, name)]
        assert len(found) < 2, f"more than one pruning hook on {name}; use a PruningContainer"
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        orig: Any = getattr(module, name)
        scores = orig if importance_scores is None else importance_scores
        assert scores.shape == orig.shape, (
            f"importance_scores should have the same shape as parameter {name} of {module}"
        )
        if found:
            before: Any = hooks[found[0]]
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method = container
            start = getattr(module, f"{name}_mask").detach().clone()
        else:
            start = ones_like(orig)
        mask = method.compute_mask(scores, default_mask=start)  # before anything is changed
        for key in found:
            del hooks[key]
        if not found:
            module.register_parameter(f"{name}_orig", orig)
            del module._parameters[name]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        pruning: BasePruningMethod = method
        return pruning

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Return a tensor pruned, without a module."""
        scores = t if importance_scores is None else importance_scores
        assert scores.shape == t.shape, "importance_scores should have the same shape as tensor t"
        start = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=start)

    def remove(self, module: Module) -> None:
        """Make the pruning of a module permanent."""
        name = self._name()
        weight = self.apply_mask(module)
        delattr(module, name)
        orig: Any = module._parameters.pop(f"{name}_orig")
        orig.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, orig)


def _prunes(hook: Any, name: str) -> bool:
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, in turn: each chooses among what those before left."""

    _pruning_methods: tuple[BasePruningMethod, ...]

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add one, of the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        if method is not None:
            self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of the last method over what the others left."""
        method: Any = self._pruning_methods[-1]
        part: Any
        if method.PRUNING_TYPE == "unstructured":
            part = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` '
                    "defined."
                )
            dim = method.dim + t.dim() if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
            others = [d for d in range(t.dim()) if d != dim]
            part = _along(t, dim, default_mask.sum(dim=others) != 0)
        elif method.PRUNING_TYPE == "global":
            part = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(dtype=t.dtype, copy=True)
        mask[part] = method.compute_mask(t[part], default_mask=default_mask[part]).to(mask.dtype)
        return mask


def _along(t: Tensor, dim: int, index: Any) -> tuple[Any, ...]:
    """Return an index of a tensor that takes all of it but for one dimension."""
    parts: list[Any] = [slice(None)] * t.dim()
    parts[dim] = index
    return tuple(parts)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask as it is."""
        return default_mask


class _OfAmount(BasePruningMethod):
    """Prunes so many elements or slices, or such a share of them."""

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount: float = amount

    def _count(self, size: int) -> int:
        """Return how many of `size` to prune."""
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        return count


# Methods of other libraries call these, which therefore have torch's names.


def _validate_pruning_amount_init(amount: Any) -> None:
    """Raise TypeError or ValueError if `amount` is neither a count nor a share."""
    given: object = amount
    if not isinstance(given, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and amount > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Raise ValueError if `amount` is a count of more than there are."""
    given: object = amount
    if isinstance(given, numbers.Integral) and int(given) > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    """Return how many of so many elements or slices to prune."""
    whole = isinstance(amount, numbers.Integral)
    return int(amount) if whole else round(amount * tensor_size)


def _validate_structured_pruning(t: Tensor) -> None:
    """Raise ValueError if a tensor has no slices."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """Raise IndexError if a tensor has no such dimension."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """Return the norm of each slice along a dimension."""
    chosen = dim % t.dim()
    return norm_of(t, n, [d for d in range(t.dim()) if d != chosen])


class RandomUnstructured(_OfAmount):
    """Prunes elements at random.

    Parameters
    ----------
    amount : int or float
        How many, or which share.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without as many elements."""
        return _without(rand_like(t), default_mask, self._count(t.numel()), largest=True)


class L1Unstructured(_OfAmount):
    """Prunes the elements of the least absolute value.

    Parameters
    ----------
    amount : int or float
        How many, or which share.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without as many elements."""
        return _without(t.abs(), default_mask, self._count(t.numel()), largest=False)


def _without(scores: Tensor, mask: Tensor, count: int, *, largest: bool) -> Tensor:
    result = mask.detach().contiguous().clone()
    if count:
        result.view(-1)[topk(scores.detach().reshape(-1), count, largest=largest).indices] = 0
    return result


class _Structured(_OfAmount):
    """Prunes slices of a tensor along a dimension."""

    PRUNING_TYPE = "structured"
    dim: int

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without as many slices."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        mask = zeros_like(t).detach()
        mask[_along(t, self.dim, self._kept(t.detach(), size, count))] = 1
        return mask * default_mask.to(mask.dtype)

    @abstractmethod
    def _kept(self, t: Tensor, size: int, count: int) -> Tensor:
        """Return an index of the slices to keep."""


class RandomStructured(_Structured):
    """Prunes slices along a dimension at random.

    Parameters
    ----------
    amount : int or float
        How many, or which share.
    dim : int
        Along which dimension.
    """

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _kept(self, t: Tensor, size: int, count: int) -> Tensor:
        chances = rand(size)
        return chances > kthvalue(chances, count).values


class LnStructured(_Structured):
    """Prunes the slices along a dimension that have the least norm.

    Parameters
    ----------
    amount : int or float
        How many, or which share.
    n : int, float, inf, -inf, "fro" or "nuc"
        Of which norm, as ``tp.norm`` takes it.
    dim : int
        Along which dimension.
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def _kept(self, t: Tensor, size: int, count: int) -> Tensor:
        kept: Tensor = topk(_compute_norm(t, self.n, self.dim), size - count).indices
        return kept


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask of one's own.

    Parameters
    ----------
    mask : Tensor
        Of the parameter's shape: 1 for what stays, 0 for what goes.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return what both masks leave."""
        assert default_mask.shape == self.mask.shape, (
            "the mask has another shape than the parameter"
        )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Give a module's parameter a mask that prunes nothing; return the module.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = tp.nn.utils.prune.identity(tp.nn.Linear(2, 1), "bias")
    >>> layer.bias_mask
    tensor([1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of a module's parameter at random; return the module.

    Parameters
    ----------
    module : Module
        Whose parameter.
    name : str
        Its name.
    amount : int or float
        How many elements, or which share.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = tp.nn.utils.prune.random_unstructured(tp.nn.Linear(4, 2), "weight", 0.5)
    >>> layer.weight_mask.sum().item()
    4.0
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of a module's parameter that have the least absolute value; return the module.

    Parameters
    ----------
    module : Module
        Whose parameter.
    name : str
        Its name.
    amount : int or float
        How many elements, or which share.
    importance_scores : Tensor, optional
        What decides, instead of the parameter's own elements.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = tp.nn.Linear(3, 1)
    >>> with tp.no_grad():
    ...     _ = layer.weight.copy_(tp.tensor([[0.5, -0.1, 2.0]]))
    >>> tp.nn.utils.prune.l1_unstructured(layer, "weight", 1).weight_mask
    tensor([[1., 0., 1.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of a module's parameter along a dimension at random; return the module.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = tp.nn.utils.prune.random_structured(tp.nn.Linear(4, 2), "weight", 1, dim=0)
    >>> layer.weight_mask.sum(1).sort().values
    tensor([0., 4.])
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices of a module's parameter along a dimension that have the least norm.

    Parameters
    ----------
    module : Module
        Whose parameter; it is returned.
    name : str
        Its name.
    amount : int or float
        How many slices, or which share.
    n : int, float, inf, -inf, "fro" or "nuc"
        Of which norm.
    dim : int
        Along which dimension.
    importance_scores : Tensor, optional
        What decides, instead of the parameter's own elements.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = tp.nn.Linear(2, 2)
    >>> with tp.no_grad():
    ...     _ = layer.weight.copy_(tp.tensor([[0.5, -0.1], [2.0, 1.0]]))
    >>> tp.nn.utils.prune.ln_structured(layer, "weight", 1, n=2, dim=0).weight_mask
    tensor([[0., 0.],
            [1., 1.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if their elements were those of one.

    Parameters
    ----------
    parameters : iterable of (Module, str)
        Modules and the names of their parameters.
    pruning_method : type
        An unstructured one, such as :class:`L1Unstructured`.
    importance_scores : mapping of (Module, str) to Tensor, optional
        What decides, instead of a parameter's own elements.
    **kwargs
        What the method is made with, such as `amount`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.nn.utils import prune
    >>> net = tp.nn.Sequential(tp.nn.Linear(4, 4), tp.nn.Linear(4, 4))
    >>> prune.global_unstructured(
    ...     [(net[0], "weight"), (net[1], "weight")], prune.L1Unstructured, amount=8
    ... )
    >>> (net[0].weight_mask.sum() + net[1].weight_mask.sum()).item()
    24.0
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores, Mapping | None):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pruned = list(parameters)
    given = importance_scores or {}
    tensors = [getattr(module, name) for module, name in pruned]
    scores: list[Any] = [
        given.get(key, tensor) for key, tensor in zip(pruned, tensors, strict=True)
    ]
    masks: list[Any] = []
    for (module, name), tensor in zip(pruned, tensors, strict=True):
        there = hasattr(module, f"{name}_mask")
        masks.append(getattr(module, f"{name}_mask") if there else ones_like(tensor))
    method: Any = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container = PruningContainer(method)
    mask = container.compute_mask(parameters_to_vector(scores), parameters_to_vector(masks))
    start = 0
    for (module, name), tensor in zip(pruned, tensors, strict=True):
        end = start + tensor.numel()
        custom_from_mask(module, name, mask=mask[start:end].view_as(tensor))
        start = end


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a module's parameter by a mask; return the module.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = tp.nn.utils.prune.custom_from_mask(tp.nn.Linear(1, 2), "bias", tp.tensor([0, 1]))
    >>> layer.bias_mask
    tensor([0., 1.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make the pruning of a module's parameter permanent; return the module.

    Raises
    ------
    ValueError
        If it is not pruned.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.nn.utils import prune
    >>> layer = prune.remove(prune.l1_unstructured(tp.nn.Linear(4, 2), "weight", 0.5), "weight")
    >>> sorted(name for name, _ in layer.named_parameters()), (layer.weight == 0).sum().item()
    (['bias', 'weight'], 4)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and _prunes(hook, name):
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Return whether the module, or one below it, has a pruned parameter.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nn.utils.prune.is_pruned(tp.nn.Linear(2, 1))
    False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for child in module.modules()
        for hook in child._forward_pre_hooks.values()
    )
