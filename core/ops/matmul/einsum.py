"""Sums of products over named dimensions, in Einstein's notation.

Every contraction of two tensors becomes one :func:`matmul`: their labels are sorted into those
both keep (batch), those only one keeps, and those summed over.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from ...dispatch.op_registry import composite
from ...tensor.base import TensorBase
from ..arithmetic.pointwise import mul
from ..reductions.reductions import sum as sum_
from ..rules import check_tensor
from .products import matmul

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["einsum"]


# A label is a letter or a number of the sublist form; the ellipsis' dimensions are numbered from
# the last.
Label = str | int | tuple[str, int]
Labels = list[Label]


@composite(method=False)
def einsum(*args: Any) -> Tensor:
    """Return the sum of products that Einstein's notation names.

    Parameters
    ----------
    *args
        ``einsum("ij,jk->ik", a, b)``, or with lists of ints: ``einsum(a, [0, 1], b, [1, 2], [0,
        2])``.
        Without an output, the labels that occur once come out in alphabetic order. ``...`` stands
        for dimensions that broadcast.

    Raises
    ------
    RuntimeError
        If labels, ellipses and dimensions do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.tensor([[1, 2], [3, 4]])
    >>> tp.einsum("ij,ij->i", a, a)
    tensor([ 5, 25])
    >>> tp.einsum("ii", a)
    tensor(5)
    """
    terms, output, operands = _parse(args)
    tensors, labels = _expand_ellipses(terms, operands)
    target = _output_labels(terms, output, labels)
    sizes = _check_sizes(tensors, labels)
    for label in target:
        if label not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {_show(label)} does not appear in the equation for "
                "any "
                "input operand"
            )
    pairs = [_take_diagonals(t, own) for t, own in zip(tensors, labels, strict=True)]
    while len(pairs) > 1:
        i, j = (0, 1) if len(pairs) == 2 else _next_pair(pairs, target)
        right = pairs.pop(j)
        left = pairs.pop(i)
        needed = set(target).union(*[own for _, own in pairs])
        pairs.append(_contract(left, right, needed))
    # As torch: a sum of one integer operand is an int64, a product keeps the dtype.
    tensor, own = _sum_out(*pairs[0], set(target), promote=len(tensors) == 1)
    order = [own.index(label) for label in target]
    given = any([tensor is one for one in operands])  # of that, as torch, another tensor
    return tensor.permute(order) if given or order != list(range(len(order))) else tensor


def _parse(args: tuple[Any, ...]) -> tuple[list[list[Any]], list[Any] | None, list[Any]]:
    """Return each operand's labels, the output's or None, and the operands."""
    if not args:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if not isinstance(args[0], str):
        return _parse_sublists(args)
    equation = args[0]
    operands = (
        list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
    )
    if not operands:
        raise ValueError(
            f"einsum(): must specify at least one operand beside the equation {equation!r}"
        )
    for number, operand in enumerate(operands):
        if not isinstance(operand, TensorBase):
            kind = type(operand).__name__
            raise TypeError(f"einsum(): expected Tensor as operand {number}, but got {kind}")
    left, arrow, right = equation.partition("->")
    terms: list[list[Any]] = []
    start = 0
    for number, term in enumerate(left.split(",")):
        terms.append(_letters(term, equation, start, f"operand {number}"))
        start += len(term) + 1
    output = _letters(right, equation, start + 1, "output") if arrow else None
    if len(terms) != len(operands):
        more = "more" if len(operands) > len(terms) else "fewer"
        raise RuntimeError(
            f"einsum(): {more} operands were provided than specified in the equation {equation!r}: "
            f"{len(operands)} and {len(terms)}"
        )
    return terms, output, operands


def _letters(term: str, equation: str, start: int, place: str) -> list[Any]:
    """Return the labels of a part of an equation that begins at `start`, of an operand or the output."""
    labels: list[Any] = []
    position = 0
    while position < len(term):
        character = term[position]
        position += 1
        if character == " ":
            continue
        if character == ".":
            if Ellipsis in labels:
                found = "but" if place == "output" else "for which"
                raise RuntimeError(
                    f"einsum(): found '.' for {place} {found} an ellipsis"
                    f"{' (...)' if place == 'output' else ''} was already found, in {equation!r}"
                )
            if term[position : position + 2] != "..":
                raise RuntimeError(
                    f"einsum(): found '.' for {place} that is not part of any ellipsis (...), in "
                    f"{equation!r}"
                )
            labels.append(Ellipsis)
            position += 2
        elif character.isascii() and character.isalpha():
            labels.append(character)
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + position - 1} in the equation "
                f"string {equation!r}: subscripts must be in [a-zA-Z], got {character!r}"
            )
    return labels


def _parse_sublists(args: tuple[Any, ...]) -> tuple[list[list[Any]], list[Any] | None, list[Any]]:
    operands = list(args[: len(args) // 2 * 2 : 2])
    lists = [list(item) for item in args[1::2]]
    output = list(args[-1]) if len(args) % 2 else None
    for labels in (*lists, output or []):
        if labels.count(Ellipsis) > 1:
            raise RuntimeError("einsum(): a subscripts list has at most one ellipsis")
        for label in labels:
            if label is not Ellipsis and not (isinstance(label, int) and 0 <= label < 52):
                raise ValueError(
                    f"einsum(): subscript {label!r} in a subscripts list is not within the valid range "
                    "[0, 52), nor Ellipsis"
                )
    return lists, output, operands


def _expand_ellipses(terms: list[list[Any]], operands: list[Any]) -> tuple[list[Any], list[Labels]]:
    expanded: list[Labels] = []
    for number, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        check_tensor(operand, "einsum", f"operands[{number}]")
        ndim = len(operand._shape)
        if Ellipsis in term:
            missing = ndim - len(term) + 1
            if missing < 0:
                raise _wrong_count(number, ndim, len(term) - 1, True)
            index = term.index(Ellipsis)
            dots: Labels = [("...", d) for d in range(missing, 0, -1)]
            expanded.append(term[:index] + dots + term[index + 1 :])
        elif len(term) != ndim:
            raise _wrong_count(number, ndim, len(term), False)
        else:
            expanded.append(term)
    return operands, expanded


def _wrong_count(number: int, ndim: int, count: int, dots: bool) -> RuntimeError:
    how, end = ("is more than", "") if dots else ("does not match", " and no ellipsis was given")
    return RuntimeError(
        f"einsum(): the number of subscripts in the equation ({count}) {how} the number of "
        f"dimensions ({ndim}) for operand {number}{end}"
    )


def _output_labels(
    terms: list[list[Any]], output: list[Any] | None, labels: list[Labels]
) -> Labels:
    found: set[tuple[str, int]] = {
        label for own in labels for label in own if isinstance(label, tuple)
    }
    dots: Labels = [*sorted(found, reverse=True)]
    if output is None:
        counts = Counter(label for own in labels for label in own if not isinstance(label, tuple))
        single: list[Any] = [label for label, count in counts.items() if count == 1]
        # As torch: capital letters sort before small ones.
        return dots + sorted(single)
    target: Labels = []
    for label in output:
        if label is Ellipsis:
            target.extend(dots)
        elif label in target:
            raise RuntimeError(
                f"einsum(): output subscript {_show(label)} appears more than once in the output"
            )
        else:
            target.append(label)
    return target


def _show(label: Label) -> str:
    return "..." if isinstance(label, tuple) else str(label)


def _check_sizes(tensors: list[Any], labels: list[Labels]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for number, (tensor, own) in enumerate(zip(tensors, labels, strict=True)):
        seen: dict[Label, int] = {}
        for label, size in zip(own, tensor._shape, strict=True):
            if seen.setdefault(label, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {_show(label)} is repeated for operand {number} but the "
                    "sizes "
                    f"don't match, {size} != {seen[label]}"
                )
            known = sizes.get(label, 1)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise RuntimeError(
                    "einsum(): operands do not broadcast with remapped shapes: subscript "
                    f"{_show(label)} "
                    f"has size {size} for operand {number} which does not broadcast with "
                    f"previously seen size {known}"
                )
    return sizes


def _take_diagonals(tensor: Any, labels: Labels) -> tuple[Any, Labels]:
    """Return the tensor with each repeated label's dimensions replaced by their diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            tensor = tensor.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return tensor, labels


