"""What plugins register for single ops, such as derivatives: the highest priority serves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from ..dispatch import op_registry
from ..dispatch.op import Op
from ..errors import RegistrationError

__all__ = ["OpItem", "OpRules"]


class OpItem(Protocol):
    """What a plugin hands over for one op."""

    op: str
    priority: int
    owner: str


Item = TypeVar("Item", bound=OpItem)
Rule = TypeVar("Rule")


class OpRules(Generic[Item, Rule]):
    """What the plugins returned from one hook, by op.

    Parameters
    ----------
    hook : str
        The hook's name.
    what : str
        What an item is, for messages.
    item_type : type
        The class of items.
    compiled : callable
        ``compiled(op, item)`` checks an item against its op and returns the rule that serves.
    changed : callable, optional
        Called with an op and its rule, or None, whenever another one serves.

    Attributes
    ----------
    active : dict
        The rule that serves, by the op's name.
    """

    def __init__(
        self,
        hook: str,
        what: str,
        item_type: type[Item],
        compiled: Callable[[Op, Item], Rule],
        changed: Callable[[Op, Rule | None], None] | None = None,
    ) -> None:
        self.hook = hook
        self.what = what
        self.item_type = item_type
        self.active: dict[str, Rule] = {}
        self._compiled = compiled
        self._changed = changed
        # By op, the highest priority first.
        self._ranked: dict[str, list[tuple[Item, Rule]]] = {}

    def ranked(self, op: str) -> list[Rule]:
        """Return the rules of an op, the highest priority first."""
        return [rule for _, rule in self._ranked.get(op, ())]

    def add(self, given: Iterable[Any], owner: str) -> list[Item]:
        """Register what a plugin returned, all or nothing.

        Raises
        ------
        RegistrationError
            If something is no item of this key, an op is unknown, an item does not fit its op, or one of
            the same priority is there.
        """
        added: dict[str, list[tuple[Item, Rule]]] = {}
        items = list(self._items(given, owner))
        for item in items:
            item.owner = owner
            op = self._op_of(item)
            others = [*self._ranked.get(op.name, ()), *added.get(op.name, ())]
            for other, _ in others:
                if other.priority == item.priority:
                    whose = (
                        "another of its own"
                        if other.owner == owner
                        else f"the one of {other.owner}"
                    )
                    raise RegistrationError(
                        f"{owner}: the {self.what} of {op.name!r} has the same priority "
                        f"({item.priority}) as {whose}; give one of them another priority"
                    )
            added.setdefault(op.name, []).append((item, self._compiled(op, item)))
        for name, pairs in added.items():
            self._rank(name, [*self._ranked.get(name, ()), *pairs])
        return items

    def remove(self, owner: str) -> None:
        """Take everything of a plugin back."""
        for name, pairs in list(self._ranked.items()):
            kept = [pair for pair in pairs if pair[0].owner != owner]
            if len(kept) != len(pairs):
                self._rank(name, kept)

    def _rank(self, name: str, pairs: list[tuple[Item, Rule]]) -> None:
        if pairs:
            pairs.sort(key=lambda pair: -pair[0].priority)
            self._ranked[name] = pairs
            self.active[name] = pairs[0][1]
        else:
            del self._ranked[name], self.active[name]
        if self._changed is not None and op_registry.has_op(name):
            self._changed(op_registry.get_op(name), self.active.get(name))

    def _items(self, given: Iterable[Any], owner: str) -> Iterator[Item]:
        for item in given:
            if isinstance(item, self.item_type):
                if isinstance(item.priority, bool) or not isinstance(item.priority, int):
                    raise RegistrationError(
                        f"{owner}: the priority of {item!r} must be an int, got {item.priority!r}"
                    )
                yield item
            elif isinstance(item, (list, tuple)):
                yield from self._items(item, owner)
            else:
                hook = getattr(item, "hook", None)
                fix = f"; return it from {hook}" if isinstance(hook, str) else ""
                raise RegistrationError(
                    f"{owner}: {self.hook} must return {self.what}s, got {item!r}{fix}"
                )

    def _op_of(self, item: Item) -> Op:
        try:
            return op_registry.get_op(item.op)
        except KeyError as error:
            raise RegistrationError(
                f"{item.owner}: {self.what} of an unknown op: {error.args[0]}"
            ) from None
