"""Chains: loops of a region that follow each other, whose values stay in registers of the processor.

A loop that can be part of one has a *link*. A link takes the value at hand, and reads its other arguments
from memory; what is needed later than by the next link is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

#: In the place of the address of a link: it loads the value at hand, or stores it.
LOAD, STORE = 0, 1

#: The address of a loop, its numbers, and its registers, of which the last one is the result's.
Call = tuple[int, tuple[float, ...], tuple[int, ...]]
#: The address of a link, its numbers, and the registers that it reads or writes.
Link = tuple[int, tuple[float, ...], tuple[int, ...]]


def chains_of(
    calls: Sequence[Call], arrays: int, linked: Mapping[int, tuple[int, int, int]]
) -> Iterator[tuple[int, int, list[Link]]]:
    """Return the chains: the number of the first call, that behind the last one, and the links.

    Parameters
    ----------
    calls : sequence of tuple
        The loops in their order. Each register is written once.
    arrays : int
        The registers below that are arrays; what is written to one is needed.
    linked : mapping
        By the address of a loop, the link for the value at hand as first argument, as the second of two (or
        0), and the size of an element.
    """
    first = 0
    while first < len(calls):
        itemsize = _itemsize(calls[first], linked)
        last = first + 1
        while itemsize and last < len(calls) and _itemsize(calls[last], linked) == itemsize:
            last += 1
        if itemsize and last - first > 1:
            later = {register for call in calls[last:] for register in call[2][:-1]}
            yield first, last, _links(calls[first:last], arrays, later, linked)
        first = last


def _itemsize(call: Call, linked: Mapping[int, tuple[int, int, int]]) -> int:
    return linked[call[0]][2] if call[0] in linked else 0


def _links(
    calls: Sequence[Call],
    arrays: int,
    later: set[int],
    linked: Mapping[int, tuple[int, int, int]],
) -> list[Link]:
    """Return the links of a chain; `later` are the registers that are read after it."""
    links: list[Link] = []
    read = set(later)
    at_hand = -1
    for address, numbers, (*given, result) in calls:
        code, turned, _ = linked[address]
        beside = tuple(given[1:])
        if given[0] != at_hand:
            if turned and given[1] == at_hand:
                code, beside = turned, (given[0],)
            else:
                links.append((LOAD, (), (given[0],)))
                read.add(given[0])
        read.update(beside)
        links += [(code, numbers, beside), (STORE, (), (result,))]
        at_hand = result
    return [link for link in links if link[0] != STORE or link[2][0] < arrays or link[2][0] in read]
