"""Random bits, and numbers made of them."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from .. import random
from .._dtypes import FLOATS, NUMBERED
from ..below import below


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("philox_bits", random.philox_bits)
    words = (dtype_named("int64"),)
    table.add("uniform_of_words", random.uniform_kernel(below("uniform_of_words")), dtypes=words)
    table.add("normal_of_words", random.normal_kernel(below("normal_of_words")), dtypes=words)
    table.add("permutation_new", random.permutation_new, dtypes=words)
    wide = [dtype for dtype in FLOATS if dtype.itemsize > 2]
    for function in (random.poisson_new, random.multinomial_new, random.fewest_positive):
        table.add(function.__name__, function, dtypes=wide)
    for number, dtype in enumerate(NUMBERED):
        only = (dtype,)
        if dtype in FLOATS:
            table.add("uniform_new", random.floats_of(number, False), dtypes=only, out=True)
            table.add("normal_new", random.floats_of(number, True), dtypes=only, out=True)
        yes_or_no = random.bernoulli_of(number, dtype, below("bernoulli_new"))
        table.add("bernoulli_new", yes_or_no, dtypes=only, out=True)
        whole = random.integers_of(number, below("integers_new"))
        table.add("integers_new", whole, dtypes=only, out=True)
