"""accelerate: the training loop, gradient accumulation, files, devices of parts."""

import tempfile
from pathlib import Path

import accelerate
import torch
from support import Programs, fill, integers, norm, random

programs = Programs()


def network():
    return fill(
        torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    )


def loader():
    data = torch.utils.data.TensorDataset(random(12, 8), integers(12, high=3))
    return torch.utils.data.DataLoader(data, batch_size=4)


@programs
def loop():
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    net, optimizer, batches, schedule = accelerator.prepare(net, optimizer, loader(), schedule)
    losses = []
    for x, y in batches:
        with accelerator.accumulate(net):
            loss = torch.nn.functional.cross_entropy(net(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(float(accelerator.gather(loss.detach())))
    return {
        "losses": losses,
        "parameters": norm(net.parameters()),
        "rate": schedule.get_last_lr(),
        "device": str(accelerator.device),
    }


@programs
def states():
    accelerator = accelerate.Accelerator(cpu=True)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net, optimizer, batches = accelerator.prepare(net, optimizer, loader())
    for x, y in batches:
        accelerator.backward(torch.nn.functional.cross_entropy(net(x), y))
        optimizer.step()
        optimizer.zero_grad()
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        before = norm(net.parameters())
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.zero_()
        accelerator.load_state(folder)
        accelerator.save_model(net, folder + "/model")
        files = sorted(path.name for path in Path(folder).iterdir())
        return {"before": before, "after": norm(net.parameters()), "files": files,
                "model": sorted(path.name for path in Path(folder, "model").iterdir())}  # fmt: skip


@programs
def empty_weights():
    with accelerate.init_empty_weights():
        net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 3))
    kinds = [str(p.device) for p in net.parameters()]
    sizes = accelerate.utils.compute_module_sizes(net)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "w.bin"))
        torch.save(
            fill(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 3))).state_dict(),
            path,
        )
        accelerate.load_checkpoint_and_dispatch(net, path, device_map={"": "cpu"})
    return {"kinds": kinds, "sizes": dict(sizes), "out": net(random(2, 8))}


@programs
def mixed_precision():
    accelerate.state.AcceleratorState._reset_state(True)
    accelerator = accelerate.Accelerator(cpu=True, mixed_precision="bf16")
    net = accelerator.prepare(network())
    out = net(random(4, 8))
    with accelerator.autocast():
        inner = torch.nn.functional.linear(random(2, 8), random(3, 8, seed=1))
    accelerate.state.AcceleratorState._reset_state(True)
    return {"out": str(out.dtype).rpartition(".")[2], "inner": str(inner.dtype).rpartition(".")[2]}


@programs
def tools():
    accelerate.utils.set_seed(3)
    moved = accelerate.utils.send_to_device({"a": [random(2), "text"]}, "cpu")
    padded = accelerate.utils.pad_across_processes(random(2, 3))
    found = accelerate.utils.find_batch_size([random(5, 2)])
    return {
        "moved": moved,
        "padded": padded,
        "found": found,
        "parts": accelerate.utils.extract_model_from_parallel(network())[0].weight,
    }
