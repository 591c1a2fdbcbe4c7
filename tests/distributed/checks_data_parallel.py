"""What every process does for test_data_parallel.py."""

import contextlib
import copy
import os
import pickle
import random
import re

import pytest

import tensorplug as tp
import tensorplug.distributed as dist
from tensorplug import nn
from tensorplug.distributed import reducer
from tensorplug.distributed.algorithms import Join
from tensorplug.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from tensorplug.distributed.optim import ZeroRedundancyOptimizer
from tensorplug.nn.parallel import DistributedDataParallel

CASES = int(os.environ.get("TENSORPLUG_FUZZ", "0")) * 10 or 12


def drawn(*shape, seed=0, dtype=tp.float64):
    return tp.randn(*shape, generator=tp.Generator().manual_seed(seed), dtype=dtype)


def part(batch):
    """Return this process's part of a batch."""
    return batch.chunk(dist.get_world_size())[dist.get_rank()]


def same(ours, theirs, tolerance=1e-12):
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        if not mine.numel():
            continue
        difference = float((mine.detach() - other.detach()).abs().max())
        assert difference <= tolerance * max(1.0, float(other.detach().abs().max())), difference


def alike(tensors, group=None):
    """Check that all processes have the same values, to the last bit."""
    everybody = [None] * dist.get_world_size(group)
    dist.all_gather_object(everybody, [tensor.tolist() for tensor in tensors], group)
    assert all(other == everybody[0] for other in everybody)


def raises(kind, words, function):
    with pytest.raises(kind, match=re.escape(words)):
        function()


def network(seed=0):
    tp.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3)
    ).double()


@contextlib.contextmanager
def reduced_in_place(size):
    """Have gradients of so many bytes be reduced where they are: those of tests are small."""
    before, reducer._LARGE = reducer._LARGE, size
    try:
        yield
    finally:
        reducer._LARGE = before


class Branches(nn.Module):
    """One weight twice, one frozen, and branches that are not always used."""

    def __init__(self, rng):
        super().__init__()
        width = rng.choice([3, 8, 17])
        self.first = nn.Linear(6, width)
        self.shared = nn.Linear(width, width, bias=rng.random() < 0.5)
        self.norm = nn.LayerNorm(width)
        self.frozen = nn.Linear(width, width)
        self.frozen.requires_grad_(False)
        self.branches = nn.ModuleList([nn.Linear(width, 3) for _ in range(3)])
        self.scale = nn.Parameter(tp.ones(()))
        self.register_buffer("calls", tp.zeros(()))

    def forward(self, input, used):
        self.calls += 1
        hidden = self.norm(self.shared(self.shared(self.first(input).tanh())))
        hidden = self.frozen(hidden)
        return {"out": [self.branches[number](hidden) * self.scale for number in used]}


def check_programs_that_are_drawn():
    """Random modules, options and schedules give the weights of one process with the whole batch."""
    for case in range(CASES):
        with reduced_in_place(random.Random(case).choice([1, 200, reducer._LARGE])):
            train_as_drawn(case)


def train_as_drawn(case):
    size, rank = dist.get_world_size(), dist.get_rank()
    rng = random.Random(case)
    tp.manual_seed(case)
    reference = Branches(rng).double()
    model = copy.deepcopy(reference)
    if rank:  # the first process's values count
        with tp.no_grad():
            for parameter in model.parameters():
                parameter.add_(1.0)
    static = rng.random() < 0.3
    unused = rng.random() < 0.6
    options = {
        "bucket_cap_mb": rng.choice([None, 1e-5, 1e-3]),
        "gradient_as_bucket_view": rng.random() < 0.5,
        "static_graph": static,
        "find_unused_parameters": unused,
    }
    wrapped = DistributedDataParallel(model, **options)
    # SGD: Adam would make a step of a gradient that is 0 but for rounding.
    theirs = tp.optim.SGD(reference.parameters(), lr=1e-2, momentum=0.9)
    ours = tp.optim.SGD(wrapped.parameters(), lr=1e-2, momentum=0.9)
    fixed = rng.sample(range(3), 2)
    for step in range(4):
        micro = rng.choice([1, 1, 2])
        to_none, kept = rng.random() < 0.7, rng.random() < 0.2  # or what is there is added to
        for optimizer in (theirs, ours):
            if not kept:
                optimizer.zero_grad(set_to_none=to_none)
        for number in range(micro):
            batch = drawn(4 * size, 6, seed=1000 * case + 10 * step + number)
            # by process: what each uses
            used = [[0, 1, 2]] * size
            if static:
                used = [fixed] * size
            elif unused:
                used = [rng.sample(range(3), rng.randint(1, 3)) for _ in range(size)]
            for piece, numbers in zip(batch.chunk(size), used, strict=True):
                outputs = reference(piece, numbers)["out"]
                (sum(o.square().mean() for o in outputs) / size).backward()
            last = number == micro - 1
            wrapped.require_backward_grad_sync = last
            outputs = wrapped(part(batch), used[rank])["out"]
            sum(o.square().mean() for o in outputs).backward()
        for (name, mine), other in zip(
            model.named_parameters(), reference.parameters(), strict=True
        ):
            if other.grad is None:
                assert mine.grad is None or not mine.grad.any(), (case, options, name)
            else:
                assert mine.grad is not None, (case, options, name)
                same([mine.grad], [other.grad])
        theirs.step()
        ours.step()
        same(model.parameters(), reference.parameters())
    alike(model.parameters())


