"""Why small calls of some operators take longer than torch's."""

import re
from collections.abc import Sequence
from typing import Any

LIMIT = 1.5

_RANDOM = (
    "arguments are read and words claimed from the generator, under its lock, before the kernel draws; "
    "chances and weights are checked in a call of their own"
)
_SCATTERED = "masks among the indices become positions first, and a number becomes a tensor"
_LAYOUT = "strides and offsets are asked of the device's runtime where a tensor does not lie as new ones do"
_COMPLEX = "transcendental functions of complex numbers are NumPy's, and the rest goes in passes of its own"
_NOTHING = "torch does next to nothing, or a sample asks for an order of memory, which is a second copy here"
_ARGUMENTS = (
    "arguments of many kinds are read in Python first; bounds that are tensors are read as numbers"
)
_FACTORS = (
    "several results, each a tensor, or drivers of LAPACK that SciPy calls one matrix at a time"
)
_SPECIAL = (
    "computed by SciPy or NumPy, in double precision or element by element where shapes broadcast"
)
_COUNTED = "extremes, edges and bounds are found by several calls around the counting"
_NETWORKS = "written in other ops: a kernel of its own is missing"

#: What their names match, and the cause; the first that matches counts.
CAUSES = (
    (r"rand|normal|bernoulli|multinomial|dropout|rrelu|fractional", _RANDOM),
    (r"index_put|index_reduce|scatter_reduce|index_fill|put$", _SCATTERED),
    (r"as_strided|_copy$|_scatter\b|^unfold", _LAYOUT),
    (r"^polar|\(complex\)", _COMPLEX),
    (
        (
            r"^(bool|byte|char|short|int|long|half|bfloat16|float|double|cfloat|cdouble|to|contiguous|positive"
            r"|conj|conj_physical|equal|item|isreal|trace|zero_|fill)\b"
        ),
        _NOTHING,
    ),
    (
        r"linspace|logspace|eye|zeros|_indices|diagflat|meshgrid|one_hot|nonzero|argwhere",
        _ARGUMENTS,
    ),
    (r"lu|lstsq|cholesky|_ex\b|linalg\.|cond|eig|svd|det|qr|geqrf|triangular", _FACTORS),
    (
        r"special|gamma|zeta|heaviside|fmax|fmin|lcm|gcd|cross|div|nextafter|power|pow|softmax",
        _SPECIAL,
    ),
    (r"histogram|histc|unique|bucketize|searchsorted|bincount|mode|topk|sort", _COUNTED),
    (
        (
            r"embedding|dist|ctc|interpolate|upsample|margin|fold|norm|entropy|grid_sample|pool|pixel|shuffle"
            r"|pad|softshrink|conv|stft"
        ),
        _NETWORKS,
    ),
    ("", "not looked into"),
)


def causes(cells: Sequence[Any]) -> list[str]:
    """Return a line per cause with the small calls above the limit, worst first."""
    slow = sorted(
        (cell for cell in cells if cell.size == "small" and cell.ratio > LIMIT),
        key=lambda cell: -cell.ratio,
    )
    found: dict[str, list[str]] = {}
    for cell in slow:
        name = cell.name.removeprefix("nn.functional.")
        cause = next(cause for pattern, cause in CAUSES if re.search(pattern, name))
        both = "" if cell.way == "forward" else " with backward"
        found.setdefault(cause, []).append(f"{name} {cell.ratio:.1f}{both}")
    return [f"- {cause}: {', '.join(names)}" for cause, names in found.items()]
