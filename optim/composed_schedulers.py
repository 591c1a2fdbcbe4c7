"""Schedulers made of schedulers: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from .optimizer import Optimizer
from .scheduler_base import LRScheduler, plain, set_value


class _Composed(LRScheduler):
    _transient = ("optimizer", "_own_step", "_schedulers")
    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer, with the schedulers' own states."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        rest = dict(state_dict)
        states = rest.pop("_schedulers")
        super().load_state_dict(rest)
        for scheduler, state in zip(self._schedulers, states, strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Composed):
    """Schedulers that take turns at given epochs.

    Parameters
    ----------
    optimizer : Optimizer
        That of all the schedulers.
    schedulers : list of LRScheduler
        In the order of their turns.
    milestones : list of int
        The epochs at which the second and each following one begin.
    last_epoch : int
        The number of steps done before.

    Raises
    ------
    ValueError
        If the numbers don't fit, or a scheduler belongs to another optimizer.

    Examples
    --------
    >>> import tensorplug as tp
    >>> optimizer = tp.optim.SGD([tp.zeros(1)], lr=1.0)
    >>> warmup = tp.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=10)
    >>> decay = tp.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = tp.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], [1])
    >>> optimizer.param_groups[0]["lr"]
    0.5
    >>> optimizer.step()
    >>> scheduler.step()
    >>> optimizer.param_groups[0]["lr"]
    1.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        _check_members(type(self).__name__, optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler has taken its first step when it was made; only the first one's may stand.
        for group in optimizer.param_groups:
            set_value(group, "lr", plain(group["initial_lr"]))
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Step the scheduler whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        scheduler._count_step()
        starts = turn > 0 and self._milestones[turn - 1] == self.last_epoch
        scheduler._move(0 if starts else None)
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Schedulers that all step at once, each upon the rates that the one before has set.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        In the order of their steps.
    optimizer : Optimizer, optional
        That of all the schedulers; by default the first one's.

    Raises
    ------
    ValueError
        If there is no scheduler, or one belongs to another optimizer.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        _check_members(type(self).__name__, self.optimizer, schedulers)
        self._schedulers = list(schedulers)
        self._last_lr = self._present()

    def step(self) -> None:  # type: ignore[override]
        """Step every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()


def _check_members(name: str, optimizer: Optimizer, schedulers: Sequence[Any]) -> None:
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(
                f"{name} at index {i} should have `optimizer` as its attribute, got {scheduler!r}"
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} for another one"
            )
