"""What every process does for test_sharding.py."""

import copy
import random

from checks_data_parallel import CASES, alike, drawn, network, part, raises, same

import tensorplug as tp
import tensorplug.distributed as dist
from tensorplug import nn
from tensorplug.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from tensorplug.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from tensorplug.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)


class Block(nn.Module):
    def __init__(self, width, rng):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width + 1, bias=rng.random() < 0.5)
        self.down = nn.Linear(2 * width + 1, width)
        for layer in (self.norm, self.up, self.down):
            layer.requires_grad_(rng.random() < 0.7)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).tanh())


class Model(nn.Module):
    """Widths that do not divide evenly, a weight of two modules, and blocks that may be called twice."""

    def __init__(self, rng):
        super().__init__()
        width = rng.choice([1, 5, 8])
        self.embed = nn.Embedding(7, width)
        self.blocks = nn.ModuleList([Block(width, rng) for _ in range(rng.choice([1, 3]))])
        self.head = nn.Linear(width, 7, bias=False)
        if rng.random() < 0.5:
            self.head.weight = self.embed.weight
        self.twice = rng.random() < 0.3

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
            if self.twice:
                x = block(x)
        return self.head(x)


def whole(model):
    return [p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()]


def tokens(count, seed):
    return tp.randint(0, 7, (count, 4), generator=tp.Generator().manual_seed(seed))


def loss(model, batch):
    return nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.roll(1, 1).flatten())


def check_programs_that_are_drawn():
    """Random modules, divided in random ways, get the weights of one process with the whole batch."""
    size = dist.get_world_size()
    for case in range(CASES):
        rng = random.Random(case)
        tp.manual_seed(case)
        reference = Model(rng).double()
        model = copy.deepcopy(reference)
        names = list(model.state_dict())
        keep = rng.choice([None, True, False])
        for block in model.blocks:
            if rng.random() < 0.7:
                fully_shard(block, reshard_after_forward=keep)
        fully_shard(model, reshard_after_forward=rng.choice([None, True, False]))
        assert isinstance(model, FSDPModule)
        assert isinstance(model, Model)
        if rng.random() < 0.3 and isinstance(model.blocks[0], FSDPModule):
            model.set_modules_to_forward_prefetch([model.blocks[0]])
        theirs = tp.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
        ours = tp.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for step in range(4):
            micro = rng.choice([1, 1, 2])
            accumulate = rng.random() < 0.5
            for number in range(micro):
                batch = tokens(2 * size, 100 * case + 10 * step + number)
                loss(reference, batch).backward()
                model.set_requires_gradient_sync(not accumulate or number == micro - 1)
                loss(model, part(batch)).backward()
            assert list(model.state_dict()) == names
            for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
                assert isinstance(mine, DTensor)
                if other.grad is None:
                    assert mine.grad is None
                else:
                    same([mine.grad.full_tensor()], [other.grad])
            bound = rng.choice([None, 0.1, 10.0])
            order = rng.choice([1.0, 2.0, float("inf")])
            if bound is not None:
                norms = [
                    nn.utils.clip_grad_norm_(m.parameters(), bound, order)
                    for m in (model, reference)
                ]
                same([norms[0]], [norms[1]])
            for optimizer in (theirs, ours):
                optimizer.step()
                optimizer.zero_grad()
            same(whole(model), reference.parameters())
            if rng.random() < 0.3:
                with tp.no_grad():
                    same([model(batch)], [reference(batch)])


class Layer(nn.Module):
    """Sees in which dtype its input comes; one parameter is never used."""

    def __init__(self, inputs, outputs, used):
        super().__init__()
        self.weight = nn.Parameter(drawn(outputs, inputs, seed=inputs, dtype=tp.float32))
        self.rows = nn.Parameter(drawn(2, 3, outputs, seed=outputs, dtype=tp.float32))
        self.idle = nn.Parameter(tp.ones(3, 2), requires_grad=not used)

    def forward(self, x):
        self.seen, self.held = x.dtype, self.weight.dtype
        x = x.to(self.weight.dtype) @ self.weight.t()
        return (x.tanh()[:, None, None] * self.rows).sum((1, 2))