def check_a_hook_sees_the_gradient_of_its_process():
    """Whether gradients are reduced where they are or not: what a hook got may not change under it."""
    seen = {}
    batch = drawn(8, 6)
    alone = network()
    alone(part(batch)).square().mean().backward()
    for size in (1, 10**9):
        with reduced_in_place(size):
            model = DistributedDataParallel(network())
        for name, parameter in model.module.named_parameters():
            parameter.register_post_accumulate_grad_hook(
                lambda p, name=name: seen.update({name: p.grad.clone()})
            )
        for _ in range(2):  # the second time with other buckets
            model.zero_grad()
            model(part(batch)).square().mean().backward()
            same(seen.values(), [alone.get_parameter(name).grad for name in seen])
        reference = network()
        reference(batch).square().mean().backward()
        same([p.grad for p in model.parameters()], [p.grad for p in reference.parameters()])


def check_gradients_wait_for_the_last_micro_batch():
    for views in (False, True):  # and what earlier passes have left is added to
        model = DistributedDataParallel(network(), gradient_as_bucket_view=views)
        reference = network()
        for step in range(4):
            for each, batch in (
                (model, part(drawn(8, 6, seed=step))),
                (reference, drawn(8, 6, seed=step)),
            ):
                each(batch).square().mean().backward()
            same([p.grad for p in model.parameters()], [p.grad for p in reference.parameters()])
    model = DistributedDataParallel(network())
    reference = network()
    batches = [drawn(8, 6, seed=seed) for seed in range(3)]
    model(part(batches[0]))  # no backward pass comes of it
    with model.no_sync():
        for batch in batches[:2]:
            model(part(batch)).square().mean().backward()
    alone = network()
    sum(alone(part(batch)).square().mean() for batch in batches[:2]).backward()
    same([p.grad for p in model.parameters()], [p.grad for p in alone.parameters()])
    model(part(batches[2])).square().mean().backward()
    sum(reference(batch).square().mean() for batch in batches).backward()
    same([p.grad for p in model.parameters()], [p.grad for p in reference.parameters()])


