"""The source of a region's kernel: pointwise ops in one loop over the elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import sources

_HEADERS = ("prelude", "elementwise", "activations")


class Line(NamedTuple):
    """An op of a region's kernel.

    Attributes
    ----------
    text : str
        See `expressions`.
    dtypes : tuple of str
        Of its arguments, and at last of the result.
    registers : tuple of int
        Those of its arguments, and at last of the result.
    """

    text: str
    dtypes: tuple[str, ...]
    registers: tuple[int, ...]


class Place(NamedTuple):
    """An array that a region's kernel reads or writes.

    Attributes
    ----------
    dtype : str
    register : int
    layout : str
        "rows": its elements are counted as those of the region are. "one": it has one. "strided": by strides.
    """

    dtype: str
    register: int
    layout: str


def text(
    given: Sequence[Place], made: Sequence[Place], lines: Sequence[Line], dims: int, wide: bool
) -> str:
    """Return the source of a region's kernel.

    Parameters
    ----------
    given, made : sequence of Place
        What it reads and writes.
    lines : sequence of Line
        The ops, in order.
    dims : int
        How many dimensions are left of the shape.
    wide : bool
        Whether elements are counted in 64 bits.
    """
    index = "Long" if wide else "int"
    parameters, head, body, tail = [], [], [], []
    places = [(place, f"a{number}") for number, place in enumerate((*given, *made))]
    for number, (place, name) in enumerate(places):
        const = "const " if number < len(given) else ""
        parameters.append(f"{const}{sources.TYPES[place.dtype][0]}* {name}")
    parameters.append(f"{index} count")
    if any([place.layout == "strided" for place, _ in places]):
        parameters += [f"{index} n{d}" for d in range(1, dims)]
        head.append(f"{index} rest = i;")
        inner = range(dims - 1, 0, -1)
        head += [f"const {index} c{d} = rest % n{d}; rest /= n{d};" for d in inner]
        head.append(f"const {index} c0 = rest;")
    for number, (place, name) in enumerate(places):
        at = {"rows": "i", "one": "0"}.get(place.layout, "")
        if not at:
            parameters += [f"Long {name}_{d}" for d in range(dims)]
            at = " + ".join([f"c{d} * {name}_{d}" for d in range(dims)])
        register = f"v{place.register}"
        if number < len(given):
            computed = sources.TYPES[place.dtype][1]
            body.append(f"const {computed} {register} = load({name}[{at}]);")
        else:
            tail.append(f"{name}[{at}] = store<{sources.TYPES[place.dtype][0]}>({register});")
    for line in lines:
        element, computed = sources.TYPES[line.dtypes[-1]]
        names = [f"v{register}" for register in line.registers]
        value = line.text.format(*names[:-1]).replace(
            "(A)", f"({sources.TYPES[line.dtypes[0]][1]})"
        )
        value = f"({computed})({value})"
        if element != computed:
            value = f"load(store<{element}>({value}))"
        body.append(f"const {computed} {names[-1]} = {value};")
    statements = "\n".join([f"        {part}" for part in (*head, *body, *tail)])
    headers = [(sources.FOLDER / f"{name}.cuh").read_text("utf-8") for name in _HEADERS]
    return "\n".join(headers) + (
        f'\nextern "C" __global__ void region({", ".join(parameters)}) {{\n'
        f"    for (Long k = global_thread(); k < count; k += all_threads()) {{\n"
        f"        const {index} i = ({index})k;\n{statements}\n    }}\n}}\n"
    )
