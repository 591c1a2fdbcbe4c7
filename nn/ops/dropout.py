"""Dropout."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.device.dtypes import FLOATING, float32
from tensorplug.core.device.generator import generator_of
from tensorplug.core.dispatch.op_registry import Delegated, composite, in_place
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.ops import philox_bits, rand
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.tensor.layout import strides_like

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(shapes="input(*S)", method=False, outputs="output, mask")
def native_dropout(input: Tensor, p: float, seed: int, offset: int) -> tuple[Tensor, Tensor]:
    """Return `input` with each element zeroed with probability `p`, and which elements were kept.

    An element is kept if the number that ``tp.rand`` makes of its word is at least `p`.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape.
    p : float
        Probability of a zero; the rest is scaled by 1/(1-p).
    seed, offset : int
        As for :func:`tensorplug.ops.philox_bits`; what ``Generator.take`` returns.

    Returns
    -------
    output, mask : Tensor
        Of the input's shape; of its dtype, and bool.
    """
    words: Any = philox_bits(input._shape, seed, offset, input.device)
    mask = (words >> 8).to(float32) * 2.0**-24 >= p
    return native_dropout_backward(input, mask, p), mask


@composite(shapes="g(*S), mask:bool(*S)", method=False)
def native_dropout_backward(g: Tensor, mask: Tensor, p: float) -> Tensor:
    """Return `g` scaled by 1/(1-p) where `mask` is True, and zero elsewhere."""
    return g * (mask.to(g.dtype) * (1 / (1 - p) if p < 1 else 0.0))


# --- functions -------------------------------------------------------------------------------------


def _canonical(input: Any, p: float, training: bool, name: str) -> Any:
    """Return the canonical arguments; where nothing is done, the input."""
    check_tensor(input, name)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}(): dropout probability has to be between 0 and 1, but got {p}")
    return (input, p, True) if training and p else Delegated(input)


def _laid_out(result: Tensor, input: Tensor) -> Tensor:
    """Return a result with its dimensions in the order of memory that those of `input` are in."""
    stride = strides_like(input, None, "dropout")
    if stride is None:
        return result
    order = sorted(range(len(stride)), key=lambda dim: -stride[dim])
    wide = [dim for dim in order if input._shape[dim] > 1]
    if wide == sorted(wide):
        return result
    rows = result.permute(order).contiguous()
    return rows.permute(sorted(range(len(order)), key=order.__getitem__))


def _kept(input: Tensor, shape: Any, p: float) -> Tensor:
    """Return True with probability 1 - p."""
    return rand(tuple(shape), dtype=float32, device=input.device) >= p


def _scale(input: Tensor, shape: Any, p: float) -> Tensor:
    return _kept(input, shape, p).to(input.dtype) * (1 / (1 - p) if p < 1 else 0.0)


def _written(rule: Any, shape_of: Any) -> Any:
    """Return what multiplies a tensor in place."""

    def body(target: Any, p: float = 0.5, training: bool = True) -> Any:
        values = rule(target, p, training)
        if type(values) is Delegated:
            return target
        return target.mul_(_scale(target, shape_of(target), p))

    return body


def _canonical_dropout(input: Any, p: float = 0.5, training: bool = True) -> Any:
    return _canonical(input, p, training, "dropout")


@composite(rule=_canonical_dropout, keeps_format=True, random=True, method=False)
def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Return `input` with each element zeroed with probability `p` and the rest scaled by 1/(1-p)."""
    # Of other layers, vmap wants to see how numbers are drawn.
    seen = dispatch_state.layers_active and dispatch_state.takes_over((), None)
    if seen or input.dtype.category != FLOATING:
        return input * _scale(input, input._shape, p)
    seed, offset = generator_of(input.device).take(math.prod(input._shape))
    return _laid_out(native_dropout(input, p, seed, offset)[0], input)


in_place(dropout)(_written(_canonical_dropout, lambda input: input._shape))


