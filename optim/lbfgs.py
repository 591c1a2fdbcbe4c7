"""L-BFGS."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import enable_grad, no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import cat, view_as_real, zeros_like
from tensorplug.core.tensor.layout import strided

from .groups import check_learning_rate
from .line_search import Point, strong_wolfe
from .optimizer import Closure, Optimizer, ParamsT
from .state import number


class LBFGS(Optimizer):
    """L-BFGS: Newton's method with the curvature taken from the last steps.

    Each :meth:`step` makes several iterations, and calls its closure for each. All parameters form one group.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, all on one device.
    lr : float or Tensor
        The learning rate.
    max_iter : int
        The most iterations of a step.
    max_eval : int, optional
        The most calls of the closure in a step, by default 1.25 times `max_iter`.
    tolerance_grad : float
        Where no element of the gradient is larger, the step ends.
    tolerance_change : float
        Where neither parameters nor loss change by more, it ends as well.
    history_size : int
        How many changes of parameters and gradients are kept; each takes twice the parameters' memory.
    line_search_fn : {"strong_wolfe"}, optional
        How the length of each iteration is searched for; by default it is `lr`.

    Raises
    ------
    ValueError
        If the learning rate is negative, or there are several groups.

    Notes
    -----
    Liu and Nocedal, "On the limited memory BFGS method for large scale optimization", 1989.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0, -3.0], requires_grad=True)
    >>> optimizer = tp.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x - tp.tensor([1.0, 2.0])).square().sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure)
    tensor(34., grad_fn=<SumBackward0>)
    >>> x
    tensor([1., 2.], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_learning_rate(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    # --- the parameters as one vector ---

    @property
    def _parameters(self) -> list[Tensor]:
        found: list[Tensor] = self.param_groups[0]["params"]
        return found

    def _flat_gradient(self) -> Tensor:
        parts = []
        for parameter in self._parameters:
            gradient: Any = parameter.grad
            if gradient is None:
                gradient = zeros_like(parameter, requires_grad=False)
            if gradient.layout is not strided:
                gradient = gradient.to_dense()
            parts.append(_real(gradient).reshape(-1))
        return cat(parts)

    def _move(self, step: float, direction: Tensor) -> None:
        start = 0
        for parameter in self._parameters:
            real = _real(parameter)
            part = direction[start : start + real.numel()]
            real.add_(part.reshape(real.shape), alpha=step)
            start += real.numel()

    def _evaluate(self, closure: Closure) -> tuple[float, Tensor]:
        with enable_grad():
            loss = closure()
        return float(loss), self._flat_gradient()

    # --- the step ---

    def step(self, closure: Closure) -> Any:
        """Make the iterations of one step.

        Parameters
        ----------
        closure : callable
            Computes the loss and the gradients anew, and returns the loss.

        Returns
        -------
        Any
            What `closure` returned first.

        Raises
        ------
        RuntimeError
            If the line search is unknown.
        """
        with no_grad():
            return self._step(closure)

    def _step(self, closure: Closure) -> Any:
        if len(self.param_groups) != 1:
            raise AssertionError(
                f"Expected exactly one param_group, but got {len(self.param_groups)}"
            )
        group = self.param_groups[0]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported, got line_search_fn={search!r}")
        # torch keeps the state of all parameters with the first.
        state = self.state[self._parameters[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with enable_grad():
            first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        gradient = self._flat_gradient()
        if _largest(gradient) <= group["tolerance_grad"]:
            return first_loss
        lr = number(group["lr"])
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            _remember(state, gradient, group["history_size"])
            direction = state["d"]
            state["prev_flat_grad"] = gradient.clone()
            previous_loss = state["prev_loss"] = loss
            step = lr
            if state["n_iter"] == 1:
                size = float(gradient.abs().sum().item())
                step *= 1.0 / max(size, 1.0)
            state["t"] = step
            slope = _dot(gradient, direction)
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if search is not None:
                start = Point(0.0, loss, gradient, slope)
                left = group["max_eval"] - evaluations
                end, used = self._search(closure, start, step, direction, left)
                loss, gradient, step = end.loss, end.gradient, end.step
                state["t"] = step
                self._move(step, direction)
            else:
                self._move(step, direction)
                if iteration != group["max_iter"]:  # else nobody would look at it
                    loss, gradient = self._evaluate(closure)
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or _largest(gradient) <= group["tolerance_grad"]
                or _largest(direction) * abs(step) <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _search(
        self, closure: Closure, start: Point, step: float, direction: Tensor, most: int
    ) -> tuple[Point, int]:
        origin = [parameter.clone() for parameter in self._parameters]

        def evaluate(step: float) -> Point:
            self._move(step, direction)
            loss, gradient = self._evaluate(closure)
            for parameter, value in zip(self._parameters, origin, strict=True):
                parameter.copy_(value)
            return Point(step, loss, gradient, _dot(gradient, direction))

        return strong_wolfe(evaluate, start, step, _largest(direction), most=most)


def _remember(state: dict[str, Any], gradient: Tensor, history: int) -> None:
    """Take the last iteration into account, and set ``state["d"]``, the direction of the next.

    ``old_stps`` holds the changes of the parameters, ``old_dirs`` those of the gradient, ``ro`` the inverse
    of their products: the names are torch's.
    """
    if state["n_iter"] == 1:
        state["d"] = -gradient
        state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
        state["H_diag"] = 1.0
        state["al"] = [None] * history
        return
    changes, moves, inverses = state["old_dirs"], state["old_stps"], state["ro"]
    change = gradient - state["prev_flat_grad"]
    move = state["d"] * number(state["t"])
    product = _dot(change, move)
    if product > 1e-10:  # else the curvature would not be positive
        if len(changes) == history:
            for several in (changes, moves, inverses):
                several.pop(0)
        changes.append(change)
        moves.append(move)
        inverses.append(1.0 / product)
        state["H_diag"] = product / _dot(change, change)
    # The two loops of Nocedal, 1980: the inverse Hessian times the gradient, without either.
    direction = -gradient
    weights = state.setdefault("al", [None] * history)
    for i in reversed(range(len(changes))):
        weights[i] = _dot(moves[i], direction) * number(inverses[i])
        direction.add_(changes[i], alpha=-weights[i])
    direction = direction * number(state["H_diag"])
    for i in range(len(changes)):
        weight = _dot(changes[i], direction) * number(inverses[i])
        direction.add_(moves[i], alpha=weights[i] - weight)
    state["d"] = direction


def _real(tensor: Tensor) -> Tensor:
    return view_as_real(tensor) if tensor.is_complex() else tensor


def _dot(a: Tensor, b: Tensor) -> float:
    return float(a.dot(b).item())


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().max().item())
