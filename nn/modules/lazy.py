"""Modules that learn the size of their input from the first one they see."""

from __future__ import annotations

import warnings
from typing import Any, cast

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.device.dtypes import int64
from tensorplug.core.tensor.creation import tensor

from ..module import Module
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from ._sizes import Ints
from .batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class LazyModuleMixin:
    """Gives a module parameters without shapes, which the first call fills in.

    A class puts it before the module's, makes :class:`~tensorplug.nn.UninitializedParameter`, and defines
    ``initialize_parameters(*args, **kwargs)``, which is called with what the first call is called with.
    Afterwards the module's class is `cls_to_become`.
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module = cast(Any, self)
        self._load_hook = module._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = module.register_forward_pre_hook(
            _infer_parameters, with_kwargs=True
        )
        warnings.warn(
            "Lazy modules are a new feature under heavy development so changes to the API or "
            "functionality can happen at any moment.",
            UserWarning,
            stacklevel=3,
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        module = cast(Any, self)
        for name, value in {**module._parameters, **module._persistent_buffers()}.items():
            if value is not None:
                whole = is_lazy(value) or keep_vars
                destination[prefix + name] = value if whole else value.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Give what has no shape the shape of what is loaded."""
        module = cast(Any, self)
        for name, value in {**module._parameters, **module._persistent_buffers()}.items():
            loaded = state_dict.get(prefix + name)
            if loaded is not None and is_lazy(value) and not is_lazy(loaded):
                value.materialize(tuple(loaded.shape))

    def _load_tensor(self, name: str, key: str, present: Any, loaded: Any, assign: bool) -> Any:
        if is_lazy(present) and is_lazy(loaded):
            return None
        return cast(Any, super())._load_tensor(name, key, present, loaded, assign)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give every parameter its shape, from the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer has no shape yet."""
        module = cast(Any, self)
        return any(map(is_lazy, [*module._parameters.values(), *module._buffers.values()]))

    def reset_parameters(self) -> None:
        """Draw the parameters anew, once there are any."""
        if not self.has_uninitialized_params() and bool(getattr(self, self._size_name)):
            cast(Any, super()).reset_parameters()

    # The attribute that says how large the input is; zero as long as nobody knows.
    _size_name = "in_channels"


def _infer_parameters(module: Any, args: Any, kwargs: Any) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"module {type(module).__name__} has not been fully initialized by its first input"
        )
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` whose `in_features` is that of the first input.

    Parameters
    ----------
    out_features : int
        Size of the output's last dimension.
    bias, device, dtype
        See :class:`Linear`.
    """

    cls_to_become = Linear
    _size_name = "in_features"

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def initialize_parameters(self, input: Tensor) -> None:
        """Make the parameters."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            cast(UninitializedParameter, self.weight).materialize(
                (self.out_features, self.in_features)
            )
            if self.bias is not None:
                cast(UninitializedParameter, self.bias).materialize((self.out_features,))
            self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]


class _LazyConvolution(LazyModuleMixin):
    """The parameters of a convolution, as far as the number of output channels tells them."""

    in_channels: int
    groups: int
    kernel_size: tuple[int, ...]
    transposed: bool
    dimensions: int

    def _leave_open(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        self.bias: Any = UninitializedParameter(device=device, dtype=dtype) if bias else None

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Make the parameters."""
        if not self.has_uninitialized_params():
            if not self.in_channels:  # they were loaded
                outer, inner = self.weight.shape[:2]
                self.in_channels = outer if self.transposed else inner * self.groups
            return
        count = self.dimensions
        if input.ndim not in (count + 1, count + 2):
            raise RuntimeError(
                f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {list(input.shape)}"
            )
        self.in_channels = input.shape[-count - 1]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        pair = (self.in_channels, self.out_channels)
        outer, inner = pair if self.transposed else pair[::-1]
        self.weight.materialize((outer, inner // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._leave_open(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
        )
        self._leave_open(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A :class:`Conv1d` whose `in_channels` is that of the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A :class:`Conv2d` whose `in_channels` is that of the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A :class:`Conv3d` whose `in_channels` is that of the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A :class:`ConvTranspose1d` whose `in_channels` is that of the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A :class:`ConvTranspose2d` whose `in_channels` is that of the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A :class:`ConvTranspose3d` whose `in_channels` is that of the first input."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(LazyModuleMixin):
    _size_name = "num_features"
    num_features: int

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.weight: Any = UninitializedParameter(**made) if affine else None
        self.bias: Any = UninitializedParameter(**made) if affine and bias else None
        if track_running_stats:
            self.running_mean: Any = UninitializedBuffer(**made)
            self.running_var: Any = UninitializedBuffer(**made)
            self.num_batches_tracked: Any = tensor(0, dtype=int64, device=device)

    def initialize_parameters(self, input: Tensor) -> None:
        """Make parameters and buffers."""
        if not self.has_uninitialized_params():
            if not self.num_features:  # they were loaded
                known = self.weight if self.weight is not None else self.running_mean
                self.num_features = input.shape[1] if known is None else known.shape[0]
            return
        self.num_features = input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if is_lazy(value):
                value.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A :class:`BatchNorm1d` whose `num_features` is that of the first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A :class:`BatchNorm2d` whose `num_features` is that of the first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A :class:`BatchNorm3d` whose `num_features` is that of the first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """A :class:`InstanceNorm1d` whose `num_features` is that of the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """A :class:`InstanceNorm2d` whose `num_features` is that of the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """A :class:`InstanceNorm3d` whose `num_features` is that of the first input."""

    cls_to_become = InstanceNorm3d
