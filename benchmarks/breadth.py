"""The breadth table: every operator of torch's own database at three sizes, as ratios to torch.

::

    python -m benchmarks.breadth --quick
    python -m benchmarks.breadth --filter 'linalg|fft' --sizes small
    python -m benchmarks.breadth --sizes 1e4 --dtypes int64,bfloat16
    python -m benchmarks.breadth --write docs/performance.md

Each is called forward, and forward with backward where it has a derivative, on one thread, the libraries in
turns: on its small samples, at most four, and on the first of them that can be repeated to 1e4 and 1e6
elements. The large forms of an operator have a process of their own, with limits on its seconds and memory:
what needs more is left out, and named. Seconds are the processor's, so that other work on the machine hardly
counts. The numbers are compared in every case.
"""

import argparse
import datetime as dt
import functools
import gc
import importlib.util
import itertools
import json
import math
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from . import apart, database, harness
from .breadth_page import EXPLAINED, SIZES, TOO_MUCH_MEMORY, Cell, cells_of, page, write_between
from .database import Arguments, Operator

USUAL = "small,1e4,1e6"  # the largest forms take an hour
QUICK_SAMPLE = 10
FIRST_CALLS = 4  # in which things are looked up and traced
LONGEST = 1.0  # seconds of a call in torch, above which a larger form is not timed
FORMS_TOO_LONG = 2  # of an operator, after which no other is tried
FORMS = 8  # of an operator, which are tried
ALL_TURNS = 300  # seconds for all that is done with an operator at a size, in a direction
MEMORY = 2**33  # bytes of addresses for that, of which the libraries themselves take a fifth
# Of these the numbers are right in several ways; the magnitudes are compared.
NOT_UNIQUE = re.compile(r"svd|eig|qr|pca_lowrank|geqrf|ldl|householder|ormqr|orgqr|lu|lobpcg|lstsq")

DRAWS = 8
#: Forward passes that return a basis of what is left over, which may be any.
ANY_BASIS = frozenset(("linalg.svd",))


def caller(function: Callable[..., Any], calls: Sequence[Arguments]) -> database.Call:
    """Return what calls a function with each of some arguments."""
    if len(calls) == 1:
        args, kwargs = calls[0]
        return lambda: [function(*args, **kwargs)]
    return lambda: [function(*args, **kwargs) for args, kwargs in calls]


def differentiated(function: Callable[..., Any], calls: Sequence[Arguments], lib: Any) -> Any:
    """Return what does the same, and gives the gradients of what requires them."""
    prepared = []
    for arguments in calls:
        leaves = [t for t in database.tensors(arguments, lib) if t.requires_grad]
        args, kwargs = arguments
        outputs = [t for t in database.tensors(function(*args, **kwargs), lib) if t.requires_grad]
        if not leaves or not outputs:
            raise TypeError("nothing to differentiate")
        prepared.append((args, kwargs, leaves, [lib.ones_like(t.detach()) for t in outputs]))

    def call() -> Any:
        found = []
        for args, kwargs, leaves, weights in prepared:
            result = function(*args, **kwargs)
            outputs = [t for t in database.tensors(result, lib) if t.requires_grad]
            found.append(lib.autograd.grad(outputs, leaves, weights, allow_unused=True))
        return found

    return call


def verdict(name: str, ours: Any, theirs: Any, again: Any, libraries: tuple[Any, Any]) -> str:
    """Compare results; `again` is another one of torch, which tells what is random."""
    mine, reference, repeated = (
        list(database.tensors(value, library))
        for value, library in ((ours, libraries[0]), (theirs, libraries[1]), (again, libraries[1]))
    )
    if len(mine) != len(reference):
        return "DIFFER"
    random = False
    for a, b, c in zip(mine, reference, repeated, strict=True):
        if str(a.dtype).partition(".")[2] != str(b.dtype).partition(".")[2]:
            return "DIFFER"
        is_half = a.dtype.itemsize == 2 and a.dtype.is_floating_point
        some = (t.float() if is_half else t.resolve_conj().resolve_neg() for t in (a, b, c))
        x, y, z = (np.asarray(t.detach()) for t in some)
        random = random or not np.array_equal(y, z, equal_nan=y.dtype.kind in "fc")
        if x.shape != y.shape:
            return "DIFFER"
        if random or not x.size:
            continue
        if NOT_UNIQUE.search(name):
            x, y = np.abs(x), np.abs(y)
        if x.dtype.kind not in "fc":
            same = np.array_equal(x, y)
        else:
            large = np.abs(y[np.isfinite(y)]).max(initial=0.0)
            part = 2e-2 if is_half else 1e-3
            same = np.allclose(x, y, part, part * max(1.0, float(large)), equal_nan=True)
        if not same:
            return "DIFFER"
    return "random" if random else "agree"


