"""Derivatives against finite differences.

The analytical Jacobian comes from one backward pass per output element, the numerical one from central
differences per input element. Complex inputs are checked along the real and the imaginary axis, with torch's
convention: the gradient of a real loss L with respect to z is dL/dRe(z) + i dL/dIm(z).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorplug.core.device.device import CPU
from tensorplug.core.device.dtypes import float64
from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.ops.joining.joining import stack
from tensorplug.core.tensor.creation import tensor
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.tensor import Tensor

from .engine.backward import grad
from .grad_mode import enable_grad


class GradcheckError(RuntimeError):
    """The two Jacobians differ, or an input cannot be checked."""


def _outputs(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    result = function(*inputs)
    results = result if isinstance(result, (tuple, list)) else (result,)
    if any([isinstance(r, Tensor) and r.layout is not strided for r in results]):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet: call to_dense() on it within the function"
        )
    return tuple([r for r in results if isinstance(r, Tensor) and r._key.is_differentiable])


def _of_values(
    function: Callable[..., Any], inputs: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Put the stored values of sparse inputs that require grad in their place."""
    sparse: dict[int, Any] = {
        position: point
        for position, point in enumerate(inputs)
        if isinstance(point, Tensor) and point.requires_grad and point.layout is not strided
    }
    if not sparse:
        return function, inputs

    def of_values(*given: Any) -> Any:
        points = list(given)
        for position, point in sparse.items():
            points[position] = point._with_values(given[position])
        return function(*points)

    values = list(inputs)
    for position, point in sparse.items():
        values[position] = point._stored.detach().clone().requires_grad_()
    return of_values, tuple(values)


def _flat(tensor: Any) -> list[Any]:
    """Return the elements of a tensor as Python numbers."""
    return tensor.detach().to(CPU).reshape(-1).tolist()


def _numerical(
    function: Callable[..., Any], inputs: Sequence[Any], target: int, eps: float
) -> list[list[list[Any]]]:
    """Return, per output, the rows d output / d element of one input; complex has two rows each."""
    point = inputs[target]
    values = _flat(point)
    first: tuple[Any, ...] = ()
    rows: list[list[list[Any]]] = []
    steps: tuple[Any, ...] = (eps, 1j * eps) if point.is_complex() else (eps,)
    for position in range(len(values)):
        for step in steps:
            sides = []
            for sign in (1, -1):
                moved = list(values)
                moved[position] = values[position] + sign * step
                # Recorded, for a function may ask which of its tensors require grad.
                with enable_grad(), _moved(inputs, {target: _refill(point, moved)}) as args:
                    found = _outputs(function, args)
                    first = first or found
                    _check_alike(first, found, eps)
                    sides.append([_flat(out) for out in found])
            rows.append(
                [
                    [(a - b) / (2 * eps) for a, b in zip(plus, minus, strict=True)]
                    for plus, minus in zip(*sides, strict=True)
                ]
            )
    count = len(rows[0]) if rows else 0
    return [[row[number] for row in rows] for number in range(count)]


def _check_alike(outputs: tuple[Any, ...], moved: tuple[Any, ...], eps: float) -> None:
    """Refuse a function whose outputs are of another kind where its inputs differ a little."""
    for what in ("shape", "dtype"):
        kinds = [[getattr(out, what) for out in found] for found in (outputs, moved)]
        if kinds[0] != kinds[1]:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {eps}, "
                f"but got {what}s {kinds[0]} and {kinds[1]}"
            )


@contextmanager
def _moved(inputs: Sequence[Any], values: dict[int, Any]) -> Generator[list[Any], None, None]:
    """Yield the inputs with other elements, written to their memory: a function may hold them itself."""
    args = list(inputs)
    kept = {}
    try:
        for position, value in values.items():
            point = args[position]
            if 0 in point.stride():  # its elements share memory
                args[position] = value.detach().requires_grad_()
            else:
                kept[position] = point.detach().clone()
                point.data.copy_(value)
        yield args
    finally:
        for position, value in kept.items():
            inputs[position].data.copy_(value)


