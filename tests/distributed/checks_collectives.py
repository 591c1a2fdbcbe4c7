"""What every process does for test_collectives.py: coalesced, of split groups, with derivatives."""

import os
import random
import tempfile
from pathlib import Path

import pytest
from checks_data_parallel import drawn, raises, same

import tensorplug as tp
import tensorplug.distributed as dist
from tensorplug.distributed import (
    _functional_collectives as functional,
    checkpoint,
    nn as differentiable,
)
from tensorplug.distributed.tensor import Shard, distribute_tensor

CASES = int(os.environ.get("TENSORPLUG_FUZZ", "0")) * 10 or 8


def everybody(make):
    """Return what `make` returns for each rank: inputs are a function of it."""
    return [make(rank) for rank in range(dist.get_world_size())]


def check_coalesced_collectives():
    """Lists and blocks of collectives give what each by itself does."""
    size, rank = dist.get_world_size(), dist.get_rank()
    for case in range(CASES):
        rng = random.Random(case)
        dtype = rng.choice([tp.float32, tp.float64, tp.float16, tp.int64])
        shapes = [
            tuple(rng.choice([0, 1, 3]) for _ in range(rng.randint(0, 2)))
            for _ in range(rng.randint(1, 5))
        ]

        def give(rank, shapes=shapes, dtype=dtype, case=case):
            return [
                (drawn(s, seed=100 * case + 10 * i + rank) * 4).round().to(dtype)
                for i, s in enumerate(shapes)
            ]

        together = [tp.stack(t) for t in zip(*everybody(give), strict=True)]
        sums = [t.sum(0).to(dtype) for t in together]
        expected = [
            (dist.ReduceOp.SUM, sums),
            (dist.ReduceOp.MAX, [t.amax(0) for t in together]),
        ]
        if dtype.is_floating_point:
            expected.append((dist.ReduceOp.AVG, [t / size for t in sums]))
            expected.append((dist._make_nccl_premul_sum(2.0), [t * 2 for t in sums]))
        late = rng.random() < 0.5
        for op, reduced in expected:
            mine = give(rank)
            if rng.random() < 0.5:
                mine = [t.t().contiguous().t() if t.ndim == 2 else t for t in mine]
            future = dist.all_reduce_coalesced(mine, op, async_op=late)
            if late:
                future.wait()
            assert [t.tolist() for t in mine] == [t.tolist() for t in reduced], case
            mine = give(rank)
            with dist._coalescing_manager(async_ops=late) as block:
                for t in mine:
                    assert dist.all_reduce(t, op) is None
            if late:
                block.wait()
            assert [t.tolist() for t in mine] == [t.tolist() for t in reduced], case
        parts = [[tp.empty_like(t) for t in mine] for _ in range(size)]
        dist.all_gather_coalesced(parts, give(rank))
        assert [[t.tolist() for t in p] for p in parts] == [
            [t.tolist() for t in p] for p in everybody(give)
        ]
    with (
        pytest.raises(ValueError, match="open already"),
        dist._coalescing_manager(),
        dist._coalescing_manager(),
    ):
        pass
    raises(
        RuntimeError,
        "has shapes [(2,)], this process's tensors [(3,)]",
        lambda: dist.all_gather_coalesced([[tp.ones(2)]] * size, [tp.ones(3)]),
    )