def _sum_out(
    tensor: Any, labels: Labels, needed: set[Label], *, promote: bool = False
) -> tuple[Any, Labels]:
    """Return the tensor summed over every dimension whose label is not needed any more."""
    dims = [d for d, label in enumerate(labels) if label not in needed]
    if not dims:
        return tensor, labels
    return (
        sum_(tensor, dims, dtype=None if promote else tensor.dtype),
        [label for label in labels if label in needed],
    )


def _next_pair(pairs: list[tuple[Any, Labels]], target: Labels) -> tuple[int, int]:
    """Return the two operands whose product is the smallest compared to what it uses up.

    That is the greedy rule of Daniel Smith and Johnnie Gray's opt_einsum (2018); ties go to the
    fewest multiplications.
    """
    sizes: dict[Label, int] = {}
    for tensor, own in pairs:
        for label, size in zip(own, tensor._shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    best: tuple[int, int, int, int] | None = None
    for i in range(len(pairs)):
        for j in range(i + 1, len(pairs)):
            left, right = set(pairs[i][1]), set(pairs[j][1])
            others = set(target).union(
                *[own for k, (_, own) in enumerate(pairs) if k not in (i, j)]
            )
            both = left | right

            def volume(labels: set[Label]) -> int:
                return math.prod([sizes[label] for label in labels])

            made = volume(both & others) - volume(left) - volume(right)
            cost = (made, volume(both), i, j)
            if best is None or cost < best:
                best = cost
    assert best is not None
    return best[2], best[3]


def _contract(
    left: tuple[Any, Labels], right: tuple[Any, Labels], needed: set[Label]
) -> tuple[Any, Labels]:
    """Return the product of two tensors, summed over the labels that nothing needs any more."""
    a, own_a = _drop_broadcast(left, right)
    b, own_b = _drop_broadcast(right, left)
    a, own_a = _sum_out(a, own_a, needed | set(own_b))
    b, own_b = _sum_out(b, own_b, needed | set(own_a))
    both = [label for label in own_a if label in own_b]
    batch = [label for label in both if label in needed]
    summed = [label for label in both if label not in needed]
    only_a = [label for label in own_a if label not in own_b]
    only_b = [label for label in own_b if label not in own_a]
    labels = batch + only_a + only_b
    shape_a = dict(zip(own_a, a._shape, strict=True))
    shape_b = dict(zip(own_b, b._shape, strict=True))
    a = _ordered(a, own_a, batch + only_a + summed)
    if not summed:
        # Nothing to sum: a plain product, whose broadcasting lines the dimensions up.
        b = _ordered(b, own_b, batch + only_b)
        lead = [shape_a[label] for label in batch]
        if only_a and only_b:
            kept_a = [shape_a[label] for label in only_a]
            a = a.reshape((*lead, *kept_a, *[1] * len(only_b)))
        if only_a:
            b = b.reshape((*lead, *[1] * len(only_a), *[shape_b[label] for label in only_b]))
        elif only_b:
            a = a.reshape((*lead, *[1] * len(only_b)))
        return mul(a, b), labels
    b = _ordered(b, own_b, batch + summed + only_b)
    lead = [shape_a[label] for label in batch]
    rows = [shape_a[label] for label in only_a]
    inner = [shape_a[label] for label in summed]
    columns = [shape_b[label] for label in only_b]
    merged = len(only_a) != 1 or len(only_b) != 1 or len(summed) != 1
    if merged:
        a = a.reshape(*lead, math.prod(rows), math.prod(inner))
        b = b.reshape(*lead, math.prod(inner), math.prod(columns))
    product = matmul(a, b)
    return (product.reshape((*lead, *rows, *columns)) if merged else product), labels


def _drop_broadcast(pair: tuple[Any, Labels], other: tuple[Any, Labels]) -> tuple[Any, Labels]:
    """Return the tensor without dimensions of size 1 that the other one has in full."""
    tensor, labels = pair
    full = dict(zip(other[1], other[0]._shape, strict=True))
    kept = [
        (label, size)
        for label, size in zip(labels, tensor._shape, strict=True)
        if size != 1 or full.get(label, 1) == 1
    ]
    if len(kept) == len(labels):
        return tensor, labels
    return tensor.reshape([size for _, size in kept]), [label for label, _ in kept]


def _ordered(tensor: Any, labels: Labels, order: Labels) -> Any:
    if labels == order:
        return tensor
    return tensor.permute([labels.index(label) for label in order])
