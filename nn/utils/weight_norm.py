"""Weight and spectral normalisation by hooks, as older code has them."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import no_grad

from .. import functional as F
from ..module import Module
from ..parameter import Parameter, is_lazy
from .parametrizations import norm_except

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _WeightNorm:
    """A forward pre-hook that puts the weight together."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute(self, module: Module) -> Any:
        """Return the weight."""
        g = getattr(module, f"{self.name}_g")
        v = getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module))


def _refuse_uninitialized(weight: Any, name: str) -> None:
    if is_lazy(weight):
        raise ValueError(
            f"The module passed to `{name}` can't have uninitialized parameters: call it with a batch first"
        )


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a parameter into its norm ``name_g`` and direction ``name_v``.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The parameter.
    dim : int or None
        Along which norms are taken separately; None for one norm altogether.

    Notes
    -----
    :func:`tensorplug.nn.utils.parametrizations.weight_norm` is the newer form.

    Examples
    --------
    >>> import tensorplug as tp
    >>> layer = weight_norm(tp.nn.Linear(4, 3))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_g', 'weight_v']
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, _WeightNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
    hook = _WeightNorm(name, dim)
    weight = getattr(module, name)
    _refuse_uninitialized(weight, "WeightNorm")
    norms = Parameter(norm_except(weight.detach(), hook.dim))
    del module._parameters[name]
    module.register_parameter(f"{name}_g", norms)
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo :func:`weight_norm`.

    Raises
    ------
    ValueError
        If there is none on that parameter.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, _WeightNorm) and hook.name == name:
            weight = hook.compute(module)
            delattr(module, name)
            del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"]
            setattr(module, name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")


class _SpectralNorm:
    """A forward pre-hook that divides the weight by its largest singular value."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def matrix(self, weight: Any) -> Any:
        """Return the weight as a matrix with the outputs in rows."""
        if self.dim:
            others = [d for d in range(weight.ndim) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.reshape(weight.shape[0], -1)

    def compute(self, module: Module, iterate: bool) -> Any:
        """Return the weight; in training the vectors come nearer to the singular ones first."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.matrix(weight)
        if iterate:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.detach().mH.mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.detach().mv(v), dim=0, eps=self.eps))
        u, v = u.clone(), v.clone()
        return weight / u.vdot(matrix.mv(v)).real

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module, module.training))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a parameter by its largest singular value, approximated by power iteration.

    Parameters
    ----------
    module : Module
        Changed in place: the parameter becomes ``name_orig``.
    name : str
        The parameter.
    n_power_iterations : int
        Iterations per forward pass in training.
    eps : float
        Norms count as at least this.
    dim : int, optional
        The dimension of the outputs: 0, but 1 for transposed convolutions.

    Notes
    -----
    :func:`tensorplug.nn.utils.parametrizations.spectral_norm` is the newer form.
    """
    if n_power_iterations <= 0:
        raise ValueError(
            f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
        )
    for present in module._forward_pre_hooks.values():
        if isinstance(present, _SpectralNorm) and present.name == name:
            raise RuntimeError(
                f"Cannot register two spectral_norm hooks on the same parameter {name}"
            )
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    hook = _SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    _refuse_uninitialized(weight, "SpectralNorm")
    with no_grad():
        rows, columns = hook.matrix(weight.detach()).shape
        u = F.normalize(weight.detach().new_empty(rows).normal_(0, 1), dim=0, eps=eps)
        v = F.normalize(weight.detach().new_empty(columns).normal_(0, 1), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo :func:`spectral_norm`; the parameter keeps its normalised value.

    Raises
    ------
    ValueError
        If there is none on that parameter.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, _SpectralNorm) and hook.name == name:
            with no_grad():
                weight = hook.compute(module, False)
            delattr(module, name)
            for suffix in ("orig", "u", "v"):
                delattr(module, f"{name}_{suffix}")
            module.register_parameter(name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
