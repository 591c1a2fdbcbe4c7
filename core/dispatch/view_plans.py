"""Plans of view ops: to which views, of which tensor, a call comes."""

from __future__ import annotations

from typing import Any

from .keys import DispatchKey
from .op import Op

#: Where in memory the source of a planned view has to lie: anywhere; row by row; so, and from the start of
#: its storage on, as a new tensor does.
ANYWHERE, IN_ROWS, AT_START = 0, 1, 2

#: Stands for an argument that was not given in its place: perhaps by name.
ABSENT: Any = type("nothing", (), {})()


class PlannedCall:
    """A call of a view op that is planned: the tensor it was of, and its plain arguments.

    Attributes
    ----------
    key, given : DispatchKey, tuple of int
        Of the tensor.
    first, second, third, fourth : object
        The arguments after it: ints, tuples of them, dtypes, None; `ABSENT` for those that were not given.
    recording : object
        The gradient layer's own: how such a call is recorded.
    following : PlannedCall or None
        What served the op's next call when it was another one: programs repeat their calls in turn.
    """

    __slots__ = ("first", "following", "fourth", "given", "key", "recording", "second", "third")

    def __init__(self) -> None:
        self.key: DispatchKey | None = None
        self.given: tuple[int, ...] = ()
        self.first = self.second = self.third = self.fourth = ABSENT
        self.recording: Any = None
        self.following: PlannedCall | None = None

    def note_call(self, source: Any, args: tuple[Any, ...]) -> None:
        """Note the call that the plan is of, with its arguments after the tensor, at most four."""
        self.given = source._shape
        found = [tuple(arg) if isinstance(arg, (tuple, list)) else arg for arg in args]
        found += [ABSENT] * (4 - len(found))
        self.first, self.second, self.third, self.fourth = found
        self.key = source._key  # at last: other threads take a plan with a key for whole

    def is_of(self, source: Any, first: Any, second: Any, third: Any, fourth: Any) -> bool:
        """Return whether a call is like the one that the plan is of."""
        return (
            self.key is source._key
            and (self.given is source._shape or self.given == source._shape)
            and (self.first is first or _same(self.first, first))
            and (self.second is second or _same(self.second, second))
            and (self.third is third or _same(self.third, third))
            and (self.fourth is fourth or _same(self.fourth, fourth))
        )


def _same(planned: Any, given: Any) -> bool:
    """Return whether two ints, or sequences of ints, are the same; True and 1.0 are no ints."""
    if type(given) is int:
        return type(planned) is int and bool(planned == given)
    if (type(given) is list or isinstance(given, tuple)) and isinstance(planned, tuple):
        if len(given) != len(planned):
            return False
        for index in range(len(planned)):
            item = given[index]
            if type(item) is not int or planned[index] != item:
                return False
        return True
    return False


class ViewPlan(PlannedCall):
    """The view of its first argument that a call of a view op comes to.

    Attributes
    ----------
    op, values : Op, tuple
        The primitive view op, and its canonical arguments after the tensor.
    single : bool
        Whether there is one of them.
    shape : tuple of int
        The view's.
    result : DispatchKey or None
        The view's, where it shows the same bytes as other numbers.
    where : int
        Where in memory the tensor has to lie: `ANYWHERE`, `IN_ROWS`, `AT_START`.
    """

    __slots__ = ("op", "result", "shape", "single", "values", "where")

    def __init__(
        self,
        op: Op,
        values: tuple[Any, ...],
        given: tuple[int, ...],
        shape: tuple[int, ...],
        result: DispatchKey | None = None,
    ) -> None:
        super().__init__()
        self.op = op
        self.values = values
        self.single = len(values) == 1
        self.shape = shape
        self.result = result
        self.where = ANYWHERE
        if result is not None:
            # The parts of a number lie where it does; others are put together of neighbours.
            self.where = ANYWHERE if len(shape) > len(given) else AT_START
        elif op.reads_layout:
            self.where = layout_read(op)
            if op.layout and _but_for_ones(given) == _but_for_ones(shape):
                self.where = ANYWHERE


def layout_read(op: Op) -> int:
    """Return where a tensor has to lie for a call of an op to come to what it did before."""
    if not op.reads_layout:
        return ANYWHERE
    return IN_ROWS if op.layout else AT_START


class ViewChain(PlannedCall):
    """The views, each of the one before, that a call of a view op comes to; without any, the tensor itself.

    Attributes
    ----------
    views : tuple of ViewPlan
        How each is made.
    where : int
        Where in memory the tensor has to lie, as for :class:`ViewPlan`.
    """

    __slots__ = ("views", "where")

    def __init__(self, views: tuple[ViewPlan, ...], where: int) -> None:
        super().__init__()
        self.views = views
        self.where = where


class ViewPlans(PlannedCall):
    """The views of its first argument, several, that a call of a view op comes to.

    Attributes
    ----------
    views : tuple of ViewPlan
        How each is made.
    op, values : Op or None, tuple
        The op that records all of them as one node, and its canonical arguments after the tensor; None as
        long as no call was recorded.
    separate : bool
        Whether a call that is recorded does not end in such a node, but has to be made anew.
    """

    __slots__ = ("op", "separate", "values", "views")

    def __init__(self, views: tuple[ViewPlan, ...]) -> None:
        super().__init__()
        self.views = views
        self.op: Op | None = None
        self.values: tuple[Any, ...] = ()
        self.separate = False


class RowPlans(PlannedCall):
    """The views of single positions of the first dimension, by position; None for those not asked for yet."""

    __slots__ = ("rows",)

    def __init__(self, source: Any, count: int) -> None:
        super().__init__()
        self.note_call(source, ())
        self.rows: list[ViewPlan | None] = [None] * count


def _but_for_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]
