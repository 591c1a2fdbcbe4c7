"""Why names of torch are refused at the call."""

from __future__ import annotations

COLLECTIVES = (
    "tensorplug.distributed has no counterpart of it; docs/distributed.md tells what there is"
)
QUANTIZED = "tensorplug has no quantized kernels; keep the module in floating point"
EXPORTED = (
    "tp.export.export saves programs without their code; this part of torch's exporter is missing"
)
COMPILED = "tp.compile runs programs as graphs of ops; this part of torch's compiler is missing"
SCRIPTED = "tensorplug has no TorchScript archives; save the state dict and keep the class"
SYMBOLIC = "sizes are plain ints in tensorplug, there are no symbolic ones"
NESTED = "tensorplug has no nested tensors; torch.nn.utils.rnn.pad_sequence pads to one tensor"
BUILT = (
    "tensorplug takes kernels from plugins (docs/plugins.md), not from sources built at run time"
)
PIPES = "torch gave up data pipes as well; use a Dataset or IterableDataset"
CAPTURED = "tensorplug has no graphs of device calls and marks no ranges in a vendor's tools"
MASKED = "torch calls it a prototype; the functions of tp.masked take the mask as an argument"
PENDING = "it is not there yet"
VENDOR = "kernels come with plugins and have no names of their own; call the op, tp.explain says what runs"
GONE = (
    "This function was deprecated since version 1.9 and is now removed: torch raises as well; tp.linalg has "
    "what took its place"
)
STEPS = "the step of an optimizer is an op of its class; make a tp.optim.Optimizer"
INSIDE = "it is a part of how torch itself is made; the public function that uses it is there"
PLUGIN = "device types come with plugins: tp.plugin, docs/plugins.md"