def _refill(like: Any, values: list[Any]) -> Any:
    """Return a tensor with the layout of `like` and other elements."""
    return tensor(values, dtype=like.dtype, device=like.device).reshape(like.shape)


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
        Whether to check forward mode, and reverse mode.
    fast_mode : bool
        Compare one projection of the Jacobians instead of all their elements; of forward mode,
        all are compared in any case.
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
    func, args = _of_values(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    try:
        if check_backward_ad and fast_mode:
            _check_projected(func, args, eps, atol, rtol)
        elif check_backward_ad:
            _check(func, args, eps, atol, rtol, nondet_tol)
        if check_forward_ad or check_batched_forward_grad:
            _check_forward(func, args, eps, atol, rtol, check_batched_forward_grad)
        if check_undefined_grad and check_backward_ad:
            _check_undefined(func, args)
        if check_grad_dtypes:
            _check_dtypes(func, args)
        if check_batched_grad:
            _check_batched(func, args, atol, rtol)
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


def _check(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
) -> None:
    positions = _checked(args)
    outputs = _outputs(func, args)
    live = [number for number, out in enumerate(outputs) if out.requires_grad]
    for target in positions:
        numerical = _numerical(func, args, target, eps)
        for number in live:
            analytical = _analytical(outputs[number], args[target], nondet_tol)
            if numerical:
                _compare(
                    numerical[number],
                    analytical,
                    outputs[number],
                    args[target],
                    number,
                    target,
                    atol,
                    rtol,
                )
        for number in range(len(outputs)):
            if number in live or not numerical:
                continue
            if any(abs(x) > atol for row in numerical[number] for x in row):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero: output {number} does not "
                    f"require grad, but depends on input {target}"
                )


def _check_projected(
    func: Callable[..., Any], args: tuple[Any, ...], eps: float, atol: float, rtol: float
) -> None:
    """Compare the Jacobians between one direction of all inputs and one of all outputs."""
    positions = list({id(args[position]): position for position in _checked(args)}.values())
    found = _outputs(func, args)
    recorded = [out.requires_grad for out in found]
    outputs = [out for out in found if out.requires_grad]
    if not outputs:
        return
    seeds = [_seed(out) for out in outputs]
    points = [args[p] for p in positions]
    directions = [seed / seed.norm().clamp(min=1) for seed in map(_seed, points)]  # eps is the step
    gradients = grad(outputs, points, seeds, retain_graph=True, materialize_grads=True)
    analytical = sum(map(_inner, gradients, directions))
    sides = []
    for sign in (1, -1):
        moved = {
            position: point.detach() + direction * (sign * eps)
            for position, point, direction in zip(positions, points, directions, strict=True)
        }
        with enable_grad(), _moved(args, moved) as there:
            values = _outputs(func, there)
            _check_alike(found, values, eps)
            live = [value for value, tracked in zip(values, recorded, strict=True) if tracked]
            sides.append(sum(map(_inner, seeds, live)))  # here: results may show the inputs' memory
    numerical = (sides[0] - sides[1]) / (2 * eps)
    if not abs(analytical - numerical) <= atol + rtol * abs(numerical):
        raise GradcheckError(
            f"Jacobian mismatch in fast mode: the projection is numerically {numerical:.8g}, "
            f"analytically {analytical:.8g}"
        )


def _check_forward(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    batched: bool,
) -> None:
    from . import gradcheck_forward  # on first use: saves import time

    for target in _checked(args):
        numerical = _numerical(func, args, target, eps)
        found = gradcheck_forward.mismatch(
            func, args, target, numerical, atol, rtol, _outputs, _flat, _refill
        )
        if found is None and batched:
            found = gradcheck_forward.batched_mismatch(func, args, target, _outputs, _flat, _refill)
        if found is not None:
            raise GradcheckError(found)


def _inner(a: Any, b: Any) -> float:
    """Return the real part of the inner product of two tensors."""
    return float(
        sum((complex(x).conjugate() * y).real for x, y in zip(_flat(a), _flat(b), strict=True))
    )


def _analytical(output: Any, point: Any, nondet_tol: float) -> list[list[Any]]:
    """Return one gradient of the input per output element (two for a complex output)."""
    seeds: tuple[Any, ...] = (1.0, 1j) if output.is_complex() else (1.0,)
    rows: list[list[Any]] = []
    for position in range(output.numel()):
        for seed in seeds:
            start = [0.0] * output.numel()
            start[position] = seed
            seeded = _refill(output, start)
            gradients = [
                grad(output, point, seeded, retain_graph=True, materialize_grads=True)[0]
                for _ in range(2 if nondet_tol == 0.0 and not rows else 1)
            ]
            row = _flat(gradients[0])
            for other in gradients[1:]:
                if any(abs(a - b) > nondet_tol for a, b in zip(row, _flat(other), strict=True)):
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and "
                        "grad_output multiple times gives different values"
                    )
            if gradients[0].shape != point.shape:
                raise GradcheckError(
                    f"the gradient has shape {list(gradients[0].shape)}, the input {list(point.shape)}"
                )
            rows.append(row)
    return rows


