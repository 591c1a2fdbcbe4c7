"""safetensors, einops, TensorBoard."""

import tempfile
from pathlib import Path

import einops
import safetensors.torch
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce
from support import Programs, backward, fill, random

programs = Programs()


@programs
def safetensors_files():
    tensors = {
        "a": random(3, 4), "b": random(5).bfloat16(), "c": torch.arange(6).reshape(2, 3), "d": random(2).half(), "e": torch.tensor(True),
        "f": torch.zeros(0, 3), "g": random(2, 3).t().contiguous(),
    }  # fmt: skip
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "x.safetensors"))
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
        again = safetensors.torch.load_file(path)
        said["again"] = {key: [str(again[key].dtype), again[key].float()] for key in tensors}
        with safetensors.safe_open(path, framework="pt") as file:
            said["keys"] = sorted(file.keys())
            said["part"] = file.get_slice("a")[1:, :2]
            said["one"] = file.get_tensor("c")
            said["metadata"] = file.metadata()
        said["bytes"] = len(safetensors.torch.save(tensors))
        net = fill(torch.nn.Linear(3, 2))
        safetensors.torch.save_model(net, path)
        other = torch.nn.Linear(3, 2)
        said["model"] = [list(part) for part in safetensors.torch.load_model(other, path)]
        said["equal"] = torch.equal(net.weight, other.weight)
    return said


@programs
def safetensors_shared():
    weight = random(3, 3)
    try:
        safetensors.torch.save({"a": weight, "b": weight})
    except RuntimeError as error:
        return {"error": "share memory" in str(error)}
    return {"error": False}


@programs
def safetensors_float8():
    x = random(8).to(torch.float8_e4m3fn)
    again = safetensors.torch.load(safetensors.torch.save({"x": x}))["x"]
    return {"dtype": str(again.dtype), "values": again.float()}


@programs
def einops_functions():
    x = random(2, 3, 4, 6)
    return {
        "rearrange": einops.rearrange(x, "b c (h s) w -> (b s) h w c", s=2),
        "mean": einops.reduce(x, "b c h w -> b c", "mean"),
        "max": einops.reduce(x, "b c (h 2) (w 2) -> b c h w", "max"),
        "repeat": einops.repeat(x, "b c h w -> b c (h r) w", r=2),
        "einsum": einops.einsum(x, random(6, 5), "b c h w, w d -> b c h d"),
        "pack": einops.pack([x, random(2, 3, 4)], "b c *")[0],
        "parse": einops.parse_shape(x, "b _ h w"),
        "list": einops.rearrange([x, x + 1], "n b c h w -> b n (c h w)"),
        "numpy": torch.from_numpy(einops.asnumpy(x)),
    }


@programs
def einops_layers():
    net = torch.nn.Sequential(
        Rearrange("b c (h a) (w d) -> b (h w) (a d c)", a=2, d=2), EinMix("b t c -> b t o", weight_shape="c o", bias_shape="o", c=12, o=5),
        Reduce("b t o -> b o", "mean"),
    )  # fmt: skip
    out = fill(net)(random(2, 3, 4, 6))
    return {"out": out, "text": str(net)} | backward(out.square().mean(), net)


@programs
def tensorboard():
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            for step in range(3):
                writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
            writer.add_histogram("weights", random(100), 0)
            writer.add_image("image", random(3, 8, 8).sigmoid(), 0)
            writer.add_text("text", "some", 0)
            writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 0)
        return {
            "files": sum(
                path.stat().st_size > 100 for path in Path(folder).glob("events.out.tfevents.*")
            )
            > 0
        }