def check_options_that_are_drawn():
    """Meshes, dimensions, dtypes and modules that are divided together: gradients of the whole batch."""
    size, widths = dist.get_world_size(), [(5, 4), (4, 7), (7, 2)]
    for case in range(2 * CASES):
        rng = random.Random(case)
        used = rng.random() < 0.5
        reference = nn.Sequential(*[Layer(*sizes, used) for sizes in widths]).double()
        model = nn.Sequential(*[Layer(*sizes, used) for sizes in widths])
        model.load_state_dict(reference.state_dict())
        mesh = rng.choice([None, (size,), (1, size), (size, 1)])
        if mesh is not None:
            mesh = dist.init_device_mesh("cpu", mesh)
        numbers = {p.shape: rng.randrange(p.ndim) for p in model.parameters()}
        narrow = rng.choice([None, None, tp.float16, tp.bfloat16])
        policy = MixedPrecisionPolicy(
            rng.choice([None, tp.float64]),
            narrow or rng.choice([None, tp.float64]),
            rng.choice([None, tp.float64, tp.float32]),
            rng.random() < 0.5,
        )
        ignored = {model[2].weight} if rng.random() < 0.3 else set()
        after = rng.choice([None, True, False])
        options = {
            "mesh": mesh,
            "mp_policy": policy,
            "ignored_params": ignored,
            "reshard_after_forward": after,
            "shard_placement_fn": lambda p, numbers=numbers: Shard(numbers[p.shape]),
        }
        if rng.random() < 0.3:
            fully_shard([model[0], model[1]], **options)
        else:
            fully_shard(model[0], **options)
        fully_shard(model, **options)
        for name, parameter in model.named_parameters():
            if parameter in ignored:
                assert not isinstance(parameter, DTensor)
            else:
                assert parameter.placements[-1] == Shard(numbers[parameter.full_shape]), name
        passes = rng.choice([1, 2])
        for number in range(passes):  # gradients of both are added up
            batch = drawn(4 * size, 5, seed=10 * case + number)
            out = model(part(batch).float())
            if policy.output_dtype is not None:
                assert out.dtype is policy.output_dtype
            param = policy.param_dtype or tp.float32
            assert model[0].held is param
            if policy.param_dtype is not None:
                assert model[0].seen is (param if policy.cast_forward_inputs else tp.float32)
            kept = model[0]._fsdp_state.group.parameters[0].whole.numel()
            assert bool(kept) == (after is False), (case, after)
            out.double().square().mean().backward()
            reference(batch).square().mean().backward()
            for divided in model.modules():
                if isinstance(divided, FSDPModule):
                    held = [p.whole.numel() for p in divided._fsdp_state.group.parameters]
                    assert held == [0] * len(held), case  # nothing of the wholes is left
        tolerance = 2e-2 if narrow is not None else 1e-4
        for (name, mine), other in zip(
            model.named_parameters(), reference.parameters(), strict=True
        ):
            if "idle" in name:
                assert mine.grad is None
                continue
            gradient = mine.grad
            if mine in ignored:  # each process has that of its part of the batch
                dist.all_reduce(gradient)
                gradient = gradient / size
            else:
                gradient = gradient.full_tensor()
            assert gradient.dtype is tp.float32
            same([gradient.double()], [other.grad], tolerance)


def check_each_process_has_a_part():
    size = dist.get_world_size()
    model = fully_shard(network())
    total = sum(p.numel() for p in network().parameters())
    assert sum(p.numel() for p in model.parameters()) <= total / size + 40
    optimizer = tp.optim.Adam(model.parameters(), lr=1e-2)
    reference = network()
    theirs = tp.optim.Adam(reference.parameters(), lr=1e-2)
    for step in range(3):
        batch = drawn(8, 6, seed=step)
        for each, inputs, steps in ((model, part(batch), optimizer), (reference, batch, theirs)):
            steps.zero_grad()
            each(inputs).square().mean().backward()
            steps.step()
    same(whole(model), reference.parameters())
    for state in optimizer.state.values():
        assert state["exp_avg"].numel() <= 32 * 32 // size + 8
    whole_of_first = model[0].weight.full_tensor()
    assert whole_of_first.shape == (32, 6)
    alike([whole_of_first])
    raises(ValueError, "called on a module already", lambda: fully_shard(model))
    raises(
        ValueError,
        "do not implement forward",
        lambda: fully_shard(nn.ModuleList([nn.Linear(1, 1)])),
    )
    import pickle

    raises(TypeError, "distributed.checkpoint", lambda: pickle.dumps(model[0].weight))