def _compare(
    numerical: list[list[Any]],
    analytical: list[list[Any]],
    output: Any,
    point: Any,
    number: int,
    target: int,
    atol: float,
    rtol: float,
) -> None:
    """Compare the Jacobians as real matrices."""
    complex_out, complex_in = output.is_complex(), point.is_complex()
    for out_position in range(output.numel()):
        for part in range(2 if complex_out else 1):
            row = analytical[out_position * (2 if complex_out else 1) + part]
            for in_position in range(point.numel()):
                for axis in range(2 if complex_in else 1):
                    moved = numerical[in_position * (2 if complex_in else 1) + axis][out_position]
                    # <seed, d out>: the seed is 1 or i, so this is the real or the imaginary part.
                    expected = (moved.imag if part else moved.real) if complex_out else moved
                    gradient = row[in_position]
                    got = (gradient.imag if axis else gradient.real) if complex_in else gradient
                    if not abs(got - expected) <= atol + rtol * abs(expected):
                        raise GradcheckError(
                            f"Jacobian mismatch for output {number} with respect to input {target}: "
                            f"d out[{out_position}]{'.imag' if part else ''} / "
                            f"d in[{in_position}]{'.imag' if axis else ''} is numerically {expected:.8g}, "
                            f"analytically {got:.8g}"
                        )


def _check_undefined(func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    outputs = [out for out in _outputs(func, args) if out.requires_grad]
    points = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
    if not outputs:
        return
    for value in grad(outputs, points, [zeros_like(out) for out in outputs], allow_unused=True):
        if value is not None and any(x != 0 for x in _flat(value)):
            raise GradcheckError("backward is not multiplied by grad_output")


def _check_dtypes(func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    for out in _outputs(func, args):
        if out.requires_grad:
            points = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
            for point, value in zip(
                points,
                grad(out, points, zeros_like(out) + 1, allow_unused=True, retain_graph=True),
                strict=True,
            ):
                if value is not None and value.dtype is not point.dtype:
                    raise GradcheckError(f"a gradient is {value.dtype}, its input {point.dtype}")


def _check_batched(
    func: Callable[..., Any], args: tuple[Any, ...], atol: float, rtol: float
) -> None:
    points = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
    for out in _outputs(func, args):
        if not out.requires_grad:
            continue
        rows = [out.detach() * 0 + 1, out.detach() * 0 - 2]
        batched = grad(
            out, points, stack(rows), is_grads_batched=True, allow_unused=True, retain_graph=True
        )
        single = [grad(out, points, row, allow_unused=True, retain_graph=True) for row in rows]
        for number, value in enumerate(batched):
            for row in range(2):
                a = None if value is None else _flat(value[row])
                b = single[row][number]
                if a is not None and any(
                    abs(x - y) > atol + rtol * abs(y) for x, y in zip(a, _flat(b), strict=True)
                ):
                    raise GradcheckError("batched and single gradients differ")


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
    func, args = _of_values(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    positions = _checked(args)
    outputs = [out for out in _outputs(func, args) if out.requires_grad]
    if grad_outputs is None:
        seeds = [_seed(out).requires_grad_() for out in outputs]
    else:  # which of them are to be checked is the caller's choice
        seeds = list((grad_outputs,) if isinstance(grad_outputs, Tensor) else grad_outputs)
    count = len(seeds)

    def first(*values: Any) -> tuple[Any, ...]:
        points = list(args)
        for position, value in zip(positions, values[count:], strict=True):
            points[position] = value if value.requires_grad else value.detach().requires_grad_()
        live = [out for out in _outputs(func, points) if out.requires_grad]
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


def _seed(output: Any) -> Any:
    """Return a fixed, irregular gradient for an output."""
    values: list[Any] = [((7 * i + 3) % 11) / 5 - 1.1 for i in range(output.numel())]
    if output.is_complex():
        values = [v + 1j * (((5 * i + 1) % 7) / 4 - 0.8) for i, v in enumerate(values)]
    return _refill(output, values)
