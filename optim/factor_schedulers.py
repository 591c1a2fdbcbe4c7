"""Schedulers that multiply the learning rate by a function of the epoch.

They are recursive: each step multiplies the present rate by the ratio of two factors, so that
several schedulers, or the user, may change the same rate.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from .optimizer import Optimizer
from .scheduler_base import LRScheduler, check_optimizer


def _share(epoch: float, total: float) -> float:
    """Return how much of `total` epochs is over; of none, nothing ever is."""
    return min(epoch, total) / total if total else 0.0


class FactorLR(LRScheduler):
    """Rates of the form ``floor + (base - floor) * factor(epoch)``."""

    #: The rate that a factor of 0 stands for.
    _floor: float = 0.0

    def _factor(self, epoch: float) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        """Return the present rates, moved on by one epoch."""
        if self._resumed():
            return self._present()
        now = self._factor(self.last_epoch)
        before = 1.0 if self.last_epoch == 0 else self._factor(self.last_epoch - 1)
        floor = self._floor
        if now == before:
            return self._present()
        if before == 0.0:
            return [
                lr + (base - floor) * now
                for lr, base in zip(self._present(), self.base_lrs, strict=True)
            ]
        ratio = now / before
        return [floor + (lr - floor) * ratio for lr in self._present()]

    def _resumed(self) -> bool:
        """Return whether training goes on from an earlier one, whose last rates the groups have."""
        return self._is_initial and self.last_epoch > 0

    def _closed_form(self) -> list[Any]:
        factor = self._factor(self.last_epoch)
        return [self._floor + (base - self._floor) * factor for base in self.base_lrs]


def _functions(optimizer: Optimizer, lr_lambda: Any) -> list[Callable[[int], float]]:
    if not isinstance(lr_lambda, (list, tuple)):
        return [lr_lambda] * len(optimizer.param_groups)
    if len(lr_lambda) != len(optimizer.param_groups):
        raise ValueError(
            f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}"
        )
    return list(lr_lambda)


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    lr_lambda : callable or list of callable
        ``factor = lr_lambda(epoch)``, for all groups or for each. Plain functions are not part of
        ``state_dict``; objects with ``__call__`` are, by their attributes.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> optimizer = tp.optim.SGD([tp.zeros(1)], lr=1.0)
    >>> scheduler = tp.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1))
    >>> optimizer.step()
    >>> scheduler.step()
    >>> optimizer.param_groups[0]["lr"]
    0.5
    """

    _transient = ("optimizer", "_own_step", "lr_lambdas")

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = _functions(check_optimizer(optimizer), lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates at the present epoch."""
        epoch: Any = self.last_epoch
        return [
            base * function(epoch)
            for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer; of callables, what is not a function."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(function, types.FunctionType) else dict(function.__dict__)
            for function in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        rest = dict(state_dict)
        saved = rest.pop("lr_lambdas")
        super().load_state_dict(rest)
        for function, attributes in zip(self.lr_lambdas, saved, strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)


class MultiplicativeLR(LambdaLR):
    """The present rate times a function of the epoch.

    Parameters
    ----------
    optimizer, lr_lambda, last_epoch
        See :class:`~tensorplug.optim.lr_scheduler.LambdaLR`.

    Raises
    ------
    TypeError
        If a function is none.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        for function in _functions(optimizer, lr_lambda):
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the present rates, moved on by one epoch."""
        if self.last_epoch <= 0 or self._is_initial:
            return self._present()
        epoch: Any = self.last_epoch
        return [
            lr * function(epoch)
            for function, lr in zip(self.lr_lambdas, self._present(), strict=True)
        ]


class StepLR(FactorLR):
    """The rate times `gamma` every `step_size` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    step_size : int
        Epochs between two changes.
    gamma : float
        The factor.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: float) -> float:
        return float(self.gamma ** (epoch // self.step_size))

    def get_lr(self) -> list[Any]:
        """Return the present rates, times `gamma` where a change is due."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._present()
        return [lr * self.gamma for lr in self._present()]


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each milestone.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    milestones : iterable of int
        The epochs of the changes; one that appears twice counts twice.
    gamma : float
        The factor.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the present rates, times `gamma` where a change is due."""
        epoch: Any = self.last_epoch
        times = self.milestones.get(epoch, 0)
        return [lr * self.gamma**times for lr in self._present()] if times else self._present()

    def _closed_form(self) -> list[Any]:
        passed = sum(
            times for milestone, times in self.milestones.items() if milestone <= self.last_epoch
        )
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(FactorLR):
    """The rate times `gamma` every epoch.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    gamma : float
        The factor.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: float) -> float:
        return float(self.gamma**epoch)

    def get_lr(self) -> list[Any]:
        """Return the present rates times `gamma`."""
        if self.last_epoch == 0 or self._is_initial:
            return self._present()
        return [lr * self.gamma for lr in self._present()]


class ConstantLR(FactorLR):
    """The rate times `factor` for the first `total_iters` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    factor : float
        A number between 0 and 1.
    total_iters : int
        How long.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError(
                f"Constant multiplicative factor expected to be between 0 and 1, got {factor}"
            )
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: float) -> float:
        return self.factor if epoch < self.total_iters or not self.total_iters else 1.0

    def _resumed(self) -> bool:
        return False  # as torch: the first rate is that of the next epoch


class LinearLR(FactorLR):
    """The rate times a factor that goes linearly from `start_factor` to `end_factor`.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    start_factor, end_factor : float
        The factors at epoch 0, above 0, and from epoch `total_iters` on.
    total_iters : int
        How many epochs lie between.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to "
                f"1, got {start_factor}"
            )
        if not 0 <= end_factor <= 1.0:
            raise ValueError(
                f"Ending multiplicative factor expected to be between 0 and 1, got {end_factor}"
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: float) -> float:
        done = _share(epoch, self.total_iters)
        return self.start_factor + (self.end_factor - self.start_factor) * done


class PolynomialLR(FactorLR):
    """The rate times ``(1 - epoch / total_iters) ** power``.

    Parameters
    ----------
    optimizer : Optimizer
        Whose learning rates are set.
    total_iters : int
        From which epoch on the rate is 0.
    power : float
        The power.
    last_epoch : int
        See :class:`~tensorplug.optim.lr_scheduler.LRScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: float) -> float:
        return float((1.0 - _share(epoch, self.total_iters)) ** self.power)