def check_mixed_precision():
    seen = {}

    class Seeing(nn.Linear):
        def forward(self, x):
            seen["input"], seen["weight"] = x.dtype, self.weight.dtype
            return super().forward(x)

    tp.manual_seed(0)
    reference = nn.Linear(16, 16)
    model = Seeing(16, 16)
    model.load_state_dict(reference.state_dict())
    policy = MixedPrecisionPolicy(tp.bfloat16, tp.float32, output_dtype=tp.float32)
    fully_shard(model, mp_policy=policy)
    batch = drawn(8, 16, dtype=tp.float32)
    output = model(part(batch))
    assert seen == {"input": tp.bfloat16, "weight": tp.bfloat16}
    assert output.dtype is tp.float32
    output.square().mean().backward()
    reference(batch).square().mean().backward()
    assert model.weight.dtype is tp.float32
    assert model.weight.grad.dtype is tp.float32
    same([model.weight.grad.full_tensor()], [reference.weight.grad], 5e-3)


def check_checkpointed_blocks_and_methods():
    from tensorplug.distributed.fsdp import register_fsdp_forward_method
    from tensorplug.utils.checkpoint import checkpoint

    rng = random.Random(1)

    class Checkpointed(Model):
        def forward(self, tokens):
            x = self.embed(tokens)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return self.head(x)

        def hidden(self, tokens):
            return self.embed(tokens)

    reference = Checkpointed(rng).double()
    model = copy.deepcopy(reference)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    register_fsdp_forward_method(model, "hidden")
    for step in range(2):
        batch = tokens(4, step)
        same([model.hidden(batch)], [reference.hidden(batch)])
        loss(model, part(batch)).backward()
        loss(reference, batch).backward()
        for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
            if other.grad is not None:
                same([mine.grad.full_tensor()], [other.grad])


def check_a_backward_that_fails_is_forgotten():
    model = network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(model)

    def fail(_):
        raise KeyError("stop")

    output = model(part(drawn(8, 6)))
    output.register_hook(fail)
    raises(KeyError, "stop", lambda: output.sum().backward())
    reference = network()
    batch = drawn(8, 6, seed=1)
    model(part(batch)).square().mean().backward()
    reference(batch).square().mean().backward()
    for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
        same([mine.grad.full_tensor()], [other.grad])


def check_divided_tensors():
    size = dist.get_world_size()
    mesh = dist.init_device_mesh("cpu", (size,), mesh_dim_names=("all",))
    assert mesh.size() == size
    assert mesh["all"].get_local_rank() == dist.get_rank()
    for shape in ((5, 3), (1, 4), (8,), (2, 3, 4)):
        full = drawn(*shape)
        for dim in range(len(shape)):
            divided = distribute_tensor(full, mesh, [Shard(dim)])
            same([divided.full_tensor()], [full], 0)
            starts, sizes = divided.extents()
            assert sizes == list(divided.to_local().shape)
            index = tuple(slice(a, a + b) for a, b in zip(starts, sizes, strict=True))
            assert full[index].tolist() == divided.to_local().tolist()
        same([distribute_tensor(full, mesh, [Replicate()]).full_tensor()], [full], 0)
    if size == 4:
        square = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        assert square["tp"].mesh.tolist() == [[0, 1], [0, 1], [2, 3], [2, 3]][dist.get_rank()]
        for placements in ([Shard(0), Shard(0)], [Shard(0), Shard(1)], [Replicate(), Shard(1)]):
            full = drawn(7, 5)
            divided = distribute_tensor(full, square, placements)
            same([divided.full_tensor()], [full], 0)
        reference = network()
        model = fully_shard(network(), mesh=square)  # two copies, each of two parts
        batch = drawn(8, 6)
        model(part(batch)).square().mean().backward()
        reference(batch).square().mean().backward()
        for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
            same([mine.grad.full_tensor()], [other.grad])
    raises(RuntimeError, "bigger than", lambda: dist.init_device_mesh("cpu", (size + 1,)))
    raises(
        RuntimeError,
        "same length",
        lambda: dist.init_device_mesh("cpu", (size,), mesh_dim_names=("a", "b")),
    )
    raises(KeyError, "Invalid mesh_dim_name", lambda: mesh["none"])


