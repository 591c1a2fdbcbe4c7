"""Functions that torch has at its top level with other arguments than in ``nn.functional``.

They are what torch's modules call below; programs that were traced or written close to them name them so.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.dispatch.keys import default_device
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.tensor.shapes import existing_dim
from tensorplug.nn import functional as F
from tensorplug.nn.ops.rnn import check_states

from ._devices import DeviceModule

#: How torch numbers the ways to reduce, and the modes of grid_sample.
_REDUCTIONS = ("none", "mean", "sum")
_SAMPLINGS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _reduction(number: int) -> str:
    given: Any = number
    if isinstance(given, str):
        raise TypeError(f"argument 'reduction' must be int, not str: got {number!r}")
    if number not in (0, 1, 2):
        raise ValueError(f"{number} is not a valid value for reduction (0 none, 1 mean, 2 sum)")
    return _REDUCTIONS[number]


# --- random zeros ---


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Return `input` with elements zeroed at random if `train`; as ``nn.functional.dropout``."""
    return F.dropout(input, p, train)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Return `input` (N, C, …) with channels zeroed at random if `train`."""
    check_tensor(input, "feature_dropout")
    return F.dropout2d(input, p, train) if input.dim() != 5 else F.dropout3d(input, p, train)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Return ``nn.functional.alpha_dropout(input, p, train)``."""
    return F.alpha_dropout(input, p, train)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Return ``nn.functional.feature_alpha_dropout(input, p, train)``."""
    return F.feature_alpha_dropout(input, p, train)


# --- tables ---


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` at `indices`; a `padding_idx` of -1 is none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.embedding(tp.eye(3), tp.tensor([2, 0]))
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    padding = None if padding_idx == -1 else padding_idx
    return F.embedding(
        indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse
    )


def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale those rows of `input` in place whose norm is above `max_norm`; return it."""
    with no_grad():
        F.embedding(indices, input, max_norm=max_norm, norm_type=norm_type)
    return input


# --- normalisation ---


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,  # noqa: ARG001
) -> Tensor:
    """Return ``nn.functional.batch_norm``, with the parameters in front of the statistics."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,  # noqa: ARG001
) -> Tensor:
    """Return ``nn.functional.instance_norm``, with the parameters in front of the statistics."""
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


# --- norms ---


def frobenius_norm(
    input: Tensor, dim: int | Sequence[int], keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the square root of the sum of squares over `dim`."""
    linalg = importlib.import_module("tensorplug.linalg")
    result: Tensor = linalg.vector_norm(input, 2, dim, keepdim, out=out)
    return result


def nuclear_norm(
    input: Tensor,
    dim: Sequence[int] | bool | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sum of the singular values of matrices, those in the last two dimensions by default."""
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        return nuclear_norm(input, None, dim, out=out)
    linalg = importlib.import_module("tensorplug.linalg")
    axes = (-2, -1) if dim is None else tuple(dim)
    result: Tensor = linalg.matrix_norm(input, "nuc", axes, keepdim, out=out)
    return result


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norm over all dimensions but one; over all of them where `dim` is -1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.norm_except_dim(tp.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([[5.],
            [2.]])
    """
    check_tensor(v, "norm_except_dim", "v")
    linalg = importlib.import_module("tensorplug.linalg")
    result: Tensor
    if dim == -1:
        result = linalg.vector_norm(v, pow)
    else:
        kept = existing_dim(dim, v.dim(), "norm_except_dim")
        others = [axis for axis in range(v.dim()) if axis != kept]
        result = linalg.vector_norm(v, pow, others, keepdim=True) if others else v.abs()
    return result


# --- pooling, padding, sampling ---


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> Any:
    """Return the maxima and their positions; as ``nn.functional`` with ``return_indices``."""
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """Return the maxima of windows and their positions."""
    return F.max_pool1d_with_indices(
        input, kernel_size, stride or None, padding, dilation, ceil_mode
    )


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return ``nn.functional.grid_sample``, with numbers for the modes."""
    return F.grid_sample(
        input, grid, _SAMPLINGS[interpolation_mode], _PADDINGS[padding_mode], align_corners
    )


# --- cells of recurrent networks ---


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return hidden and cell state after one step; as :class:`~tensorplug.nn.LSTMCell`."""
    hidden, cell = hx
    check_states("lstm_cell()", input, hidden, cell)
    gates = F.linear(input, w_ih, b_ih) + F.linear(hidden, w_hh, b_hh)
    i, f, g, o = gates.chunk(4, -1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """Return the hidden state after one step; as :class:`~tensorplug.nn.GRUCell`."""
    check_tensor(input, "gru_cell")
    check_tensor(hx, "gru_cell", "hx")
    check_states("gru_cell()", input, hx)
    r_in, z_in, n_in = F.linear(input, w_ih, b_ih).chunk(3, -1)
    r_hidden, z_hidden, n_hidden = F.linear(hx, w_hh, b_hh).chunk(3, -1)
    update = (z_in + z_hidden).sigmoid()
    new = (n_in + (r_in + r_hidden).sigmoid() * n_hidden).tanh()
    return new + update * (hx - new)


# --- losses, with a number for the reduction ---


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """Return the loss of ``nn.functional``, with a number for the reduction: 0 none, 1 mean, 2 sum."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_reduction(reduction), pos_weight=pos_weight
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """Return the loss of ``nn.functional``, with a number for the reduction: 0 none, 1 mean, 2 sum."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """Return the loss of ``nn.functional``, with a number for the reduction: 0 none, 1 mean, 2 sum."""
    return F.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        _reduction(reduction),
        zero_infinity,
    )


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """Return the loss of ``nn.functional``, with a number for the reduction: 0 none, 1 mean, 2 sum."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """Return the loss of ``nn.functional``, with a number for the reduction: 0 none, 1 mean, 2 sum."""
    losses = F.kl_div(input, target, reduction="none", log_target=log_target)
    way = _reduction(reduction)  # by hand: "mean" has nn.functional recommend "batchmean"
    return losses if way == "none" else losses.mean() if way == "mean" else losses.sum()


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """Return the loss of ``nn.functional``, with a number for the reduction: 0 none, 1 mean, 2 sum."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Return the loss of ``nn.functional``, with a number for the reduction: 0 none, 1 mean, 2 sum."""
    return F.poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_reduction(reduction)
    )


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """Return the loss of ``nn.functional``, with a number for the reduction: 0 none, 1 mean, 2 sum."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction(reduction)
    )


# --- devices ---


def get_device_module(device: Device | str | None = None) -> DeviceModule:
    """Return the functions of a device type, ``tp.<type>``; without a device those of the accelerator.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.get_device_module("cpu") is tp.cpu
    True
    """
    if device is None:
        accelerator = importlib.import_module("tensorplug.accelerator").current_accelerator()
        chosen: Device = accelerator or default_device()
    else:
        chosen = Device(device)
    return DeviceModule.of(chosen.type)


def _name_ops() -> None:
    """Have ``explain`` know the ops of the functions that `nn.functional` has under the same names."""
    for name, function in globals().items():
        op = getattr(getattr(F, name, None), "op", None)
        if op is not None and getattr(function, "__module__", None) == __name__:
            function.op = op


_name_ops()
