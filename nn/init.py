"""Initialisation of parameters, in place and unrecorded."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Literal, ParamSpec

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.device.generator import Generator
from tensorplug.core.ops import randperm

Mode = Literal["fan_in", "fan_out"]
_Arguments = ParamSpec("_Arguments")

_LINEAR = {
    "linear",
    *(f"conv{dims}d" for dims in (1, 2, 3)),
    *(f"conv_transpose{dims}d" for dims in (1, 2, 3)),
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which a nonlinearity's layer is to be initialised larger.

    Parameters
    ----------
    nonlinearity : str
        ``"linear"``, ``"conv2d"``…, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``,
        ``"selu"``.
    param : float, optional
        The negative slope of ``"leaky_relu"``, 0.01 by default.

    Raises
    ------
    ValueError
        If the nonlinearity is unknown or the slope no number.

    Examples
    --------
    >>> calculate_gain("leaky_relu", 0.0) ** 2
    2.0000000000000004
    """
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4  # found by experiment, see torch's documentation
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with values of the uniform distribution between `a` and `b`."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with values of a normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    r"""Fill with values of a normal distribution cut off at `a` and `b`.

    Notes
    -----
    A uniform value between :math:`\Phi((a - \mu) / \sigma)` and :math:`\Phi((b - \mu) / \sigma)`
    goes through the inverse of :math:`\Phi`.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            UserWarning,
            stacklevel=2,
        )
    low = math.erf((a - mean) / std / math.sqrt(2.0))
    high = math.erf((b - mean) / std / math.sqrt(2.0))
    with no_grad():
        tensor.uniform_(low, high, generator=generator)
        return tensor.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value.

    Examples
    --------
    >>> import tensorplug as tp
    >>> constant_(tp.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    Raises
    ------
    ValueError
        If the tensor is no matrix.
    """
    if tensor.ndim != 2:
        raise ValueError(
            f"Only tensors with 2 dimensions are supported, got one with {tensor.ndim}"
        )
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it returns its input, channel by channel.

    Parameters
    ----------
    tensor : Tensor
        Of shape (out channels, in channels, size, ...), 3 to 5 dimensions.
    groups : int
        Groups of the convolution.

    Raises
    ------
    ValueError
        If the number of dimensions is another, or the groups don't divide the out channels.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(
            f"Only tensors with 3, 4, or 5 dimensions are supported, got one with {tensor.ndim}"
        )
    out_channels, in_channels, *sizes = tensor.shape
    if out_channels % groups:
        raise ValueError(
            f"dim 0 must be divisible by groups: {out_channels} out channels, {groups} groups"
        )
    per_group = out_channels // groups
    centre = tuple(size // 2 for size in sizes)
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, in_channels)):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _fans(tensor: Tensor) -> tuple[int, int]:
    """Return how many inputs feed one output, and how many outputs one input feeds."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got "
            f"shape {list(tensor.shape)}"
        )
    outputs, inputs, *sizes = tensor.shape
    field = math.prod(sizes)
    return inputs * field, outputs * field


_calculate_fan_in_and_fan_out = _fans  # torch's name, which programs use in spite of the underscore


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    r"""Fill from :math:`U(-a, a)` with :math:`a = gain \sqrt{6 / (fan_{in} + fan_{out})}`.

    Notes
    -----
    Glorot and Bengio, "Understanding the difficulty of training deep feedforward networks", 2010.
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    r"""Fill from a normal law with :math:`\sigma = gain \sqrt{2 / (fan_{in} + fan_{out})}`."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    lowered = mode.lower()
    if lowered not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = _fans(tensor)[0 if lowered == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=3)
        return True
    return False


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    r"""Fill from :math:`U(-b, b)` with :math:`b = gain \sqrt{3 / fan}`.

    Parameters
    ----------
    tensor : Tensor
        At least two dimensions.
    a : float
        The negative slope of ``"leaky_relu"``.
    mode : {"fan_in", "fan_out"}
        Whether to keep the variance of the forward or of the backward pass.
    nonlinearity : str
        See :func:`calculate_gain`.
    generator : Generator, optional
        Where the randomness comes from.

    Notes
    -----
    He et al., "Delving deep into rectifiers", 2015.
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    r"""Fill from a normal distribution with :math:`\sigma = gain / \sqrt{fan}`.

    The parameters are those of :func:`kaiming_uniform_`.
    """
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix; dimensions after the first count as one.

    Raises
    ------
    ValueError
        If there are fewer than two dimensions.
    NotImplementedError
        For complex numbers.

    Notes
    -----
    The Q of a random matrix's QR decomposition, with signs that make it uniform (Saxe et al.,
    2014).
    """
    if tensor.ndim < 2:
        raise ValueError(
            f"Only tensors with 2 or more dimensions are supported, got one with {tensor.ndim}"
        )
    if tensor.is_complex():
        raise NotImplementedError(
            "orthogonal_(): not implemented for complex tensors; their signs are phases, linalg.qr has them"
        )
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        tall = tensor.new_empty((max(rows, columns), min(rows, columns)))
        orthogonal = _orthonormal_columns(tall.normal_(0, 1, generator=generator))
        if rows < columns:
            orthogonal = orthogonal.t()
        return tensor.copy_(orthogonal.reshape(tensor.shape)).mul_(gain)


def _orthonormal_columns(matrix: Tensor) -> Tensor:
    """Return Q of the QR decomposition whose R has a positive diagonal (Householder)."""
    rows, columns = matrix.shape
    work = matrix.clone()
    vectors = []
    signs = []
    for j in range(columns):
        column = work[j:, j].clone()
        length = float(column.norm().item())
        sign = 1.0 if float(column[0].item()) >= 0 else -1.0
        column[0] += sign * length
        column /= column.norm()
        block = work[j:, j:]
        block -= 2.0 * column.unsqueeze(1) * column.matmul(block)
        vectors.append(column)
        signs.append(-sign)  # the sign of R's diagonal
    q = matrix.new_zeros((rows, columns))
    for j in range(columns):
        q[j, j] = signs[j]
    for j in range(columns - 1, -1, -1):
        block = q[j:]
        block -= 2.0 * vectors[j].unsqueeze(1) * vectors[j].matmul(block)
    return q


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix from a normal distribution, with a share of each column zero.

    Parameters
    ----------
    tensor : Tensor
        A matrix.
    sparsity : float
        The share of zeros in each column.
    std : float
        The standard deviation of the others.
    generator : Generator, optional
        Where the randomness comes from.

    Raises
    ------
    ValueError
        If the tensor is no matrix.
    """
    if tensor.ndim != 2:
        raise ValueError(
            f"Only tensors with 2 dimensions are supported, got one with {tensor.ndim}"
        )
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            order = randperm(rows, generator=generator)
            tensor[order[:zeros].to(tensor.device), column] = 0
    return tensor


def _deprecated(function: Callable[_Arguments, Tensor]) -> Callable[_Arguments, Tensor]:
    """Return `function` under the name without an underscore that it had before torch 0.4."""
    name = function.__name__[:-1]

    @functools.wraps(function)
    def former(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Tensor:
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    former.__name__ = former.__qualname__ = name
    former.__doc__ = f"Deprecated name of :func:`~tensorplug.nn.init.{name}_`."
    return former


constant = _deprecated(constant_)
dirac = _deprecated(dirac_)
eye = _deprecated(eye_)
kaiming_normal = _deprecated(kaiming_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
normal = _deprecated(normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
uniform = _deprecated(uniform_)
xavier_normal = _deprecated(xavier_normal_)
xavier_uniform = _deprecated(xavier_uniform_)