def _of_channels(count: int) -> tuple[Any, Any]:
    """Return the rule, and the function of the mask's shape, for so many spatial dimensions."""
    name = f"dropout{count}d"

    def canonical(input: Any, p: float = 0.5, training: bool = True) -> Any:
        values = _canonical(input, p, training, name)
        ndim = len(input._shape)
        if ndim not in (count + 1, count + 2):
            expected = f"{count + 1}D or {count + 2}D"
            if count == 1 or ndim < 4 - count:
                raise RuntimeError(
                    f"{name}: Expected {expected} input, but received a {ndim}D input"
                )
            warnings.warn(
                f"{name}: Received a {ndim}-D input to {name}, which is deprecated: it takes {expected}; use "
                "dropout() for elements of their own",
                stacklevel=2,
            )
        elif count == 2 and ndim == 3:
            warnings.warn(
                "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
                "behavior is desired, for (N, C, L); use dropout1d()",
                stacklevel=2,
            )
        return values

    def shape_of(input: Any) -> tuple[int, ...]:
        # As in torch: but for dropout2d, what has not all dimensions lacks that of the batch.
        kept = 2 if count == 2 or len(input._shape) == count + 2 else 1
        return (*input._shape[:kept], *[1] * (len(input._shape) - kept))

    return canonical, shape_of


_canonical_1d, _shape_1d = _of_channels(1)
_canonical_2d, _shape_2d = _of_channels(2)
_canonical_3d, _shape_3d = _of_channels(3)


@composite(rule=_canonical_1d, keeps_format=True, random=True, method=False)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Return `input` (N, C, L) or (C, L) with whole channels zeroed with probability `p`."""
    return input * _scale(input, _shape_1d(input), p)


@composite(rule=_canonical_2d, keeps_format=True, random=True, method=False)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Return `input` (N, C, H, W) or (N, C, L) with whole channels zeroed with probability `p`."""
    return input * _scale(input, _shape_2d(input), p)


@composite(rule=_canonical_3d, keeps_format=True, random=True, method=False)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Return `input` (N, C, D, H, W) or (C, D, H, W) with whole channels zeroed with probability `p`."""
    return input * _scale(input, _shape_3d(input), p)


in_place(dropout1d)(_written(_canonical_1d, _shape_1d))
in_place(dropout2d)(_written(_canonical_2d, _shape_2d))
in_place(dropout3d)(_written(_canonical_3d, _shape_3d))


def _alpha(input: Tensor, shape: Any, p: float) -> Tensor:
    # Klambauer et al. 2017, section 3: dropped elements take SELU's lower limit, then an affine map
    # brings mean and variance back.
    limit = -1.7580993408473766
    a = ((1 - p) * (1 + p * limit * limit)) ** -0.5 if p < 1 else 0.0
    kept = _kept(input, shape, p)
    return input.where(kept, limit) * a - a * limit * p


def _canonical_alpha_dropout(input: Any, p: float = 0.5, training: bool = False) -> Any:
    return _canonical(input, p, training, "alpha_dropout")


@composite(rule=_canonical_alpha_dropout, keeps_format=True, random=True, method=False)
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """Return `input` with dropout that keeps mean and variance, for networks of SELU."""
    return _laid_out(_alpha(input, input._shape, p), input)


def _canonical_feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False) -> Any:
    values = _canonical(input, p, training, "feature_alpha_dropout")
    if len(input._shape) < 2 and not isinstance(values, Delegated):
        raise RuntimeError(
            "feature_alpha_dropout(): Feature dropout requires at least 2 dimensions in the input, got "
            f"{len(input._shape)}"
        )
    return values


@composite(rule=_canonical_feature_alpha_dropout, keeps_format=True, random=True, method=False)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """Return `input` with alpha dropout of whole channels."""
    return _alpha(input, (*input._shape[:2], *[1] * (input.ndim - 2)), p)


DERIVATIVES = [
    derivative(
        "native_dropout", input=lambda g_output, mask, p: native_dropout_backward(g_output, mask, p)
    ),
    derivative("native_dropout_backward", g=lambda g, mask, p: native_dropout_backward(g, mask, p)),
]
