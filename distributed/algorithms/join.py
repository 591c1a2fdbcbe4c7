"""Processes whose inputs end at different times."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

from tensorplug.core.ops import ones, zeros

from .. import distributed_c10d as c10d

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does in place of its own iterations once its inputs have ended."""

    def main_hook(self) -> None:
        """Take part in the collectives of one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Be called once all have ended.

        Parameters
        ----------
        is_last_joiner : bool
            Whether this process was among the last to end.
        """


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool


_DISABLED = _JoinConfig(False, False, False)


class Joinable(ABC):
    """A class whose iterations contain collectives, and that can shadow those of others.

    A subclass calls :meth:`Join.notify_join_context` in each iteration before its collectives.
    """

    _join_config: _JoinConfig = _DISABLED

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook that stands for this object's iterations."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the collectives that :class:`Join` needs."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes that take part."""


class Join:
    """Let processes iterate unequally often within a ``with`` block.

    A process whose inputs have ended answers the collectives of the others' iterations until theirs have
    ended, too.

    Parameters
    ----------
    joinables : list of Joinable
        What has collectives in each iteration, in the order in which it has them.
    enable : bool
        Whether to do so at all; False where inputs are known to be even.
    throw_on_early_termination : bool
        Raise RuntimeError in every process as soon as one has no inputs left.
    **kwargs
        Passed to each :meth:`Joinable.join_hook`.

    Raises
    ------
    ValueError
        If there is none, or their process groups or devices differ.

    Examples
    --------
    >>> with Join([model, optimizer]):  # doctest: +SKIP
    ...     for batch in batches:
    ...         model(batch).sum().backward()
    ...         optimizer.step()
    """

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {id(joinable.join_process_group) for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        if len({joinable.join_device for joinable in joinables}) > 1:
            raise ValueError("Using join context manager with multiple devices")
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw = throw_on_early_termination

    def __enter__(self) -> Self:
        for number, joinable in enumerate(self._joinables):
            joinable._join_config = _JoinConfig(self._enable, self._throw, number == 0)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._enable and kind is None:
                self._answer()
        finally:
            for joinable in self._joinables:
                joinable._join_config = _DISABLED

    def _answer(self) -> None:
        """Take part in the collectives of the others until they have ended as well."""
        group, device = self._joinables[0].join_process_group, self._joinables[0].join_device
        last = True
        rounds = 0
        while True:
            active = zeros(1, device=device)
            c10d.all_reduce(active, group=group)
            if not int(active.item()):
                break
            if self._throw:
                raise RuntimeError(_EARLY)
            rounds += 1
            if rounds == 1000:
                warnings.warn(
                    "Detected uneven input skew of greater than 1000. This means that rank "
                    f"{c10d.get_rank(group)} has at least 1000 fewer inputs than other currently-active "
                    "ranks. This level of skew could lead to performance degradation during training.",
                    stacklevel=3,
                )
            last = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Tell those that have ended that this process begins an iteration.

        Parameters
        ----------
        joinable : Joinable
            Only the first of a context tells them.

        Returns
        -------
        Work or None
            Of the sum over one per process that goes on; None where there is no context. The sum is in its
            ``result()``.
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        active = ones(1, device=device)
        work: Any = c10d.all_reduce(active, group=group, async_op=True)
        if config.throw_on_early_termination:
            work.wait()
            if int(active.item()) < c10d.get_world_size(group):
                raise RuntimeError(_EARLY)
        return _Active(work, active)


class _Active:
    """How many processes go on."""

    def __init__(self, work: Any, active: Any) -> None:
        self._work, self._active = work, active

    def wait(self) -> bool:
        """Wait for all processes to have told."""
        self._work.wait()
        return True

    def result(self) -> list[Any]:
        """Return the number, as a tensor."""
        return [self._active]


_EARLY = "Detected at least one rank that exhausted inputs. Throwing across all ranks."