def check_collectives_of_groups():
    """Groups, roots by either rank, parts of unequal size: each member gets what it should."""
    world, me = dist.get_world_size(), dist.get_rank()
    for case in range(3 * CASES):
        rng = random.Random(case)
        members = sorted(rng.sample(range(world), rng.randint(1, world)))
        group = dist.new_group(members)
        # with and without a comparison of what all are about to do
        dist.set_debug_level(dist.DebugLevel.DETAIL if rng.random() < 0.5 else dist.DebugLevel.OFF)
        if me not in members:
            t = tp.full((2,), float(me))
            assert dist.all_reduce(t, group=group) is None
            assert t.tolist() == [me, me]
            continue
        size, rank = len(members), members.index(me)
        root = rng.randrange(size)
        src, dst = ({"src": members[root]}, {"dst": members[root]})
        if rng.random() < 0.5:
            src, dst = {"group_src": root}, {"group_dst": root}
        # how many rows each gives to each
        counts = [[rng.randint(0, 3) for _ in range(size)] for _ in range(size)]

        def rows(giver, taker, counts=counts):
            return drawn(counts[giver][taker], 2, seed=10 * giver + taker)

        def own(giver):
            return drawn(3, seed=giver)

        everybody = [own(r) for r in range(size)]
        t = own(rank)
        dist.broadcast(t, group=group, **src)
        same([t], [own(root)])
        t = own(rank)
        dist.reduce(t, group=group, **dst)
        same([t], [sum(everybody) if rank == root else own(rank)])
        got = [tp.empty_like(t) for _ in range(size)] if rank == root else None
        dist.gather(own(rank), got, group=group, **dst)
        same(got or [], everybody if rank == root else [])
        t = tp.empty(3, dtype=tp.float64)
        dist.scatter(t, everybody if rank == root else None, group=group, **src)
        same([t], [own(rank)])
        got = [tp.empty(counts[r][0], 2, dtype=tp.float64) for r in range(size)]
        dist.all_gather(got, rows(rank, 0), group=group)
        same(got, [rows(r, 0) for r in range(size)])
        taken = [counts[r][rank] for r in range(size)]
        got = tp.empty(sum(taken), 2, dtype=tp.float64)
        given = tp.cat([rows(rank, r) for r in range(size)])
        dist.all_to_all_single(got, given, taken, counts[rank], group=group)
        same([got], [tp.cat([rows(r, rank) for r in range(size)])])
        got = [tp.empty(count, 2, dtype=tp.float64) for count in taken]
        dist.all_to_all(got, [rows(rank, r) for r in range(size)], group=group)
        same(got, [rows(r, rank) for r in range(size)])
        t = tp.empty(3, dtype=tp.float64)
        dist.reduce_scatter(t, [own(rank) * (r + 1) for r in range(size)], group=group)
        same([t], [sum(everybody) * (rank + 1)])
        said = [f"from {me}" * me, me] if rank == root else [None, None]
        dist.broadcast_object_list(said, group=group, **src)
        assert said == [f"from {members[root]}" * members[root], members[root]]
        texts = [["x" * 10 * m] * (m + 1) for m in members]
        heard = [None]
        dist.scatter_object_list(heard, texts if rank == root else None, group=group, **src)
        assert heard == [texts[rank]]
        heard = [None] * size if rank == root else None
        dist.gather_object({"rank": me}, heard, group=group, **dst)
        assert heard == ([{"rank": m} for m in members] if rank == root else None)
        if size > 1:
            after, before = (rank + 1) % size, (rank - 1) % size
            work = dist.isend(own(rank), group=group, group_dst=after)
            t = tp.empty(3, dtype=tp.float64)
            assert dist.recv(t, members[before], group=group) == members[before]
            work.wait()
            same([t], [own(before)])
        dist.destroy_process_group(group)
    dist.set_debug_level(dist.DebugLevel.OFF)


def check_profiles_have_collectives():
    with tp.profiler.profile() as profiled:
        work = dist.all_reduce(tp.ones(1000), async_op=True)
        tp.ones(10).sum()
        work.wait()
        dist.barrier()
    events = profiled.events()
    found = {event.key: event for event in events if event.category == "collective"}
    assert set(found) == {"mpi:all_reduce", "mpi:barrier"}
    whole = found["mpi:all_reduce"]
    inside = next(e for e in events if e.key == "sum")
    assert whole.start < inside.start < whole.start + whole.cpu_time_total
    assert {e.key for e in events if e.category == "range"} <= {
        "wait for all_reduce",
        "wait for barrier",
    }
    assert whole.cpu_time_total <= profiled.events().wall * 1000 + 1