def check_layers_divided_by_columns_and_rows():
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    for case in range(CASES):
        rng = random.Random(case)
        tp.manual_seed(case)
        width, hidden = rng.choice([3, 8]), rng.choice([5, 16])
        bias = rng.random() < 0.7
        reference = nn.Sequential(
            nn.Embedding(7, width),
            nn.Linear(width, hidden, bias),
            nn.Tanh(),
            nn.Linear(hidden, width, bias),
        ).double()
        model = copy.deepcopy(reference)
        embedding = rng.choice(
            [None, RowwiseParallel(), ColwiseParallel(output_layouts=Replicate())]
        )
        plan = rng.choice(
            [
                {"1": ColwiseParallel(), "3": RowwiseParallel()},
                {"1": ColwiseParallel(output_layouts=Replicate())},
                {"3": RowwiseParallel(input_layouts=Replicate())},
                {"[1]": ColwiseParallel(), "3": RowwiseParallel(output_layouts=Shard(0))},
                {"1": ColwiseParallel(input_layouts=Shard(0)), "3": RowwiseParallel()},
            ]
        )
        if embedding is not None:
            plan["0"] = embedding
        first = plan.get("1")
        divided = first is not None and first.input_layouts == Shard(0)
        if divided:  # each process brings its rows
            plan.pop("0", None)
        parallelize_module(model, mesh, plan)
        batch = tokens(2 * dist.get_world_size(), case)
        expected, got = reference(batch), model(part(batch) if divided else batch)
        last = plan.get("3")
        whole = last is None or last.output_layouts == Replicate()
        same([got], [expected if whole else part(expected)])
        expected.square().mean().backward()
        (got.square().sum() / expected.numel()).backward()
        for (name, mine), other in zip(
            model.named_parameters(), reference.parameters(), strict=True
        ):
            gradient = mine.grad
            if isinstance(mine, DTensor):
                gradient = mine.like(gradient).full_tensor()
            elif divided:
                dist.all_reduce(gradient)
            same([gradient], [other.grad])
            assert name
    raises(
        ValueError, "no module", lambda: parallelize_module(model, mesh, {"9": RowwiseParallel()})
    )
    raises(
        NotImplementedError, "Tanh", lambda: parallelize_module(nn.Tanh(), mesh, ColwiseParallel())
    )


class Attentive(nn.Module):
    """A block of a transformer without heads: norms and residuals work on parts of the sequence."""

    def __init__(self, width, norm):
        super().__init__()
        self.first, self.second = norm(width), norm(width)
        self.mix = nn.ModuleDict(
            {"value": nn.Linear(width, 2 * width), "out": nn.Linear(2 * width, width)}
        )
        self.mix.forward = lambda x: self.mix["out"](self.mix["value"](x).cumsum(1))
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x):
        x = x + self.mix(self.first(x))
        return x + self.down(self.up(self.second(x)).tanh())


