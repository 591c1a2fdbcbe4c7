"""What every process does for test_checkpoint.py."""

import itertools
import json
import math
import random
import tempfile
from pathlib import Path

import pytest
from checks_data_parallel import CASES, drawn, network, part, raises, same

import tensorplug as tp
import tensorplug.distributed as dist
from tensorplug.distributed import checkpoint as dcp
from tensorplug.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from tensorplug.distributed.fsdp import fully_shard
from tensorplug.distributed.tensor import Replicate, Shard, distribute_tensor
from tensorplug.nn.parallel import DistributedDataParallel


def folder():
    """Return a new folder, the same in every process; its first process removes it in the end."""
    names = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(names, 0)
    return Path(names[0])


def meshes():
    """Return meshes of 1, 2 … processes, and of two dimensions."""
    size = dist.get_world_size()
    made = [dist.DeviceMesh("cpu", list(range(count))) for count in range(1, size + 1)]
    shapes = [(1, size), (size, 1), *([(2, 2)] if size == 4 else [])]
    return made + [dist.init_device_mesh("cpu", shape) for shape in shapes]


def check_tensors_are_divided_anew():
    """A tensor that some processes have written, divided in any way, others read divided in any way."""
    path = folder()
    layouts = meshes()
    for case in range(CASES):
        rng = random.Random(case)
        shape = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
        dtype = rng.choice([tp.float32, tp.float64, tp.bfloat16, tp.int64, tp.complex128, tp.bool])
        whole = (drawn(*shape, seed=case) * 100).to(dtype)

        def divided(values, shape=shape, rng=rng):
            mesh = rng.choice(layouts)
            placements = [
                rng.choice([Replicate(), *map(Shard, range(len(shape)))]) for _ in range(mesh.ndim)
            ]
            if mesh.get_coordinate() is None:
                return None
            return distribute_tensor(values, mesh, placements, src_data_rank=None)

        written, read = divided(whole), divided(tp.zeros_like(whole))
        extra = {"step": case, "name": "run", "betas": (0.9, 0.99), "list": [tp.ones(2), 3]}
        # Processes that are not in the mesh have nothing of the tensor.
        state = {} if written is None else {"nested": {"w": written}}
        state[f"of {dist.get_rank()}"] = tp.ones(1), dist.get_rank()
        dcp.save({**state, **extra, "plain": whole.clone()}, checkpoint_id=path)
        mine = f"of {dist.get_rank()}"
        tensors = json.loads((path / ".metadata").read_text())["tensors"]
        for name in ("nested.w", "plain"):  # each element once
            elements = [math.prod(piece["shape"]) for piece in tensors[name]["parts"]]
            assert sum(elements) == whole.numel(), case
        target = {
            mine: None,
            "step": 0,
            "betas": None,
            "list": [tp.zeros(2), 0],
            "plain": tp.zeros_like(whole),
        }
        if read is not None:
            target["nested"] = {"w": read}
        dcp.load(target, checkpoint_id=path)
        assert target["step"] == case
        assert target[mine][1] == dist.get_rank()
        assert target["betas"] == (0.9, 0.99)
        assert target["list"][0].tolist() == [1, 1]
        assert target["list"][1] == 3
        assert target["plain"].tolist() == whole.tolist()
        if read is not None:
            starts, sizes = read.extents()
            index = tuple(slice(a, a + b) for a, b in zip(starts, sizes, strict=True))
            assert read.to_local().tolist() == whole[index].tolist(), case
    assert len(list(path.iterdir())) == 2 * dist.get_world_size() + 1  # of the last one only


def trained(model, optimizer, steps):
    for step in steps:
        batch = drawn(8, 6, seed=step)
        inputs = part(batch) if hasattr(model, "reshard") or hasattr(model, "module") else batch
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()


def adam(model):
    return tp.optim.AdamW(model.parameters(), lr=1e-2)


