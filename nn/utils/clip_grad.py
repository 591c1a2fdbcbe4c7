"""Bounding gradients before an optimizer's step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import stack, zeros
from tensorplug.core.tensor.creation import tensor
from tensorplug.core.tensor.layout import strided


def _as_list(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Iterable[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,  # noqa: ARG001
) -> Tensor:
    """Return the norm of all elements of several tensors together.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        The tensors.
    norm_type : float
        The p of the norm; may be infinite.
    error_if_nonfinite : bool
        Fail if the norm is infinite or nan.
    foreach : bool, optional
        Accepted for torch's sake; without effect.

    Raises
    ------
    RuntimeError
        See `error_if_nonfinite`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> get_total_norm([tp.tensor([3.0]), tp.tensor([4.0])])
    tensor(5.)
    """
    members = _as_list(tensors)
    norm_type = float(norm_type)
    if not members:
        return tensor(0.0)
    with no_grad():
        norms = [_norm_of_all(alike, norm_type) for alike in _by_mesh(members)]
        device = norms[0].device
        total = norms[0]
        if len(norms) > 1:
            total = _norm(stack([norm.to(device) for norm in norms]), norm_type)
    if error_if_nonfinite and not math.isfinite(float(total.item())):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def _by_mesh(members: list[Tensor]) -> list[list[Any]]:
    """Sort tensors by how they are divided among processes."""
    kinds: dict[Any, list[Any]] = {}
    for member in members:
        divided: Any = member
        mesh = getattr(divided, "device_mesh", None)
        kind = None if mesh is None else (id(mesh), divided.placements)
        kinds.setdefault(kind, []).append(member)
    return list(kinds.values())


def _norm_of_all(members: list[Any], order: float) -> Tensor:
    """Return the norm of tensors that are divided alike, or not at all."""
    reduced = getattr(members[0], "reduced_norm", None)
    if reduced is not None:
        # A process may have no rows of a tensor, and these have no largest element.
        members = [member for member in members if member.numel()] or [members[0].new_zeros(1)]
    device = members[0].device
    total = _norm(stack([_norm(member, order).to(device) for member in members]), order)
    return total if reduced is None else reduced(total, order)


def _norm(values: Any, order: float) -> Tensor:
    if values.layout is not strided:
        values = values.coalesce().values()
        if not values.numel():
            return zeros((), dtype=values.dtype, device=values.device)
    size = values.abs()
    if order == math.inf:
        return size.amax()
    if order == -math.inf:
        return size.amin()
    if order == 0:
        return (size != 0).sum().to(size.dtype)
    if order == 1:
        return size.sum()
    if order == 2:
        return size.square().sum().sqrt()
    return size.pow(order).sum().pow(1.0 / order)


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,  # noqa: ARG001
) -> None:
    """Scale the gradients by ``max_norm / total_norm`` where that is less than 1.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Whose gradients are scaled, in place.
    max_norm : float
        The bound.
    total_norm : Tensor
        Their norm, from :func:`get_total_norm`.
    foreach : bool, optional
        Accepted for torch's sake; without effect.
    """
    gradients = _gradients(_as_list(parameters))
    if not gradients:
        return
    # Multiplying by 1 where nothing is to be clipped avoids waiting for the device.
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor.to(gradient.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of `parameters`, taken together, down to a norm of at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Whose gradients are scaled, in place.
    max_norm : float
        The bound.
    norm_type : float
        The p of the norm; may be infinite.
    error_if_nonfinite : bool
        Fail if the norm is infinite or nan.
    foreach : bool, optional
        Accepted for torch's sake; without effect.

    Returns
    -------
    Tensor
        The norm before.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.zeros(2, requires_grad=True)
    >>> x.grad = tp.tensor([3.0, 4.0])
    >>> clip_grad_norm_(x, 1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    members = _as_list(parameters)
    total = get_total_norm(_gradients(members), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(members, max_norm, total, foreach)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor],
    clip_value: float,
    foreach: bool | None = None,  # noqa: ARG001
) -> None:
    """Bound every element of the gradients to [-clip_value, clip_value], in place.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Whose gradients are bounded.
    clip_value : float
        The bound.
    foreach : bool, optional
        Accepted for torch's sake; without effect.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.zeros(2, requires_grad=True)
    >>> x.grad = tp.tensor([-3.0, 0.5])
    >>> clip_grad_value_([x], 1.0)
    >>> x.grad
    tensor([-1.0000,  0.5000])
    """
    bound = float(clip_value)
    with no_grad():
        for gradient in _gradients(_as_list(parameters)):
            gradient.clamp_(-bound, bound)


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Call :func:`clip_grad_norm_`, under the name that torch has deprecated, with a warning."""
    warnings.warn("clip_grad_norm is deprecated: call clip_grad_norm_", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