def check_sequences_that_are_divided():
    """Norms over parts of a sequence, inputs and outputs brought to other layouts: as the whole model."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    for case in range(max(CASES // 2, 4)):
        rng = random.Random(case)
        width, length = rng.choice([3, 4, 8]), rng.choice([2, 5, 6])
        norm = rng.choice([nn.LayerNorm, nn.RMSNorm])
        tp.manual_seed(case)
        reference = nn.Sequential(
            nn.Embedding(7, width), *[Attentive(width, norm) for _ in range(2)], nn.Linear(width, 7)
        ).double()
        model = copy.deepcopy(reference)
        for block in model[1:3]:  # what a copy of a lambda is bound to
            block.mix.forward = lambda x, mix=block.mix: mix["out"](mix["value"](x).cumsum(1))
        plan = {
            "0": RowwiseParallel(output_layouts=Shard(1)),
            "*.first": SequenceParallel(),
            "*.second": SequenceParallel(),
            "*.mix.value": ColwiseParallel(),
            "*.up": ColwiseParallel(input_layouts=Shard(1)),
            "*.down": RowwiseParallel(output_layouts=Shard(1)),
            "3": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        }
        inputs = {"input_layouts": Shard(1), "desired_input_layouts": Replicate()}
        outputs = {"output_layouts": Replicate(), "desired_output_layouts": Shard(1)}
        if rng.random() < 0.5:
            plan["*.mix"] = PrepareModuleInputOutput(**inputs, **outputs)
        else:
            parallelize_module(model, mesh, {"*.mix": PrepareModuleInput(**inputs)})
            plan["*.mix"] = PrepareModuleOutput(**outputs)
        plan["*.mix.out"] = RowwiseParallel()
        parallelize_module(model, mesh, plan)
        batch = tp.randint(0, 7, (2, length), generator=tp.Generator().manual_seed(case))
        weights = drawn(2, length, 7, seed=case)
        outs = [net(batch) for net in (reference, model)]
        for out in outs:
            (out * weights).sum().backward()
        same(outs[1:], outs[:1])
        for (name, mine), other in zip(
            model.named_parameters(), reference.parameters(), strict=True
        ):
            gradient = mine.grad
            if isinstance(mine, DTensor):
                gradient = mine.like(gradient.detach()).full_tensor()
            assert gradient.shape == other.grad.shape, name
            same([gradient], [other.grad])
    raises(
        ValueError,
        "should have same length",
        lambda: PrepareModuleInput(input_layouts=Shard(0)),
    )


def placed(rng, ndim, partial):
    choices = [Replicate(), *[Shard(dim) for dim in range(ndim)], Shard(-1)]
    return rng.choice(choices + [Partial(partial)] * 2 if partial else choices)


def parts(whole, mesh, placements):
    """Return a tensor that is divided so: of summands each process has another, with that reduction."""
    for number, placement in enumerate(placements):
        if placement.is_partial():
            size, rank = mesh.size(number), mesh.get_local_rank(number)
            if placement.reduce_op == "sum":
                shares = drawn(size, *whole.shape, seed=number)
                shares[0] += whole - shares.sum(0)
            elif placement.reduce_op == "avg":
                shares = drawn(size, *whole.shape, seed=number)
                shares[0] += (whole - shares.mean(0)) * size
            else:
                below = drawn(size, *whole.shape, seed=number).abs()
                below[size - 1] = 0
                shares = whole - below if placement.reduce_op == "max" else whole + below
            whole = shares[rank]
    return whole


def check_tensors_are_divided_anew():
    """Placements × placements × shapes × meshes: parts as if divided so at once, gradients as before."""
    size = dist.get_world_size()
    meshes = [(size,), (size, 1), (1, size)] + ([(2, size // 2)] if size > 2 else [])
    for case in range(10 * CASES):
        rng = random.Random(case)
        mesh = dist.init_device_mesh("cpu", rng.choice(meshes))
        shape = [rng.choice([1, 2, 3, 5, 8]) for _ in range(rng.choice([1, 2, 3]))]
        partial = rng.choice([None, "sum", "avg", "max", "min"])
        given = [placed(rng, len(shape), partial) for _ in range(mesh.ndim)]
        wanted = [
            now if now.is_partial() and rng.random() < 0.3 else placed(rng, len(shape), None)
            for now in given
        ]
        whole, before = drawn(*shape, seed=case), [g.of(len(shape)) for g in given]
        rest = [Replicate() if p.is_partial() else p for p in given]
        summand = parts(whole, mesh, given)
        local = distribute_tensor(summand, mesh, rest, src_data_rank=None).to_local()
        local.requires_grad_()
        divided = DTensor.from_local(local, mesh, given, shape=shape)
        moved = divided.redistribute(mesh, wanted)
        assert moved.placements == tuple(w.of(len(shape)) for w in wanted)
        assert moved.full_shape == divided.full_shape == tp.Size(shape)
        same([divided.full_tensor()], [whole])
        same([moved.full_tensor()], [whole])
        # the part is what this process would have had at once, where nothing is left of summands
        if not any(w.is_partial() for w in wanted):
            expected = distribute_tensor(whole, mesh, wanted, src_data_rank=None)
            same([moved.to_local()], [expected.to_local()])
            assert moved.extents() == expected.extents()
        # the whole's gradient, as it lies at the end, comes back as the tensor lay
        differs = [a != b.of(len(shape)) for a, b in zip(before, wanted, strict=True)]
        changed = [g.reduce_op for g, d in zip(given, differs, strict=True) if d and g.is_partial()]
        weights = drawn(*shape, seed=case + 1)
        lies = [Replicate() if w.is_partial() else w for w in wanted]
        mine = distribute_tensor(weights, mesh, lies, src_data_rank=None).to_local()
        loss = (moved.to_local() * mine).sum()
        if {"max", "min"} & set(changed):
            raises(NotImplementedError, "derivative of Partial", loss.backward)
            continue
        loss.backward()
        expected = distribute_tensor(weights, mesh, rest, src_data_rank=None).to_local()
        for number, d in enumerate(differs):
            if d and given[number].is_partial() and given[number].reduce_op == "avg":
                expected = expected / mesh.size(number)
        same([local.grad], [expected])
    mesh = dist.init_device_mesh("cpu", (size,))
    rows = distribute_tensor(tp.ones(4), mesh, [Shard(0)])
    to = rows.redistribute
    raises(RuntimeError, "redistributing to Partial", lambda: to(placements=[Partial()]))
    raises(ValueError, "same length", lambda: to(placements=[Shard(0)] * 2))
    raises(IndexError, "of a tensor of 1 dimensions", lambda: to(placements=[Shard(1)]))
    raises(RuntimeError, "placements is needed", to)
    other = dist.init_device_mesh("cpu", (size,))
    raises(NotImplementedError, "Cross device mesh", lambda: to(other, [Replicate()]))
    leaf = distribute_tensor(tp.ones(3, requires_grad=True), mesh, [Replicate()])
    halves = leaf.redistribute(
        placements=[Shard(0)], forward_dtype=tp.float16, backward_dtype=tp.float64
    )
    assert halves.dtype is tp.float16
    halves.to_local().sum().backward()
    assert leaf.grad.dtype is tp.float32
    assert leaf.grad.tolist() == [1.0, 1.0, 1.0]


def check_parts_of_any_length():
    """Where nobody knows how long the parts are, the processes tell each other: forward and back."""
    from tensorplug.distributed.tensor.exchanges import redistributed, whole as brought

    size, rank = dist.get_world_size(), dist.get_rank()
    for lengths in ([3] * size, [*range(size, 0, -1)], [*range(size)], [4, *[0] * (size - 1)]):
        for dim in (0, 1, -1):
            pieces = [drawn(2, 2, 2, seed=r).movedim(dim, 0)[:1] for r in range(size)]
            pieces = [
                p.repeat(n, 1, 1).movedim(0, dim) for p, n in zip(pieces, lengths, strict=True)
            ]
            everything = tp.cat(pieces, dim)
            weights = drawn(*everything.shape, seed=9)
            for bring, factor in (
                (lambda x, d=dim: redistributed(x, Shard(d), Replicate(), None), 1),
                (lambda x, d=dim: brought(x, Shard(d), None, True), size),
            ):
                mine = pieces[rank].clone().requires_grad_()
                (bring(mine) * weights).sum().backward()
                same([bring(mine)], [everything])
                same([mine.grad], [weights.split(lengths, dim)[rank] * factor])


def check_losses_of_logits_divided_by_classes():
    """Shapes × weights × reductions × meshes: losses and gradients of the whole logits."""
    from tensorplug.distributed.tensor.parallel import loss_parallel

    size = dist.get_world_size()
    cross_entropy = nn.functional.cross_entropy
    for case in range(4 * CASES):
        rng = random.Random(case)
        classes = rng.choice([1, 2, 5, 8])
        shape = [(classes,), (6, classes), (6, classes, 4)][rng.choice([0, 1, 1, 2, 2])]
        dim = min(1, len(shape) - 1)
        mesh, placements = dist.init_device_mesh("cpu", (size,)), [Shard(dim)]
        if len(shape) > 1 and rng.random() < 0.5:
            mesh = dist.init_device_mesh("cpu", rng.choice([(1, size), (size, 1)]))
            others = [Replicate(), *[Shard(i) for i in range(len(shape)) if i != dim]]
            placements = [rng.choice(others), Shard(dim)]
            if rng.random() < 0.5:
                placements.reverse()
        lies = [Replicate() if p.is_shard(dim) else p for p in placements]
        lies = [Shard(p.dim - 1) if p.is_shard() and p.dim > dim else p for p in lies]
        divided = any(p.is_shard() for p in lies)
        reduction = rng.choice(["none", "sum"] if divided else ["none", "sum", "mean", "mean"])
        whole = (drawn(*shape, seed=case) * 30).requires_grad_()
        sizes = [n for i, n in enumerate(shape) if i != dim]
        target = tp.randint(0, classes, sizes, generator=tp.Generator().manual_seed(case))
        options = {
            "weight": rng.choice([None, drawn(classes, seed=1).abs()]),
            "ignore_index": rng.choice([-100, 0]) if classes > 1 else -100,
            "reduction": reduction,
        }
        logits = distribute_tensor(whole, mesh, placements)
        given = distribute_tensor(target, mesh, lies) if divided else target
        with loss_parallel():
            loss = cross_entropy(logits, given, **options)
            assert isinstance(loss, DTensor)
            everything = loss.full_tensor()
        expected = cross_entropy(whole, target, **options)
        if bool(expected.isnan().any()):  # nothing but what is ignored
            assert everything.isnan().tolist() == expected.isnan().tolist()
            continue
        same([everything], [expected])
        weights = drawn(*expected.shape, 1, seed=3)[..., 0]
        (everything * weights).sum().backward()
        (expected * weights).sum().backward()
        same([logits.like(logits.grad).full_tensor()], [whole.grad])
    mesh = dist.init_device_mesh("cpu", (size,))
    tp.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 5)).double()
    reference = copy.deepcopy(model)
    plan = {
        "0": ColwiseParallel(output_layouts=Replicate()),
        "2": ColwiseParallel(use_local_output=False),
    }
    parallelize_module(model, mesh, plan)
    target = tp.tensor([0, 4, 2, 1])
    with loss_parallel():
        nn.CrossEntropyLoss()(model(drawn(4, 3)), target).backward()
    nn.CrossEntropyLoss()(reference(drawn(4, 3)), target).backward()
    for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
        same([mine.like(mine.grad).full_tensor()], [other.grad])
    logits = distribute_tensor(drawn(4, 5), mesh, [Shard(1)])
    rows = distribute_tensor(drawn(4, 5), mesh, [Shard(0)])
    with loss_parallel():
        raises(ValueError, "plain tensor", lambda: cross_entropy(drawn(4, 5), target))
        raises(ValueError, "exactly one mesh dim", lambda: cross_entropy(rows, target))
        raises(
            NotImplementedError,
            "label_smoothing",
            lambda: cross_entropy(logits, target, label_smoothing=0.1),
        )
        raises(NotImplementedError, "probabilities", lambda: cross_entropy(logits, drawn(4, 5)))
        assert tp.ones(3).sum().item() == 3
    assert cross_entropy(drawn(4, 5), target).ndim == 0