class Ordered(nn.Module):
    """Layers that each process uses in another order, of two dtypes; the gradients come in that order."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(3, 3, bias=False, dtype=(tp.float32, tp.float64)[i % 2]) for i in range(6)]
        )

    def forward(self, x):
        order = list(range(6))
        random.Random(dist.get_rank()).shuffle(order)
        for i in order:
            x = self.layers[i](x.to(self.layers[i].weight.dtype)).cos()
        return x.double()


def check_buckets_are_the_same_in_all_processes():
    """Whatever the order in which gradients come here and there; and none waits for a later one."""
    for cap in (1e-5, 1e-4, None):
        model = DistributedDataParallel(Ordered(), bucket_cap_mb=cap)
        parameters = list(model.parameters())
        for step in range(3):  # from the second on in the first process's order
            model.zero_grad()
            model(drawn(4, 3, seed=step)).sum().backward()
            alone = copy.deepcopy(model.module)
            alone.zero_grad()
            alone(drawn(4, 3, seed=step)).sum().backward()
            for mine, own in zip(parameters, alone.parameters(), strict=True):
                total = own.grad.clone()
                dist.all_reduce(total)
                same([mine.grad], [total / dist.get_world_size()], 1e-6)
            alike([p.grad for p in parameters])
            buckets = model.reducer.buckets
            assert len(buckets) == (6 if cap == 1e-5 else 3 if cap else 2)
            everybody = [None] * dist.get_world_size()
            dist.all_gather_object(everybody, [list(b.indices) for b in buckets])
            assert all(other == everybody[0] for other in everybody)
            if step == 0:
                last = [min(b.indices) for b in buckets]  # they come from the last to the first
                assert last == sorted(last, reverse=True)


def check_some_of_the_processes_train():
    """Groups, one whose first is not the world's: its values and buffers count, its size divides."""
    size, rank = dist.get_world_size(), dist.get_rank()
    for members in (list(range(size)), list(range(size // 2, size))):
        group = dist.new_group(members)
        if rank in members:
            train_some(members, group, rank)


def train_some(members, group, rank):
    module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)).double()
    module[1].running_mean.fill_(rank)
    with tp.no_grad():
        module[0].weight.fill_(rank)
    model = DistributedDataParallel(module, process_group=group, broadcast_buffers=False)
    assert module[1].running_mean.tolist() == [float(members[0])] * 4
    assert module[0].weight[0, 0].item() == members[0]
    own = copy.deepcopy(module)
    batch = drawn(4, 6, seed=rank)
    for each in (model, own):
        each(batch).square().mean().backward()
    for mine, other in zip(model.parameters(), own.parameters(), strict=True):
        total = other.grad.clone()
        dist.all_reduce(total, group=group)
        same([mine.grad], [total / len(members)])


def check_a_parameter_without_gradient_is_named():
    model = DistributedDataParallel(
        nn.ModuleDict({"used": nn.Linear(2, 2), "idle": nn.Linear(2, 2)})
    )
    model.module.forward = lambda x: model.module["used"](x)
    model(tp.ones(1, 2)).sum().backward()
    raises(RuntimeError, "idle.weight, idle.bias", lambda: model(tp.ones(1, 2)))


def check_reentrant_checkpoints_with_a_static_graph():
    from tensorplug.utils.checkpoint import checkpoint

    for static in (True, False):
        model = network()
        layers = model

        def forward(x, layers=layers, static=static):
            for layer in layers:
                x = checkpoint(layer, x, use_reentrant=static)
            return x

        wrapped = DistributedDataParallel(model, static_graph=static)
        model.forward = forward
        reference = network()
        for step in range(3):
            batch = drawn(8, 6, seed=step)
            for each, inputs in ((wrapped, part(batch)), (reference, batch)):
                each.zero_grad()
                each(inputs.requires_grad_()).square().mean().backward()
            same([p.grad for p in model.parameters()], [p.grad for p in reference.parameters()])


def check_buffers_are_the_first_process_s():
    model = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 2))
    wrapped = DistributedDataParallel(model)
    for step in range(3):
        wrapped(part(drawn(8, 6, seed=step, dtype=tp.float32))).sum().backward()
    wrapped.eval()
    wrapped(tp.zeros(2, 6))
    alike(model.buffers())
    free = DistributedDataParallel(copy.deepcopy(model), broadcast_buffers=False)
    free.train()
    free(part(drawn(8, 6, seed=9, dtype=tp.float32))).sum().backward()
    means = [None] * dist.get_world_size()
    dist.all_gather_object(means, free.module[0].running_mean.tolist())
    assert means[0] != means[1]


def check_state_dicts_and_copies():
    model = DistributedDataParallel(network())
    assert list(model.state_dict()) == [f"module.{name}" for name in network().state_dict()]
    model.load_state_dict({f"module.{n}": v for n, v in network(3).state_dict().items()})
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        batch = drawn(8, 6)
        other(part(batch)).square().mean().backward()
        reference = network(3)
        reference(batch).square().mean().backward()
        same([p.grad for p in other.parameters()], [p.grad for p in reference.parameters()])
        assert all(p.grad is None for p in model.parameters())


def check_what_is_refused():
    rank = dist.get_rank()
    raises(
        RuntimeError,
        "same model across all ranks",
        lambda: DistributedDataParallel(nn.Linear(2, 2 + rank)),
    )
    raises(
        RuntimeError,
        "same model across all ranks",
        lambda: DistributedDataParallel(nn.Linear(2, 2, bias=not rank)),
    )
    frozen = nn.Linear(2, 2).requires_grad_(False)
    raises(RuntimeError, "requires a gradient", lambda: DistributedDataParallel(frozen))
    raises(ValueError, "single element", lambda: DistributedDataParallel(nn.Linear(2, 2), [0, 1]))
    model = DistributedDataParallel(nn.Linear(2, 2))
    raises(TypeError, "callable", lambda: model.register_comm_hook(None, 3))
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    sparse = DistributedDataParallel(nn.Embedding(3, 2, sparse=True))
    loss = sparse(tp.tensor([1])).sum()
    raises(NotImplementedError, "sparse=False", loss.backward)
    again = lambda: model.register_comm_hook(None, default_hooks.allreduce_hook)  # noqa: E731
    raises(RuntimeError, "only be called once", again)