def check_groups_are_split():
    size, rank = dist.get_world_size(), dist.get_rank()
    own = dist.split_group(split_ranks=[[r] for r in range(size)])
    assert (own.rank(), own.size(), dist.get_process_group_ranks(own)) == (0, 1, [rank])
    whole = dist.split_group(split_ranks=[list(range(size))[::-1]])
    t = tp.tensor(float(rank))
    dist.all_reduce(t, group=whole)
    assert t.item() == sum(range(size))
    assert dist.split_group(own, [[0]]).size() == 1  # of a group that the others are not in
    if rank == 0:
        dist.split_group(own, [[0]])
    last = dist.split_group(split_ranks=[[size - 1]])
    assert (last is None) == (rank != size - 1)
    t = tp.ones(1)
    dist.all_reduce(t, group=dist.new_group(list(range(size))))
    assert t.item() == size
    for ranks, words in (
        ([], "cannot be None or empty"),
        ([[0], [0]], "duplicate ranks"),
        ([[size]], "not within"),
        ([[0], []], "cannot be empty"),
    ):
        raises(ValueError, words, lambda ranks=ranks: dist.split_group(split_ranks=ranks))


def check_groups_that_only_their_members_make():
    """Members alone call it, so often as they like; what all make afterwards is found by all."""
    size, rank = dist.get_world_size(), dist.get_rank()
    for _ in range(rank):  # by each a different number of times
        alone = dist.new_group([rank], use_local_synchronization=True)
        assert dist.get_process_group_ranks(alone) == [rank]
    none = dist.new_group([(rank + 1) % size], use_local_synchronization=True)
    assert none is dist.GroupMember.NON_GROUP_MEMBER
    for group in (
        dist.new_group(list(range(size)), use_local_synchronization=True),
        dist.new_group(list(range(size))),
    ):
        t = tp.tensor(float(rank))
        dist.all_reduce(t, group=group)
        assert t.item() == sum(range(size))
    upper = list(range(size // 2, size))
    group = dist.new_group(upper)
    if rank in upper:  # the parts of a group that the others are not in
        own, parts = dist.new_subgroups(1, group)
        assert dist.get_process_group_ranks(own) == [rank]
        assert len(parts) == len(upper)
    else:
        raises(ValueError, "must not exceed", lambda: dist.new_subgroups(1, group))
    own, parts = dist.new_subgroups(1)
    assert (dist.get_process_group_ranks(own), len(parts)) == ([rank], size)
    count = dist.get_pg_count()
    for _ in range(3):  # of the same ranks: one group
        t = functional.all_reduce(tp.tensor(float(rank)), "sum", list(range(size)))
        assert t.item() == sum(range(size))
        t = functional.all_reduce(tp.tensor(float(rank)), "sum", [[r] for r in range(size)])
        assert t.item() == rank
    assert dist.get_pg_count() == count + 2


def derivative(function, input, weights):
    """Return the gradient of this process's input, of the sum over all processes of weighted outputs."""
    input = input.clone().requires_grad_()
    outputs = function(input)
    outputs = [outputs] if isinstance(outputs, tp.Tensor) else list(outputs)
    sum((o * w).sum() for o, w in zip(outputs, weights, strict=True)).backward()
    return outputs, input.grad


def check_collectives_have_derivatives():
    """What each process gets is a linear function of what all give: derivatives are its transpose."""
    size, rank = dist.get_world_size(), dist.get_rank()
    n = 2 * size

    def give(rank):
        return drawn(n, 3, seed=rank)

    def weights(rank, count=1):
        return [drawn(n, 3, seed=50 + 7 * rank + i) for i in range(count)]

    total = sum(everybody(give))
    sums = sum(everybody(lambda r: weights(r)[0]))
    (out,), grad = derivative(differentiable.all_reduce, give(rank), weights(rank))
    same([out, grad], [total, sums])
    out, grad = derivative(differentiable.all_gather, give(rank), weights(rank, size))
    same(out, everybody(give))
    same([grad], [sum(everybody(lambda r: weights(r, size)[rank]))])
    (out,), grad = derivative(lambda x: differentiable.broadcast(x, 1), give(rank), weights(rank))
    same([out, grad], [give(1), sums if rank == 1 else tp.zeros_like(sums)])
    out, grad = derivative(lambda x: differentiable.gather(x, 1), give(rank), weights(rank, size))
    if rank == 1:
        same(out, everybody(give))
    same([grad], [weights(1, size)[rank]])
    (out,), grad = derivative(lambda x: differentiable.reduce(x, 0), give(rank), weights(rank))
    if rank == 0:
        same([out], [total])
    same([grad], [weights(0)[0]])
    rows = [tp.arange(n)[2 * r : 2 * r + 2] for r in range(size)]
    (out,), grad = derivative(
        lambda x: differentiable.scatter([x[r] for r in rows], 0), give(rank), [weights(rank)[0][:2]]
    )  # fmt: skip
    same([out], [give(0)[rows[rank]]])
    expected = tp.cat(everybody(lambda r: weights(r)[0][:2]))
    same([grad], [expected if rank == 0 else tp.zeros_like(expected)])
    for op, divisor in ((dist.ReduceOp.SUM, 1), (dist.ReduceOp.AVG, size)):
        (out,), grad = derivative(
            lambda x, op=op: differentiable.reduce_scatter(x[:2], [x[r] for r in rows], op),
            give(rank), [weights(rank)[0][:2]],
        )  # fmt: skip
        same([out, grad], [total[rows[rank]] / divisor, expected / divisor])
    for function in (
        lambda x: differentiable.all_to_all([x[r] for r in rows], [x[r] for r in rows]),
        lambda x: differentiable.all_to_all_single(x, x),
        lambda x: functional.all_to_all_single(x, [2] * size, [2] * size, None),
    ):
        out, grad = derivative(
            lambda x, f=function: tp.cat(_tuple(f(x))), give(rank), weights(rank)
        )
        same(out, [tp.cat(everybody(lambda r: give(r)[rows[rank]]))])
        same([grad], [tp.cat(everybody(lambda r: weights(r)[0][rows[rank]]))])


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def check_collectives_that_return():
    size, rank = dist.get_world_size(), dist.get_rank()
    mesh = dist.init_device_mesh("cpu", (size,))
    x = drawn(2 * size, 4, seed=rank)
    all_of_it = everybody(lambda r: drawn(2 * size, 4, seed=r))
    for group in (None, mesh, (mesh, 0), dist.group.WORLD):
        same([functional.all_reduce(x, "sum", group)], [sum(all_of_it)])
    same([functional.all_gather_tensor(x, 1, mesh)], [tp.cat(all_of_it, 1)])
    same(
        [functional.reduce_scatter_tensor(x, "avg", 0, mesh)],
        [(sum(all_of_it) / size)[2 * rank : 2 * rank + 2]],
    )
    same([functional.broadcast(x, 1, mesh)], [all_of_it[1]])
    same(functional.all_reduce_coalesced([x, x], "max", mesh), [tp.stack(all_of_it).amax(0)] * 2)
    same(functional.all_gather_into_tensor_coalesced([x], mesh), [tp.cat(all_of_it)])
    same(
        functional.reduce_scatter_tensor_coalesced([x], "sum", [0], mesh),
        [sum(all_of_it)[2 * rank : 2 * rank + 2]],
    )
    assert functional.wait_tensor(x) is x
    raises(ValueError, "unknown reduction", lambda: functional.all_reduce(x, "most", mesh))


def check_a_checkpoint_is_written_while_the_program_goes_on():
    place = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(place, 0)
    folder = Path(place[0], "saved")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    whole = drawn(5, 3)
    plain, divided, other = drawn(4), distribute_tensor(whole, mesh, [Shard(0)]), {"step": [1]}
    saved = checkpoint.async_save(
        {"plain": plain, "divided": divided, "other": other}, checkpoint_id=folder
    )
    plain.zero_()  # what is written is what was there
    divided.zero_()
    other["step"][0] = 2
    dist.barrier()
    assert not (folder / ".metadata").exists()  # before all have asked for it
    assert saved.result() is None
    assert saved.done()
    assert saved.exception() is None
    checkpoint.load(
        state := {"plain": plain, "divided": divided, "other": other}, checkpoint_id=folder
    )
    same([plain, divided.full_tensor()], [drawn(4), whole])
    assert state["other"] == {"step": [1]}
    failed = checkpoint.async_save({"x": lambda: 0}, checkpoint_id=folder)  # what cannot be pickled
    raises(checkpoint.CheckpointError, "the checkpoint was not written", failed.result)
    checkpoint.load({"plain": plain}, checkpoint_id=folder)  # the one before is there