def check_training_goes_on_under_another_division():
    reference = network()
    theirs = adam(reference)
    trained(reference, theirs, range(4))
    makers = {
        "divided": lambda: fully_shard(network(1)),
        "copies": lambda: DistributedDataParallel(network(1)),
        "alone": lambda: network(1),
    }
    for first, second in itertools.product(makers, makers):
        path = folder()
        model = makers[first]()
        set_model_state_dict(
            model, network().state_dict(), options=StateDictOptions(full_state_dict=True)
        )
        optimizer = adam(model)
        trained(model, optimizer, range(2))
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=path)
        again = makers[second]()
        optimizer = adam(again)
        weights, moments = get_state_dict(again, optimizer)
        dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=path)
        set_state_dict(again, optimizer, model_state_dict=weights, optim_state_dict=moments)
        trained(again, optimizer, range(2, 4))
        options = StateDictOptions(full_state_dict=True)
        whole = get_model_state_dict(again, options=options)
        assert list(whole) == list(reference.state_dict())
        same(whole.values(), reference.state_dict().values())
        state = get_optimizer_state_dict(again, optimizer, options=options)["state"]
        for name, parameter in reference.named_parameters():
            same([state[name]["exp_avg"]], [theirs.state[parameter]["exp_avg"]])


def check_objects_with_states():
    path = folder()
    model = fully_shard(network())
    optimizer = adam(model)
    trained(model, optimizer, range(3))
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=path)
    before = [p.full_tensor() for p in model.parameters()]
    moments = [dict(optimizer.state[p]) for p in model.parameters()]
    moments = [{n: v.clone() for n, v in m.items()} for m in moments]
    trained(model, optimizer, range(3, 5))
    dcp.load({"model": model, "optimizer": optimizer}, checkpoint_id=path)
    same([p.full_tensor() for p in model.parameters()], before, 0)
    for parameter, moment in zip(model.parameters(), moments, strict=True):
        for name, value in moment.items():
            assert optimizer.state[parameter][name].tolist() == value.tolist(), name


def check_a_checkpoint_that_fails_leaves_the_one_before():
    path = folder()
    dcp.save({"w": tp.ones(3)}, checkpoint_id=path)
    writer = dcp.FileSystemWriter(path)
    if dist.get_rank() == dist.get_world_size() - 1:

        def fail(*_):
            raise OSError("disk full")

        writer.write_tensors = fail
    raises(
        dcp.CheckpointError,
        "disk full",
        lambda: dcp.save({"w": tp.zeros(3)}, storage_writer=writer),
    )
    target = {"w": tp.zeros(3)}
    dcp.load(target, checkpoint_id=path)
    assert target["w"].tolist() == [1, 1, 1]
    # broken off in the middle: the metadata is what counts
    writer = dcp.FileSystemWriter(path)
    writer.finish = lambda _: (_ for _ in ()).throw(OSError("gone"))
    raises(dcp.CheckpointError, "gone", lambda: dcp.save({"w": tp.zeros(3)}, storage_writer=writer))
    dcp.load(target, checkpoint_id=path)
    assert target["w"].tolist() == [1, 1, 1]
    dist.barrier()
    dcp.save({"w": tp.zeros(3)}, checkpoint_id=path)
    assert len(list(path.iterdir())) == 2 * dist.get_world_size() + 1


def check_what_is_refused():
    path = folder()
    dcp.save({"w": tp.ones(3)}, checkpoint_id=path)
    target = tp.zeros(3)
    for state, words in (
        ({"w": target, "v": tp.zeros(1)}, "Missing key in checkpoint state_dict: v"),
        ({"w": target, "s": 3}, "Missing key in checkpoint state_dict: s"),
        ({"w": tp.zeros(4)}, "shape [3]"),
    ):
        raises(dcp.CheckpointError, words, lambda state=state: dcp.load(state, checkpoint_id=path))
        assert not target.any()
    raises(
        dcp.CheckpointError,
        "holds no checkpoint",
        lambda: dcp.load({}, checkpoint_id=path / "none"),
    )
    raises(ValueError, "name the folder", lambda: dcp.save({}))
    with pytest.raises(ValueError, match="two values"):
        dcp.load({"a": {"b": 1}, "a.b": 2}, checkpoint_id=path)
    dist.barrier()
    if dist.get_rank() == 0:
        (path / ".metadata").write_text('{"format"')
    dist.barrier()
    raises(dcp.CheckpointError, "damaged", lambda: dcp.load({}, checkpoint_id=path))