def check_communication_hooks():
    batch = drawn(8, 6, dtype=tp.float32)
    reference = network().float()
    reference(batch).square().mean().backward()
    expected = [p.grad for p in reference.parameters()]
    wrapper = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    for hook, tolerance in (
        (default_hooks.allreduce_hook, 1e-7),
        (default_hooks.fp16_compress_hook, 2e-4),
        (default_hooks.bf16_compress_hook, 2e-3),
        (wrapper, 2e-4),
    ):
        for cap in (None, 1e-3):
            model = DistributedDataParallel(network().float(), bucket_cap_mb=cap)
            model.register_comm_hook(None, hook)
            for _ in range(3):
                model.zero_grad()
                model(part(batch)).square().mean().backward()
            same([p.grad for p in model.parameters()], expected, tolerance)
            alike([p.grad for p in model.parameters()])
    model = DistributedDataParallel(network())
    model.register_comm_hook(None, default_hooks.noop_hook)
    alone = network()
    for each in (model, alone):
        each(part(drawn(8, 6))).square().mean().backward()
    same([p.grad for p in model.parameters()], [p.grad for p in alone.parameters()])


def check_power_sgd():
    batch = drawn(8, 6)
    # of full rank it is exact
    model = DistributedDataParallel(network())
    state = powerSGD_hook.PowerSGDState(None, 32, start_powerSGD_iter=2, min_compression_rate=0)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    reference = network()
    reference(batch).square().mean().backward()
    for _ in range(5):
        model.zero_grad()
        model(part(batch)).square().mean().backward()
        same([p.grad for p in model.parameters()], [p.grad for p in reference.parameters()], 1e-10)
    # of rank 1 what is left out comes later: over many iterations the mean is right
    model = DistributedDataParallel(network())
    state = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    sums, count = None, 200
    for _ in range(count + 2):
        model.zero_grad()
        model(part(batch)).square().mean().backward()
        alike([p.grad for p in model.parameters()])
        got = [p.grad.clone() for p in model.parameters()]
        sums = got if sums is None else [a + b for a, b in zip(sums, got, strict=True)]
    wide = 2  # the first layer that is compressed
    mean, whole = sums[wide] / (count + 2), list(reference.parameters())[wide].grad
    assert state.error_dict
    assert float((mean - whole).norm() / whole.norm()) < 0.05
    assert float((got[wide] - whole).norm() / whole.norm()) > 1e-3
    raises(
        ValueError,
        "start_powerSGD_iter",
        lambda: powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1),
    )


def check_uneven_inputs():
    size, rank = dist.get_world_size(), dist.get_rank()
    for initial in (True, False):
        for unused in (True, False):
            model = DistributedDataParallel(
                nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, momentum=0.5)).double(),
                find_unused_parameters=unused,
                bucket_cap_mb=1e-5,
            )
            optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
            steps = 3 + 2 * rank
            with model.join(divide_by_initial_world_size=initial):
                for step in range(steps):
                    optimizer.zero_grad()
                    model(drawn(4, 6, seed=10 * step + rank)).square().mean().backward()
                    optimizer.step()
            alike([*model.parameters(), *model.buffers()])
    weight = nn.Linear(3, 1, bias=False).double()
    model = DistributedDataParallel(weight)
    for initial in (True, False):
        with model.join(divide_by_initial_world_size=initial):
            for _ in range(1 + rank):
                model.zero_grad()
                (model(tp.ones(1, 3, dtype=tp.float64)).sum() * (rank + 1)).backward()
        if rank == size - 1:  # in its last iteration it was alone
            expected = float(size) / (size if initial else 1)
            assert model.module.weight.grad.tolist() == [[expected] * 3]
        model.zero_grad()  # afterwards the divisor is that of all again
        (model(tp.ones(1, 3, dtype=tp.float64)).sum() * (rank + 1)).backward()
        assert model.module.weight.grad.tolist() == [[(size + 1) / 2] * 3]
    # several that join together
    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=tp.optim.Adam, lr=1e-2)
    with Join([model, optimizer]):
        for step in range(2 + 2 * (size - rank)):
            optimizer.zero_grad()
            model(drawn(4, 6, seed=10 * step + rank)).square().mean().backward()
            optimizer.step()
    alike(model.parameters())

    def early():
        with model.join(throw_on_early_termination=True):
            for step in range(1 + rank):
                model(drawn(4, 6, seed=step)).sum().backward()

    raises(RuntimeError, "exhausted inputs", early)