class Table:
    """The measurements of one run.

    Parameters
    ----------
    ours, theirs : module
    rounds : int
    seconds : float
        As for :func:`harness.measure`.
    dtypes : sequence of str
        Of the samples, where operators take them, forward alone; by default float32, in both ways.
    """

    def __init__(
        self, ours: Any, theirs: Any, rounds: int, seconds: float, dtypes: Sequence[str] = ()
    ) -> None:
        self.libraries = (ours, theirs)
        self.dtypes = dtypes
        self.rounds = rounds
        self.seconds = seconds
        self.cells: list[Cell] = []

    def add(self, operator: Operator, sizes: Iterable[str]) -> None:
        """Measure an operator at some sizes."""
        for dtype in self.dtypes or ("",):
            self._add(operator, sizes, dtype)

    def _add(self, operator: Operator, sizes: Iterable[str], dtype: str) -> None:
        try:
            small = database.samples(operator, self.libraries[1], dtype)
        except Exception as error:  # one operator that fails must not hide the others
            self._failed(operator, "small", "forward", error)
            return
        for size in sizes:
            count = SIZES[size]
            said = f"{size} {dtype}".rstrip()
            for way in ("forward",) if dtype else ("forward", "backward"):
                if way == "backward" and not operator.info.supports_autograd:
                    continue
                work = functools.partial(self._cell, operator, said, way, small, count)
                try:
                    # What one process has met makes small calls faster or slower: they are all in this one.
                    cell = apart.result(work, ALL_TURNS, MEMORY) if count else work()
                except Exception as error:  # one that fails must not hide the others
                    self._failed(operator, said, way, error)
                    continue
                if cell is not None:
                    self.cells.append(cell)

    def _forms(self, small: Sequence[Arguments], count: int) -> Iterable[Sequence[Arguments]]:
        """Yield what is called: the small samples, or larger forms, of which there is one at a time."""
        if not count:
            return iter([small] if small else [])
        grown = (form for one in small for form in self._grown(one, count))
        return ([form] for form in itertools.islice(grown, FORMS))

    def _grown(self, one: Arguments, count: int) -> Iterable[Arguments]:
        return database.grown(one, count, self.libraries[1])

    def _cell(
        self, operator: Operator, size: str, way: str, small: Sequence[Arguments], count: int
    ) -> Cell | None:
        """Measure the first form that both libraries take, and that gives the same numbers if one does."""
        differing: Cell | None = None
        failed: Exception | None = None
        too_long = 0
        # Of some, such as losses with weights, torch differentiates the first argument only.
        for leaves in ("",) if way == "forward" else ("all", "first"):
            for form in self._forms(small, count):
                try:
                    cell = self._measured(operator, size, way, form, leaves)
                except TimeoutError:
                    too_long += 1
                    if too_long == FORMS_TOO_LONG:  # so would be the others
                        raise
                    continue
                except Exception as error:
                    failed = error
                    continue
                if cell.verdict != "DIFFER":
                    return cell
                differing = cell
            if differing is not None:
                return differing
        if failed is not None and (
            not count or isinstance(failed, MemoryError) or TOO_MUCH_MEMORY in str(failed).lower()
        ):
            raise failed
        return None  # of this size no form is taken

    def _measured(self, operator: Operator, size: str, way: str, form: Any, leaves: str) -> Cell:
        ours, theirs = self.libraries
        backward = way == "backward"
        firsts = {id(t) for args, _ in form for t in database.tensors(args[:1], theirs)}

        def leaf(value: Any) -> Any:
            if not isinstance(value, theirs.Tensor):
                return value
            wanted = leaves == "all" or (leaves == "first" and id(value) in firsts)
            value = value.detach().clone()
            floating = value.dtype.is_floating_point or value.dtype.is_complex
            return value.requires_grad_(wanted and floating)

        given = [database.converted(arguments, leaf) for arguments in form]
        mine = database.converted(given, lambda value: database.to_ours(value, ours, theirs))
        start = time.process_time()
        if backward:
            reference = differentiated(operator.theirs, given, theirs)
        else:
            reference = caller(operator.theirs, given)
        expected = reference()
        if size != "small" and time.process_time() - start > LONGEST:
            raise TimeoutError(f"a call of torch takes more than {LONGEST:g} second")
        make = differentiated if backward else lambda f, calls, _: caller(f, calls)
        call = make(operator.ours, mine, ours)
        found = call()
        # Two draws of a few numbers may be equal by chance.
        same = ""
        for _ in range(DRAWS):
            same = verdict(operator.name, found, expected, reference(), self.libraries)
            if same != "DIFFER":
                break
        for _ in range(FIRST_CALLS):
            call()
        taken = harness.in_turns((call, reference), self.rounds, self.seconds, time.process_time)
        calls = len(form)
        return Cell(
            operator.label, operator.namespace, size, way, taken[0] / calls, taken[1] / calls, same
        )

    def _failed(self, operator: Operator, size: str, way: str, error: Exception) -> None:
        message = f"{type(error).__name__}: {error}".splitlines()[0][:100]
        self.cells.append(Cell(operator.label, operator.namespace, size, way, error=message))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.breadth", description="All operators as ratios to torch."
    )
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth operator")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"three turns, and larger forms of every {QUICK_SAMPLE}th operator only",
    )
    parser.add_argument("--filter", default="", metavar="PATTERN", help="names that match a regex")
    parser.add_argument("--sizes", default=USUAL, help=f"of {', '.join(SIZES)} (default: {USUAL})")
    parser.add_argument(
        "--dtypes",
        default="",
        metavar="NAMES",
        help="of the samples, forward alone (default: float32)",
    )
    parser.add_argument("--rounds", type=int, help="turns of each library (default: 5)")
    parser.add_argument(
        "--add",
        type=Path,
        action="append",
        default=[],
        metavar="JSON",
        help="what an earlier run wrote, of which this one is a further part, or measures some again",
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into a page")
    parser.add_argument("--note", default="", help="what else the page says of the run")
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench"), help="folder to write (default: out/bench)"
    )
    options = parser.parse_args(arguments)
    options.sizes = options.sizes.split(",")
    options.dtypes = [name for name in options.dtypes.split(",") if name]
    if options.dtypes and options.write:
        parser.error("--write puts the table of float32 into the page, not that of --dtypes")
    options.rounds = options.rounds or (3 if options.quick else 5)
    if unknown := set(options.sizes) - set(SIZES):
        parser.error(f"no such sizes: {', '.join(sorted(unknown))}")
    for name in ("tensorplug", "torch"):
        if importlib.util.find_spec(name) is None:
            parser.error(f"{name} is not installed here; `make bench` sets up what is needed")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    from .overhead import THREADS, about

    for library in THREADS:  # read once, when the libraries load: so before the imports below
        os.environ[f"{library}_NUM_THREADS"] = "1"
    import torch

    import tensorplug as tp

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found, missing = database.operators(tp, torch)
    chosen = [one for one in found if re.search(options.filter, one.label)][:: options.sample]
    if not chosen:
        print(f"error: no operator matches {options.filter!r}", file=sys.stderr)
        return 2
    gc.freeze()  # the database's many objects: every collection would go through them
    table = Table(tp, torch, options.rounds, 0.001, options.dtypes)
    for path in options.add:
        again = {one.label for one in chosen}
        table.cells += [cell for cell in cells_of(path) if cell.name not in again]
    for number, operator in enumerate(chosen):
        before = len(table.cells)
        few = options.quick and number % QUICK_SAMPLE
        table.add(operator, [size for size in options.sizes if not (few and SIZES[size])])
        for cell in table.cells[before:]:
            said = cell.error or f"{cell.ratio:8.2f}  {cell.verdict}"
            print(f"{cell.name:44} {cell.size:14} {cell.way:9} {said}", flush=True)
    facts = about(options.rounds, table.seconds)
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / "breadth.json"
    rows = [asdict(cell) | {"ratio": cell.ratio} for cell in table.cells]
    finite = [
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in one.items()}
        for one in rows
    ]
    target.write_text(json.dumps({**facts, "missing": missing, "cells": finite}, indent=1), "utf-8")
    versions = facts["versions"]
    plugins = ", ".join(one.split(" ")[0] for one in facts["plugins"] if one.startswith("cpu"))
    said = (
        f"**{dt.datetime.now(dt.UTC):%Y-%m-%d}**, {platform.machine()}, one thread, Python "
        f"{facts['python']}, NumPy {versions['numpy']}, torch {versions['torch']}, "
        f"{'compiled' if tp.compiled() else 'uncompiled'}, {plugins}. "
        f"{len({cell.name for cell in table.cells})} operators. {options.note}".rstrip()
    )
    text = page(table.cells, said)
    print(f"\n{text}\n\nnot here: {', '.join(missing)}\n{target}")
    if options.write is not None:
        write_between(options.write, text)
    drawn = {cell.name for cell in table.cells if cell.verdict == "random"}
    wrong = [
        cell.name
        for cell in table.cells
        if cell.verdict == "DIFFER"
        and cell.name not in (drawn | EXPLAINED.keys() if cell.way == "backward" else ANY_BASIS)
    ]
    if wrong:
        print(f"error: numbers disagree: {', '.join(dict.fromkeys(wrong))}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
