"""Normalisation within a sample: layers, groups of channels, root mean squares, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.ops import empty
from tensorplug.core.tensor.shapes import one_or_several

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return one_or_several(normalized_shape)


class LayerNorm(Module):
    """Normalisation over the last dimensions.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Their sizes.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        Whether there are learned weights, and with `bias` biases, of that shape.
    bias : bool
        See `elementwise_affine`.
    device, dtype
        Where and of which dtype the parameters are made.

    Notes
    -----
    Ba, Kiros and Hinton, "Layer normalization", 2016.

    Examples
    --------
    >>> import tensorplug as tp
    >>> LayerNorm(3, elementwise_affine=False)(tp.tensor([1.0, 2.0, 3.0]))
    tensor([-1.2247,  0.0000,  1.2247])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        shape = self.normalized_shape
        self.register_parameter(
            "weight", Parameter(empty(shape, **made)) if elementwise_affine else None
        )
        self.register_parameter(
            "bias", Parameter(empty(shape, **made)) if elementwise_affine and bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weights to one and biases to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` normalised."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The input divided by its root mean square over the last dimensions.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Their sizes.
    eps : float, optional
        Added to the mean square; by default the dtype's epsilon.
    elementwise_affine : bool
        Whether there are learned weights of that shape.
    device, dtype
        Where and of which dtype the weights are made.

    Notes
    -----
    Zhang and Sennrich, "Root mean square layer normalization", 2019.
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = empty(self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(weight) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weights to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` normalised."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Normalisation over groups of the channels of (N, C, *).

    Parameters
    ----------
    num_groups, num_channels : int
        How many groups, and how many channels altogether.
    eps : float
        Added to the variance.
    affine : bool
        Whether there are learned weights, and with `bias` biases, one per channel.
    device, dtype
        Where and of which dtype the parameters are made.
    bias : bool
        See `affine`.

    Raises
    ------
    ValueError
        If the groups do not divide the channels.

    Notes
    -----
    Wu and He, "Group normalization", 2018.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0:
            raise ValueError(f"num_groups ({num_groups}) must be positive")
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.register_parameter(
            "weight", Parameter(empty(num_channels, **made)) if affine else None
        )
        self.register_parameter(
            "bias", Parameter(empty(num_channels, **made)) if affine and bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weights to one and biases to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` normalised."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """The input divided by a power of the mean square over neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` normalised."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """:class:`LocalResponseNorm` for (N, C, H, W), under an old name."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)
