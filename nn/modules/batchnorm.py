"""Normalisation over the batch, or over each sample's positions, with running statistics."""

from __future__ import annotations

import importlib
import sys
from typing import Any, ClassVar

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.device.dtypes import int64
from tensorplug.core.errors import warn
from tensorplug.core.ops import empty, ones, zeros
from tensorplug.core.tensor.creation import tensor

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "SyncBatchNorm",
]


class _Norm(Module):
    """Parameters and running statistics, one number per channel."""

    _version = 2
    #: The numbers of dimensions that the input may have.
    _input_dims: ClassVar[tuple[int, ...]]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Device | str | None,
        dtype: DType | None,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.register_parameter(
            "weight", Parameter(empty(num_features, **made)) if affine else None
        )
        self.register_parameter(
            "bias", Parameter(empty(num_features, **made)) if affine and bias else None
        )
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **made) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **made) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", tensor(0, dtype=int64, device=device) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen."""
        if self.track_running_stats:
            assert self.running_mean is not None
            assert self.running_var is not None
            assert self.num_batches_tracked is not None
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set weights to one, biases to zero, and forget the batches seen."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._input_dims:
            expected = " or ".join(f"{count}D" for count in self._input_dims)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any, **kwargs: Any
    ) -> None:
        # The count came with torch's version 2 of this module's state.
        version = local_metadata.get("version") if local_metadata else None
        key = f"{prefix}num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = tensor(0, dtype=int64) if count is None else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)


class _BatchNorm(_Norm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` standardised per channel."""
        self._check_input_dim(input)
        factor = self._count_batch()
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracked = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if tracked else (None, None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)

    def _count_batch(self) -> float:
        """Count a batch of training, and return its weight in the running statistics."""
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain mean over all batches
                factor = 1.0 / float(self.num_batches_tracked.item())
        return factor


class BatchNorm1d(_BatchNorm):
    """Normalisation over the batch of (N, C) or (N, C, L); see :class:`BatchNorm2d`."""

    _input_dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalisation of each channel of (N, C, H, W) over the batch and all positions.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float
        Added to the variance.
    momentum : float or None
        The weight of a batch in the running statistics; None makes them the mean of all batches.
    affine : bool
        Whether there are learned weights, and with `bias` biases.
    track_running_stats : bool
        Whether there are running statistics; else evaluation uses the batch's own.
    device, dtype
        Where and of which dtype parameters and buffers are made.
    bias : bool
        See `affine`.

    Raises
    ------
    ValueError
        On input of another number of dimensions, or with one value per channel in training.

    Notes
    -----
    Ioffe and Szegedy, "Batch normalization", 2015.

    Examples
    --------
    >>> import tensorplug as tp
    >>> norm = BatchNorm2d(3)
    >>> norm(tp.zeros(2, 3, 4, 4)).shape, norm.num_batches_tracked
    (Size([2, 3, 4, 4]), tensor(1))
    """

    _input_dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalisation over the batch of (N, C, D, H, W); see :class:`BatchNorm2d`."""

    _input_dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation whose statistics, in training, are those of all processes' batches.

    Without a process group, or in one of a single process, it is :class:`BatchNorm2d` for input of any number
    of dimensions.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps, momentum, affine, track_running_stats
        As in :class:`BatchNorm2d`.
    process_group : ProcessGroup, optional
        The processes that share statistics; by default all.

    Examples
    --------
    >>> import tensorplug as tp
    >>> model = tp.nn.Sequential(tp.nn.Conv2d(3, 4, 1), tp.nn.BatchNorm2d(4))
    >>> tp.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
    SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    _input_dims = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` standardised per channel."""
        # Not imported: no group either.
        distributed: Any = sys.modules.get("tensorplug.distributed")
        if not self.training or distributed is None or not distributed.is_initialized():
            return super().forward(input)
        group = self.process_group or distributed.group.WORLD
        if distributed.get_world_size(group) == 1:
            return super().forward(input)
        self._check_input_dim(input)
        factor = self._count_batch()
        mean, var = (
            (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        )
        standardized: Any = importlib.import_module("tensorplug.distributed.sync_batch_norm")
        result: Tensor = standardized.sync_batch_norm(
            input, mean, var, self.weight, self.bias, factor, self.eps, group
        )
        return result

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return the module with each batch normalisation in it replaced, parameters kept."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine,
                module.track_running_stats, process_group,
            )  # fmt: skip
            for name, parameter in module._parameters.items():
                result._parameters[name] = parameter
            result._buffers.update(module._buffers)
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_Norm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def _get_no_batch_dim(self) -> int:
        return self._input_dims[0]

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` standardised per sample and channel."""
        self._check_input_dim(input)
        unbatched = input.ndim == self._get_no_batch_dim()
        dim = 0 if unbatched else 1
        channels = input.shape[dim]
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but "
                    f"got: {channels}."
                )
            warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by "
                "not passing in num_features, which is not used because affine=False",
                UserWarning,
            )
        output = F.instance_norm(
            input.unsqueeze(0) if unbatched else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return output.squeeze(0) if unbatched else output


class InstanceNorm1d(_InstanceNorm):
    """Normalisation over the positions of (N, C, L) or (C, L); see :class:`InstanceNorm2d`."""

    _input_dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalisation of each channel of each sample of (N, C, H, W) or (C, H, W) over its positions.

    The parameters are those of :class:`BatchNorm2d`; by default there are neither weights nor running
    statistics.

    Notes
    -----
    Ulyanov, Vedaldi and Lempitsky, "Instance normalization", 2016.
    """

    _input_dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalisation over the positions of (N, C, D, H, W) or (C, D, H, W)."""

    _input_dims = (4, 5)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Have batch norms of a module keep no running statistics, in place; return the module.

    Functions that are batched or differentiated as a whole cannot write such statistics.

    Examples
    --------
    >>> import tensorplug as tp
    >>> net = tp.nn.Sequential(tp.nn.Linear(2, 3), tp.nn.BatchNorm1d(3))
    >>> tp.func.replace_all_batch_norm_modules_(net)[1].running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