def check_sync_batch_norm():
    size, rank = dist.get_world_size(), dist.get_rank()
    for shape in ((6,), (6, 5), (6, 3, 4)):
        for affine in (True, False):
            for momentum in (0.1, None):
                for dtype, tolerance in ((tp.float64, 1e-12), (tp.float32, 2e-6)):
                    kind = {1: nn.BatchNorm1d, 2: nn.BatchNorm1d, 3: nn.BatchNorm2d}[len(shape)]
                    whole = kind(6, momentum=momentum, affine=affine).to(dtype)
                    if affine:
                        with tp.no_grad():
                            whole.weight.copy_(drawn(6, seed=5, dtype=dtype))
                            whole.bias.copy_(drawn(6, seed=6, dtype=dtype))
                    synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(whole))
                    assert type(synced) is nn.SyncBatchNorm
                    for step in range(2):
                        # unequal parts: 3 + rank samples
                        counts = [3 + number for number in range(size)]
                        batch = drawn(sum(counts), *shape, seed=step, dtype=dtype) * 3 + 10
                        weights = drawn(sum(counts), *shape, seed=7, dtype=dtype)
                        mine = batch.split(counts)[rank].clone().requires_grad_()
                        batch.requires_grad_()
                        for each in (whole, synced):
                            each.zero_grad()
                        expected, got = whole(batch), synced(mine)
                        (expected * weights).sum().backward()
                        (got * weights.split(counts)[rank]).sum().backward()
                        same([got], [expected.split(counts)[rank]], 20 * tolerance)
                        same([mine.grad], [batch.grad.split(counts)[rank]], 20 * tolerance)
                        for ours, theirs in zip(
                            synced.parameters(), whole.parameters(), strict=True
                        ):
                            total = ours.grad.clone()
                            dist.all_reduce(total)
                            same([total], [theirs.grad], 50 * tolerance)
                        same(synced.buffers(), whole.buffers(), 50 * tolerance)
    synced.eval()
    whole.eval()
    same([synced(mine)], [whole(mine)], tolerance)
    # a process without samples takes part
    synced.train()
    empty = synced(drawn(4 if rank else 0, *shape, dtype=dtype).requires_grad_())
    empty.sum().backward()
    one = nn.SyncBatchNorm(2)
    raises(ValueError, "more than 1 value", lambda: one(tp.ones(1 if rank == 0 else 0, 2)))
    half = nn.SyncBatchNorm(6)(drawn(8, 6, dtype=tp.float32).half())
    assert half.dtype is tp.float16


def check_zero_redundancy_optimizer():
    size, rank = dist.get_world_size(), dist.get_rank()
    for kind, options in (
        (tp.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (tp.optim.AdamW, {"lr": 1e-2}),
    ):
        for views in (False, True):
            reference, model = network(), network()
            theirs = kind(reference.parameters(), **options)
            ours = ZeroRedundancyOptimizer(
                model.parameters(), optimizer_class=kind, parameters_as_bucket_view=views, **options
            )
            schedulers = [tp.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (ours, theirs)]
            wrapped = DistributedDataParallel(model)

            def steps(
                first,
                last,
                schedulers,
                reference=reference,
                theirs=theirs,
                wrapped=wrapped,
                ours=ours,
            ):
                for step in range(first, last):
                    batch = drawn(8, 6, seed=step)
                    for each, optimizer, inputs in (
                        (reference, theirs, batch),
                        (wrapped, ours, part(batch)),
                    ):
                        optimizer.zero_grad()
                        each(inputs).square().mean().backward()
                        optimizer.step()
                    for scheduler in schedulers:
                        scheduler.step()

            steps(0, 3, schedulers)
            assert ours.param_groups[0]["lr"] == options["lr"] / 2
            same(model.parameters(), reference.parameters())
            alike(model.parameters())
            # each has a part of the state
            held = sum(len(state) > 0 for state in ours.optim.state.values())
            assert 0 < held < len(list(model.parameters()))
            ours.consolidate_state_dict(to=0)
            if rank:
                raises(RuntimeError, "has not been consolidated", ours.state_dict)
            saved = [ours.state_dict() if rank == 0 else None]
            if rank == 0:
                expected = theirs.state_dict()["state"]
                assert saved[0]["state"].keys() == expected.keys()
                for number, state in expected.items():
                    for name, value in state.items():
                        if isinstance(value, tp.Tensor):
                            same([saved[0]["state"][number][name]], [value])
            dist.broadcast_object_list(saved, 0)
            again = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=kind, **options)
            again.load_state_dict(saved[0])
            steps(3, 5, [], ours=again)
            same(model.parameters(), reference.parameters())
    assert size > 1
