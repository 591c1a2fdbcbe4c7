"""Modules on top of the ops, and what puts them into a model."""

from __future__ import annotations

from collections.abc import Container

import tensorplug as tp
from tensorplug import Tensor, nn

from .ops import linear_int8

__all__ = ["Int8Linear", "quantize", "quantize_weight"]


def quantize_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return a matrix as 8-bit integers, and what their step stands for in each row.

    Parameters
    ----------
    weight : Tensor
        (out_features, in_features), of floating point.

    Returns
    -------
    quantized : Tensor
        (out_features, in_features), int8 from -127 to 127.
    scale : Tensor
        (out_features,), of the dtype of `weight`: the largest magnitude of the row / 127, and 1 for a row of
        zeros.

    Raises
    ------
    TypeError
        If `weight` is not of floating point.
    ValueError
        If it is no matrix, or not all of it is finite.

    Examples
    --------
    >>> quantize_weight(tp.tensor([[0.5, -1.0], [0.0, 0.0]]))[0]
    tensor([[  64, -127],
            [   0,    0]], dtype=tp.int8)
    """
    name = "quantize_weight()"
    if not weight.is_floating_point():
        raise TypeError(f"{name}: expected a weight of floating point, got {weight.dtype}")
    if weight.ndim != 2:
        raise ValueError(f"{name}: expected a matrix, got a tensor of shape {list(weight.shape)}")
    with tp.no_grad():
        # In float32 at least: float16 has too few bits for the quotient.
        wide = weight.to(tp.float32) if weight.dtype.itemsize < 4 else weight
        if not wide.isfinite().all():
            raise ValueError(f"{name}: expected finite numbers, got infinities or nan")
        if not weight.shape[1]:
            return weight.to(tp.int8), weight.new_ones(weight.shape[0])
        scale = (wide.abs().amax(1) / 127).to(weight.dtype)
        scale = tp.where(scale == 0, tp.ones_like(scale), scale)
        steps = (wide / scale.to(wide.dtype).unsqueeze(1)).round().clamp(-127, 127)
        return steps.to(tp.int8), scale


class Int8Linear(nn.Module):
    """A linear map whose weight is 8-bit integers with one scale per row: ``linear_int8``.

    The weight is a buffer, it does not learn; scale and bias are parameters, and do.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dimension of input and output.
    bias : bool
        Whether there is a bias.
    device, dtype
        Where scale and bias are made, and their dtype; the input has to be of it.

    Attributes
    ----------
    weight : Tensor
        (out_features, in_features), int8.
    scale : Parameter
        (out_features,).
    bias : Parameter or None
        (out_features,).
    """

    weight: Tensor
    scale: nn.Parameter
    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: tp.device | str | None = None,
        dtype: tp.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        weight = tp.zeros(out_features, in_features, dtype=tp.int8, device=device)
        self.register_buffer("weight", weight)
        self.scale = nn.Parameter(tp.ones(out_features, device=device, dtype=dtype))
        if bias:
            self.bias = nn.Parameter(tp.zeros(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)

    @classmethod
    def from_float(cls, linear: nn.Linear) -> Int8Linear:
        """Return a layer that computes nearly what a trained `linear` does, on its device.

        The bias is copied, so that neither layer's training changes the other.
        """
        weight, scale = quantize_weight(linear.weight.detach())
        made = cls(
            linear.in_features,
            linear.out_features,
            linear.bias is not None,
            device=weight.device,
            dtype=scale.dtype,
        )
        made.weight = weight
        with tp.no_grad():
            made.scale.copy_(scale)
            if made.bias is not None and linear.bias is not None:
                made.bias.copy_(linear.bias)
        return made.train(linear.training)

    def forward(self, input: Tensor) -> Tensor:
        """Return the map of `input`, of shape (..., in_features)."""
        return linear_int8(input, self.weight, self.scale, self.bias)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def quantize(model: nn.Module, keep: Container[str] = ()) -> nn.Module:
    """Put an ``Int8Linear`` in the place of each ``nn.Linear`` of a model.

    Parameters
    ----------
    model : nn.Module
        Changed in place. Subclasses of ``nn.Linear`` stay, since others may rely on what they are.
    keep : container of str
        The names, as in ``model.named_modules()``, of layers that stay as they are: the last one often
        should.

    Returns
    -------
    nn.Module
        `model`, or its ``Int8Linear`` if it is an ``nn.Linear`` itself.

    Notes
    -----
    To load a state dict of a quantized model, quantize a model fresh from its constructor first.
    """
    if type(model) is nn.Linear:
        return Int8Linear.from_float(model)
    made: dict[nn.Linear, Int8Linear] = {}  # a layer that stands in two places still does
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if type(module) is not nn.Linear or name in keep:
            continue
        if module not in made:
            made[module] = Int8Linear.from_float(module)
        model.set_submodule(name, made[module])
    return model
