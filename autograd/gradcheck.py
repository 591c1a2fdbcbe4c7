"""Derivatives against finite differences.

The analytical Jacobian comes from one backward pass per output element, the numerical one from central
differences per input element. Complex inputs are checked along the real and the imaginary axis, with torch's
convention: the gradient of a real loss L with respect to z is dL/dRe(z) + i dL/dIm(z).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import float64
from tensorplug.core.ops.comparison import check_tolerances
from tensorplug.core.tensor.tensor import Tensor

from . import gradcheck_backward as backward_checks, gradcheck_forward as forward_checks
from .engine.backward import grad
from .grad_mode import enable_grad
from .gradcheck_points import GradcheckError, of_values, outputs_of, seed_of

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of `func` against finite differences.

    Parameters
    ----------
    func : callable
        Takes `inputs`, returns a tensor or several.
    inputs : Tensor or sequence
        Those that require grad are checked; float64 or complex128.
    eps : float
        Half the distance of the differences.
    atol, rtol : float
        Tolerances.
    raise_exception : bool
        Raise :class:`GradcheckError` rather than return False.
    check_undefined_grad : bool
        Also check that an output without gradient counts as one with a zero gradient.
    check_grad_dtypes : bool
        Also check that gradients have the dtype of their inputs.
    check_batched_grad : bool
        Also check ``autograd.grad(..., is_grads_batched=True)``.
    check_batched_forward_grad : bool
        Also check that forward mode gives the same under ``vmap``.
    check_forward_ad, check_backward_ad : bool
        Whether to check forward mode, and reverse mode; one of them at least.
    nondet_tol : float
        By how much two backward passes may differ.
    fast_mode : bool
        Compare one projection of each Jacobian instead of all its elements.
    masked : bool, optional
        Accepted as in torch. Of sparse inputs the derivatives by their stored values are checked, as if it
        were set: gradients of sparse tensors have no others.

    Returns
    -------
    bool
        Whether they agree.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([0.5, 2.0], dtype=tp.float64, requires_grad=True)
    >>> tp.autograd.gradcheck(lambda x: x.exp() * x, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    check_tolerances("gradcheck", rtol, atol)
    func, args = of_values(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    positions = _checked(args)
    try:
        if check_backward_ad:
            backward = backward_checks.check_projected if fast_mode else backward_checks.check
            backward(func, args, positions, eps, atol, rtol, nondet_tol)
        if check_forward_ad:
            forward = forward_checks.check_projected if fast_mode else forward_checks.check
            forward(func, args, positions, eps, atol, rtol, check_batched_forward_grad)
        if check_backward_ad and check_undefined_grad:
            backward_checks.check_multiplied(func, args)
        if check_grad_dtypes and check_backward_ad:
            backward_checks.check_dtypes(func, args)
        if check_batched_grad:
            backward_checks.check_batched(func, args, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _checked(args: tuple[Any, ...]) -> list[int]:
    positions = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]
    if not positions:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    for i in positions:
        if args[i].dtype.to_real() is not float64:
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision.",
                stacklevel=4,
            )
    return positions


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the second derivatives of `func` against finite differences of the first.

    Parameters are those of :func:`gradcheck`; `grad_outputs` are the gradients to begin with, fixed random
    ones by default. `check_rev_over_rev` and `check_fwd_over_rev` say in which modes the gradients are
    differentiated.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([0.5, 2.0], dtype=tp.float64, requires_grad=True)
    >>> tp.autograd.gradgradcheck(lambda x: x.exp() * x, (x,))
    True
    """
    check_tolerances("gradgradcheck", rtol, atol)
    func, args = of_values(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    positions = _checked(args)
    outputs = [out for out in outputs_of(func, args) if out.requires_grad]
    if grad_outputs is None:
        seeds = [seed_of(out).requires_grad_() for out in outputs]
    else:  # which of them are to be checked is the caller's choice
        seeds = list((grad_outputs,) if isinstance(grad_outputs, Tensor) else grad_outputs)
    count = len(seeds)

    def first(*values: Any) -> tuple[Any, ...]:
        points = list(args)
        for position, value in zip(positions, values[count:], strict=True):
            # Not detached: in forward mode it has a tangent.
            points[position] = (
                value if value.requires_grad else value.view_as(value).requires_grad_()
            )
        live = [out for out in outputs_of(func, points) if out.requires_grad]
        results = grad(
            live,
            [points[p] for p in positions],
            list(values[:count]),
            create_graph=True,
            materialize_grads=True,
        )
        return tuple(results)

    def recorded(*values: Any) -> tuple[Any, ...]:
        with enable_grad():
            return first(*values)

    return gradcheck(
        recorded,
        (*seeds, *[args[p] for p in positions]),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )
