"""Conformance of process groups: every collective × dtype × layout, in a world of any size.

A plugin's author runs it in worlds of one to four processes::

    python -m tensorplug.distributed.run --nproc-per-node 4 -m tensorplug.testing.collectives --backend acme

Each process knows what all others give, so each checks what it gets. Values are small integers, so that
results are exact in every dtype; roundings of halves have cases of their own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tensorplug as tp
import tensorplug.distributed as dist

__all__ = ["DTYPES", "LAYOUTS", "Case", "cases", "main", "run"]

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
LAYOUTS = ("contiguous", "transposed", "strided", "expanded storage", "0-d", "empty")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One call: its name, and what runs it and returns what differed, "" for nothing.

    Where only some are run, those of which there is one of a kind are.
    """

    name: str
    check: Callable[[], str]
    one_of_a_kind: bool = False


def _values(rank: int, shape: tuple[int, ...], dtype: str) -> Array:
    """Return what a rank gives, in a dtype in which it can be computed with exactly."""
    count = int(np.prod(shape))
    numbers = (np.arange(count) * 7 + rank * 5 + np.arange(count) // 3) % 3 + 1
    if dtype == "bool":
        return (numbers > 1).reshape(shape)
    if dtype.startswith("complex"):
        return (numbers + 1j * (numbers[::-1] - 1)).reshape(shape)
    return numbers.reshape(shape)


def _tensor(values: Array, dtype: str, layout: str, device: str) -> Any:
    """Return a tensor with these values, laid out in memory as asked for."""
    made = (
        tp.tensor(values.reshape(-1).tolist(), dtype=getattr(tp, dtype))
        .reshape(values.shape)
        .to(device)
    )
    if layout == "transposed":
        return made.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "strided":
        wide = tp.zeros((*made.shape[:-1], 2 * made.shape[-1]), dtype=made.dtype, device=device)
        wide[..., ::2] = made
        return wide[..., ::2]
    if layout == "expanded storage":
        return tp.cat([made, made])[made.shape[0] :]
    return made


def _shape(layout: str) -> tuple[int, ...]:
    return {"0-d": (), "empty": (0, 3)}.get(layout, (4, 3))


def _host(tensor: Any) -> Array:
    wide = tensor.detach().cpu()
    if wide.dtype in (tp.float16, tp.bfloat16):
        wide = wide.to(tp.float64)
    return np.asarray(wide.numpy())


def _differs(got: Any, expected: Array, tolerance: float = 0.0) -> str:
    """Return how a tensor differs from what it should hold."""
    held = _host(got)
    if held.shape != expected.shape:
        return f"shape {held.shape}, expected {expected.shape}"
    if np.allclose(held, expected, rtol=tolerance, atol=tolerance):
        return ""
    return f"got {held.reshape(-1)[:8].tolist()}…, expected {expected.reshape(-1)[:8].tolist()}…"


_REDUCE: dict[str, Callable[[Array], Any]] = {
    "SUM": lambda all_: all_.sum(0), "PRODUCT": lambda all_: all_.prod(0),
    "MIN": lambda all_: all_.min(0), "MAX": lambda all_: all_.max(0),
    "AVG": lambda all_: all_.sum(0) / len(all_),
    "BAND": np.bitwise_and.reduce, "BOR": np.bitwise_or.reduce, "BXOR": np.bitwise_xor.reduce,
}  # fmt: skip
_TRUTH: dict[str, Callable[[Array], Any]] = {
    "SUM": np.logical_or.reduce, "PRODUCT": np.logical_and.reduce,
    "MIN": np.logical_and.reduce, "MAX": np.logical_or.reduce,
    "BAND": np.logical_and.reduce, "BOR": np.logical_or.reduce, "BXOR": np.logical_xor.reduce,
}  # fmt: skip


def _reductions(dtype: str) -> list[str]:
    """Return the reductions that have a meaning for a dtype."""
    if dtype == "bool":
        return list(_TRUTH)
    if dtype.startswith("complex"):
        return ["SUM", "PRODUCT", "AVG"]
    if dtype.startswith(("float", "bfloat")):
        return ["SUM", "PRODUCT", "MIN", "MAX", "AVG"]
    return ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


def _reduced(name: str, dtype: str, given: list[Array]) -> Array:
    table = _TRUTH if dtype == "bool" else _REDUCE
    return np.asarray(table[name](np.stack(given)))


_EPS = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-23, "complex64": 2**-23}


class _World:
    """What the cases of one world have in common."""

    def __init__(self, device: str) -> None:
        self.rank, self.size, self.device = dist.get_rank(), dist.get_world_size(), device
        self.ranks = range(self.size)

    def tensor(self, values: Array, dtype: str, layout: str) -> Any:
        return _tensor(values, dtype, layout, self.device)

    def given(self, dtype: str, layout: str) -> list[Array]:
        return [_values(rank, _shape(layout), dtype) for rank in self.ranks]

    def blank(self, dtype: str, layout: str) -> Any:
        return self.tensor(
            np.zeros(_shape(layout), np.bool_ if dtype == "bool" else int), dtype, layout
        )

    def blanks(self, dtype: str, layout: str) -> list[Any]:
        return [self.blank(dtype, layout) for _ in self.ranks]

    # --- each returns what differed ---

    def all_reduce(self, dtype: str, layout: str, name: str, asynchronous: bool) -> str:
        given = self.given(dtype, layout)
        t = self.tensor(given[self.rank], dtype, layout)
        work = dist.all_reduce(t, getattr(dist.ReduceOp, name), async_op=asynchronous)
        if work is not None:
            work.wait()
        return _differs(
            t, _reduced(name, dtype, given), 4 * _EPS.get(dtype, 2**-52) if name == "AVG" else 0
        )

    def reduce(self, dtype: str, layout: str, name: str) -> str:
        given, root = self.given(dtype, layout), self.size - 1
        t = self.tensor(given[self.rank], dtype, layout)
        dist.reduce(t, root, getattr(dist.ReduceOp, name))
        if self.rank != root:
            return _differs(t, given[self.rank])
        return _differs(
            t, _reduced(name, dtype, given), 4 * _EPS.get(dtype, 2**-52) if name == "AVG" else 0
        )

    def reduce_scatter(self, dtype: str, layout: str, name: str) -> str:
        shares = [
            [v + (s % 2 if v.dtype != bool else False) for s in self.ranks]
            for v in self.given(dtype, layout)
        ]
        own = [self.tensor(share, dtype, layout) for share in shares[self.rank]]
        expected = _reduced(name, dtype, [share[self.rank] for share in shares])
        tolerance = 4 * _EPS.get(dtype, 2**-52) if name == "AVG" else 0
        out = self.blank(dtype, layout)
        op = getattr(dist.ReduceOp, name)
        dist.reduce_scatter(out, own, op)
        wrong = _differs(out, expected, tolerance)
        if wrong:
            return wrong
        whole, out = tp.stack(own), self.blank(dtype, layout)
        before = whole.clone()
        dist.reduce_scatter_tensor(out, whole, op)
        if not bool((whole == before).all()):
            return "the input was overwritten"
        return _differs(out, expected, tolerance)

    def broadcast(self, dtype: str, layout: str) -> str:
        for root in self.ranks:
            given = self.given(dtype, layout)
            t = self.tensor(given[self.rank], dtype, layout)
            dist.broadcast(t, root)
            if wrong := _differs(t, given[root]):
                return f"from {root}: {wrong}"
        return ""

    def all_gather(self, dtype: str, layout: str) -> str:
        given = self.given(dtype, layout)
        t, outs = self.tensor(given[self.rank], dtype, layout), self.blanks(dtype, layout)
        dist.all_gather(outs, t)
        wrong = [_differs(out, expected) for out, expected in zip(outs, given, strict=True)]
        whole = tp.stack(self.blanks(dtype, layout))
        dist.all_gather_into_tensor(whole, t)
        return next(filter(None, [*wrong, _differs(whole, np.stack(given))]), "")

    def gather(self, dtype: str, layout: str) -> str:
        given, root = self.given(dtype, layout), self.size - 1
        t, outs = self.tensor(given[self.rank], dtype, layout), self.blanks(dtype, layout)
        dist.gather(t, outs if self.rank == root else None, dst=root)
        expected = given if self.rank == root else [np.zeros_like(given[0])] * self.size
        return next(filter(None, map(_differs, outs, expected)), "")

    def scatter(self, dtype: str, layout: str) -> str:
        given, root = self.given(dtype, layout), self.size - 1
        parts = [self.tensor(values, dtype, layout) for values in given]
        out = self.blank(dtype, layout)
        dist.scatter(out, parts if self.rank == root else None, src=root)
        return _differs(out, given[self.rank])

    def all_to_all(self, dtype: str, layout: str) -> str:
        # Rank r sends to s the values of rank r + s; rows differ in number where they are told.
        sent = [_values(self.rank + s, _shape(layout), dtype) for s in self.ranks]
        expected = [_values(s + self.rank, _shape(layout), dtype) for s in self.ranks]
        outs = self.blanks(dtype, layout)
        dist.all_to_all(outs, [self.tensor(values, dtype, layout) for values in sent])
        if wrong := next(filter(None, map(_differs, outs, expected)), ""):
            return wrong
        if layout in ("0-d", "empty"):
            return ""
        rows = [s % 2 + 1 for s in self.ranks]
        give = self.tensor(
            np.concatenate([v[:n] for v, n in zip(sent, rows, strict=True)]), dtype, layout
        )
        mine = self.rank % 2 + 1
        take = self.tensor(
            np.zeros((mine * self.size, 3), np.bool_ if dtype == "bool" else int), dtype, layout
        )
        dist.all_to_all_single(take, give, [mine] * self.size, rows)
        return _differs(take, np.concatenate([v[:mine] for v in expected]))

    def messages(self, dtype: str, layout: str) -> str:
        if self.size == 1:
            return ""
        given = self.given(dtype, layout)
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        out, own = self.blank(dtype, layout), self.tensor(given[self.rank], dtype, layout)
        ring = [dist.P2POp(dist.isend, own, right, tag=3), dist.P2POp(dist.irecv, out, left, tag=3)]
        for work in dist.batch_isend_irecv(ring):
            work.wait()
        if wrong := _differs(out, given[left]):
            return f"around the ring: {wrong}"
        # Two messages to one receiver, taken in the other order by their tags.
        if self.rank == 0:
            dist.isend(own, 1, tag=1)
            dist.send(self.tensor(given[1], dtype, layout), 1, tag=2)
        elif self.rank == 1:
            for tag, expected in ((2, given[1]), (1, given[0])):
                out = self.blank(dtype, layout)
                sender = dist.recv(out, None if tag == 2 else 0, tag=tag)
                if sender != 0 or _differs(out, expected):
                    return f"tag {tag} from {sender}: {_differs(out, expected)}"
        return ""

    def rounding(self, dtype: str) -> str:
        """Sum halves: no more wrong than one rounding for each process."""
        rows = np.random.default_rng(7).standard_normal((self.size, 500))
        halves = tp.tensor(rows.tolist()).to(getattr(tp, dtype))
        t = halves[self.rank].clone().to(self.device)
        dist.all_reduce(t)
        exact = _host(halves).sum(0)
        scale = np.abs(_host(halves)).sum(0)
        wrong = float((np.abs(_host(t) - exact) / scale).max())
        return "" if wrong <= self.size * _EPS[dtype] else f"relative error {wrong:.1e}"

    def subgroups(self) -> str:
        even = dist.new_group(list(range(0, self.size, 2)))
        t = tp.tensor([float(self.rank + 1)], device=self.device)
        dist.all_reduce(t, group=even)
        members = list(range(0, self.size, 2))
        expected = float(sum(m + 1 for m in members)) if self.rank in members else self.rank + 1.0
        if dist.get_rank(even) != (members.index(self.rank) if self.rank in members else -1):
            return f"rank {dist.get_rank(even)} in the group"
        dist.destroy_process_group(even)
        return _differs(t, np.array([expected]))

    def shared(self) -> str:
        """Check calls whose input is their output, or a part of it: programs save memory so."""
        given = [np.arange(2.0 * self.size) + 10 * r for r in self.ranks]
        share = slice(2 * self.rank, 2 * self.rank + 2)
        t = tp.tensor(given[self.rank].tolist(), device=self.device)
        dist.all_gather_into_tensor(t, t[share])
        expected = np.concatenate([g[2 * r : 2 * r + 2] for r, g in enumerate(given)])
        if wrong := _differs(t, expected):
            return f"all_gather_into_tensor: {wrong}"
        t = tp.tensor(given[self.rank].tolist(), device=self.device)
        dist.reduce_scatter_tensor(t[share], t)
        expected = given[self.rank].copy()
        expected[share] = np.sum(given, axis=0)[share]
        if wrong := _differs(t, expected):
            return f"reduce_scatter_tensor: {wrong}"
        t = tp.tensor(given[self.rank].tolist(), device=self.device)
        dist.all_to_all_single(t, t)
        return _differs(t, np.concatenate([g[share] for g in given]))

    def overlapping(self) -> str:
        """Several collectives under way, waited for in the other order."""
        tensors = [
            tp.full((1000 * (n + 1),), float(self.rank + n), device=self.device) for n in range(8)
        ]
        works = [dist.all_reduce(t, async_op=True) for t in tensors]
        for work in reversed(works):
            if work is None or not work.wait() or not work.is_completed():
                return "a wait did not end complete"
        sums = [sum(r + n for r in self.ranks) for n in range(8)]
        return next(
            filter(
                None,
                (
                    _differs(t, np.full(t.shape, float(s)))
                    for t, s in zip(tensors, sums, strict=True)
                ),
            ),
            "",
        )

    def objects(self) -> str:
        mine = {"rank": self.rank, "text": "x" * (10 * self.rank)}
        everybody = [{"rank": r, "text": "x" * (10 * r)} for r in self.ranks]
        got: list[Any] = [None] * self.size
        dist.all_gather_object(got, mine)
        one = [mine, None]
        dist.broadcast_object_list(one, self.size - 1)
        part: list[Any] = [None]
        dist.scatter_object_list(part, everybody if self.rank == 0 else None, 0)
        right = got == everybody and one == [everybody[-1], None] and part == [mine]
        return "" if right else f"got {got}, {one}, {part}"

    def counting(self) -> str:
        """Check that a write by a collective is one that autograd knows of."""
        t = tp.ones(3, device=self.device)
        before = t._version
        dist.all_reduce(t)
        return "" if t._version > before else "the tensor's version is as before"


def cases(device: str = "cpu") -> Iterator[Case]:
    """Yield the cases, in an order that is the same in all processes of the world."""
    world = _World(device)
    moves = (
        world.broadcast, world.all_gather, world.gather, world.scatter, world.all_to_all, world.messages,
    )  # fmt: skip
    for dtype in DTYPES:
        for layout in LAYOUTS:
            where = f"({dtype}, {layout})"
            for name in _reductions(dtype):
                for mode in ("", " async"):
                    check = partial(world.all_reduce, dtype, layout, name, bool(mode))
                    yield Case(f"all_reduce {name}{mode} {where}", check)
                for reduce in (world.reduce, world.reduce_scatter):
                    yield Case(
                        f"{reduce.__name__} {name} {where}", partial(reduce, dtype, layout, name)
                    )
            for move in moves:
                yield Case(f"{move.__name__} {where}", partial(move, dtype, layout))
    for dtype in ("float16", "bfloat16"):
        yield Case(f"rounding ({dtype})", partial(world.rounding, dtype))
    for whole in (
        world.subgroups, world.shared, world.overlapping, world.objects, world.counting,
    ):  # fmt: skip
        yield Case(whole.__name__, whole, one_of_a_kind=True)


def run(device: str = "cpu", every: int = 1) -> tuple[int, list[str]]:
    """Run the cases in the world that this process has joined.

    Parameters
    ----------
    device : str
        Where the tensors are.
    every : int
        Run each so-manieth case only, and those of which there is one of a kind.

    Returns
    -------
    tuple
        How many cases ran, and what failed in this process. An exception counts as a failure; where only
        some processes raise it, the others may wait until they time out.
    """
    failures = []
    count = 0
    for number, case in enumerate(cases(device)):
        if number % every and not case.one_of_a_kind:
            continue
        count += 1
        try:
            wrong = case.check()
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            failures.append(f"{case.name}: {wrong}")
    return count, failures


def main(arguments: list[str] | None = None) -> int:
    """Join the world, run the cases, print what failed anywhere, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tensorplug.testing.collectives")
    parser.add_argument(
        "--backend", default=None, help="the process groups to test; by default the best"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--every", type=int, default=1, help="run each so-manieth case only")
    chosen = parser.parse_args(arguments)
    dist.init_process_group(chosen.backend)
    count, failures = run(chosen.device, chosen.every)
    everybody: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, failures)
    if dist.get_rank() == 0:
        for rank, failed in enumerate(everybody):
            for failure in failed:
                sys.stdout.write(f"rank {rank}: {failure}\n")
        size, wrong = dist.get_world_size(), sum(map(len, everybody))
        sys.stdout.write(f"{count} cases in a world of {size}: {wrong} failures\n")
    dist.destroy_process_group()
    return 1 if any(everybody) else 0


if __name__ == "__main__":
    sys.exit(main())
