"""What libraries import of torch, or use of its modules: each name is there, or refuses with a reason.

names.txt has the names, by module, that the sources of transformers, accelerate, timm, torchvision, peft,
lightning, torchmetrics, einops, huggingface_hub, safetensors, sentence-transformers, kornia, pyro, gpytorch,
linear_operator, botorch, torch_geometric and segmentation-models-pytorch name, and that torch 2.13 has;
and those of torchaudio, fastai, opacus, trl, setfit, datasets, evaluate, speechbrain, gluonts,
darts, tianshou, sbi, backpack, deepchem, torchani and 30 smaller ones.
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = Path(__file__).with_name("names.txt")

#: Those that neither resolve nor refuse.
MISSING = {
    "deprecated types of sparse tensors": "torch.cuda.sparse",
    "settings of a part that has another make": "torch.profiler.profiler._default_schedule_fn",
    "attributes of classes that refuse to be made": """
        torch.distributed.fsdp.FullyShardedDataParallel.optim_state_dict
        torch.distributed.fsdp.FullyShardedDataParallel.optim_state_dict_to_load
        torch.distributed.fsdp.FullyShardedDataParallel.rekey_optim_state_dict
        torch.distributed.fsdp.FullyShardedDataParallel.state_dict_type
        torch.distributed.fsdp.FullyShardedDataParallel.summon_full_params
        torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel.fsdp_modules
        torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel.optim_state_dict
        torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel.optim_state_dict_to_load
        torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel.state_dict_type
        torch.distributed.tensor.placement_types.Shard.local_shard_size_and_offset
    """,
}

PROGRAM = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
from tensorplug import compat
from tensorplug.compat import refusals
compat.install()

def resolve(name):
    parts = name.split(".")
    value = importlib.import_module("torch")
    for end, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:end]))
    return value

found = {"there": [], "refused": [], "missing": []}
for name in json.load(sys.stdin):
    module, _, last = name.rpartition(".")
    try:
        value = resolve(name)
    except (ImportError, AttributeError):
        found["missing"].append(name)
        continue
    doc = getattr(value, "__doc__", None) or ""
    refused = last in refusals.names(module) and doc.startswith("Not there: ")
    found["refused" if refused else "there"].append(name)
print(json.dumps(found))
"""


def names():
    module = ""
    for line in NAMES.read_text("utf-8").splitlines():
        if line.startswith(" "):
            yield from (f"{module}.{name}" for name in line.split())
        else:
            module = line


def test_names_that_libraries_use():
    asked = list(names())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(asked), capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print({kind: len(these) for kind, these in found.items()})
    listed = {name for group in MISSING.values() for name in group.split()}
    assert len(asked) == sum(map(len, found.values())) > 1000
    assert sorted(set(found["missing"]) - listed) == []
    assert len(found["refused"]) < len(asked) / 5
