"""Vectors to unit length, and elements by the mean square of the channels around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dispatch.op_registry import Delegated, composite
from tensorplug.core.ops.linalg.norms import linalg_vector_norm as vector_norm
from tensorplug.core.ops.rules import check_tensor, in_float32
from tensorplug.core.tensor.shapes import normalize_dim

from ...functional.pooling.pooling import avg_pool3d
from .._gradients import gradients
from ..convolution.unfold import pad_zeros
from ._shared import check_floating, wide

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def _canonical_normalize(
    input: Any, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12
) -> Any:
    check_tensor(input, "normalize")
    ndim = len(input._shape)
    if p == 2 and type(dim) is int and -ndim <= dim < ndim and eps > 0 and not input.is_complex():
        return input, dim % ndim, eps
    if p == 2 and not ndim and dim in (0, -1):
        return Delegated(normalize(input.reshape(1), p, 0, eps).reshape(()))
    return Delegated(input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input))


@composite(
    "input, dim, eps",
    rule=_canonical_normalize,
    delegates="norm those of other norms than 2, or over several dimensions",
    method=False,
)
def normalize(
    input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12
) -> Tensor:
    """Return the vectors along `dim` divided by their p-norm, which counts as at least `eps`.

    Kernels and derivatives are for one dimension and p = 2.
    """
    x = wide(input)
    result: Tensor = (x / vector_norm(x, 2, dim, True).clamp_min(eps)).to(input.dtype)
    return result


def _check_dim(g: Any, input: Any, dim: int, eps: float) -> None:
    normalize_dim(dim, input.ndim, "normalize_backward")


@composite(shapes="g(*S), input(*S)", rule=_check_dim, method=False)
@in_float32
def normalize_backward(g: Tensor, input: Tensor, dim: int, eps: float) -> Tensor:
    """Return the gradient of :func:`normalize`'s input.

    Notes
    -----
    With the length l and the result y: (g - y <g, y>) / l, or g / eps where the length is below `eps`.
    """
    p, x = wide(g), wide(input)
    length = vector_norm(x, 2, dim, True)
    below = length < eps
    length = length.clamp_min(eps)
    output = x / length
    along = (p * output).sum(dim, True).masked_fill(below, 0)
    result: Tensor = ((p - output * along) / length).to(input.dtype)
    return result


def _canonical_local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> tuple[Any, int, float, float, float]:
    check_tensor(input, "local_response_norm")
    check_floating("local_response_norm", input)
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        )
    if size < 1:
        raise RuntimeError(f"local_response_norm(): size must be at least 1, got {size}")
    return input, size, alpha, beta, k


def _check_response(g: Any, input: Any, size: int, *_: Any) -> None:
    _canonical_local_response_norm(input, size)


@composite(rule=_canonical_local_response_norm, keeps_format=True, method=False)
@in_float32
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return `input` divided by a power of the mean square over neighbouring channels.

    Krizhevsky et al. 2012, section 3.3, with the mean rather than the sum, as in torch.
    """
    if not input.numel():
        return input
    before = size // 2
    squares = (input * input).reshape(input.shape[0], 1, input.shape[1], -1, 1)
    padded = pad_zeros(squares, (before, 0, 0), (size - 1 - before, 0, 0))
    means = avg_pool3d(padded, (size, 1, 1), 1).reshape(input.shape)
    return input / (means * alpha + k) ** beta


@composite(shapes="g(N, C, *S), input(N, C, *S)", rule=_check_response, method=False)
@in_float32
def local_response_norm_backward(
    g: Tensor, input: Tensor, size: int, alpha: float, beta: float, k: float
) -> Tensor:
    """Return the gradient of :func:`local_response_norm`'s input."""
    result: Tensor = gradients(local_response_norm, g, (input, size, alpha, beta, k), 0)[0]
    return result


DERIVATIVES = [
    derivative(
        "local_response_norm",
        input=lambda g, input, size, alpha, beta, k: local_response_norm_backward(
            g, input, size, alpha, beta, k
        ),
    ),
    derivative(
        "normalize", input=lambda g, input, dim, eps: normalize_backward(g, input, dim, eps)
    ),
]
