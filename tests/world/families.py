"""Every family of models of transformers, timm and torchvision under tp.compile, tp.export and tp.onnx.

``python -m tensorplug.compat tests/world/families.py [--library NAME] [--checks compile,export,onnx] [FAMILY …]``
with the libraries of ``make world``; the last check takes onnx and onnxruntime. Each family runs in a process of its
own, for a limited time. Prints for each how it ran; the status is 1 if results differ.
"""

import argparse
import importlib
import json
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import torch
from family_models import LIBRARIES, tensors_in, with_batched_experts, without_caches

import tensorplug as tp
from tensorplug.onnx.package import onnx_package

CALLS = 5
#: Relative to the largest number of a result: folded batch norms and oneDNN round otherwise.
CLOSE = 1e-3


def difference(found, wanted):
    """Return by how much tensors differ, relative to the largest number of each."""
    if [a.shape for a in found] != [b.shape for b in wanted]:
        return float("inf")
    worst = 0.0
    for a, b in zip(found, wanted, strict=True):
        if a.is_complex():
            a, b = torch.view_as_real(a), torch.view_as_real(b)
        a, b = a.detach().double().nan_to_num(1e30), b.detach().double().nan_to_num(1e30)
        if a.numel():
            worst = max(worst, float((a - b).abs().max()) / max(float(b.abs().max()), 1e-9))
    return worst


def results(run, given):
    """Return all tensors that come of a call."""
    tp.manual_seed(0)
    return list(tensors_in(run(**given), set()))


def compiled(model, calls, wanted):
    """Return how a model ran compiled, and by how much its results differ."""
    run = tp.compile(model)
    worst = 0.0
    for one, expected in zip(calls, wanted, strict=True):
        worst = max(worst, difference(results(run, one), expected))
    explained = run.explain()
    if len(explained.graphs) == 1 and explained.calls == CALLS - 1:
        return "one graph", worst
    if len(explained.graphs) == 1 and explained.calls:
        return "one graph, once set up", worst
    reasons = "; ".join(
        dict.fromkeys(f"{found.reason} {found.source}" for found in explained.breaks)
    )
    how = f"{len(explained.graphs)} graphs" if explained.graphs else "eager"
    return f"{how}: {reasons}", worst


def exported(model, calls, wanted):
    """Return by how much results differ of what is exported, saved and loaded again."""
    wanted = [results(without_caches(model), one) for one in calls[:2]]
    how = "runs"
    try:
        program = tp.export.export(model, (), calls[0])
    except tp.graph.Uncapturable as error:
        if "data" not in error.reason:
            raise
        how = f"runs, with what it reads asserted: {error}"
        program = tp.export.export(
            model, (), calls[0], prefer_deferred_runtime_asserts_over_guards=True
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.zip")
        tp.export.save(program, path)
        run = tp.export.load(path).module()
    pairs = zip(calls[:2], wanted, strict=False)
    return how, max(difference(results(run, one), expected) for one, expected in pairs)


class Flat(tp.nn.Module):
    """A model with tensors alone as arguments and results."""

    def __init__(self, model, names):
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *given):
        """Call it."""
        return tuple(tensors_in(self.model(**dict(zip(self.names, given, strict=True))), set()))


def onnx_of(model, calls, wanted):
    """Return by how much results of onnxruntime, and of the file read again, differ."""
    import onnxruntime

    names = list(calls[0])
    net = Flat(with_batched_experts(without_caches(model)), names)
    wanted = [results(model, one) for one in calls[:2]]
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        tp.onnx.export(net, tuple(calls[0].values()), path, input_names=names)
        onnx_package("checker").check_model(str(path))
        session = onnxruntime.InferenceSession(str(path))
        loaded = tp.onnx.load(path)
        taken = [entry.name for entry in session.get_inputs()]
        for given, expected in zip(calls[:2], wanted, strict=False):
            made = session.run(None, {name: given[name].numpy() for name in taken})
            worst = max(worst, difference([torch.from_numpy(a) for a in made], expected))
            again = list(tensors_in(loaded(*[given[name] for name in taken]), set()))
            worst = max(worst, difference(again, expected))
    return "runs", worst


CHECKS = {"compile": compiled, "export": exported, "onnx": onnx_of}
#: What most families of a library import, which takes ten times as long as all checks of one.
COMMON = {
    "transformers": ("transformers.models.bert.modeling_bert",),
    "timm": ("timm",),
    "torchvision": ("torchvision.models",),
}


def short(error):
    """Return an error in one line."""
    return f"{type(error).__name__}: {str(error)[:300]!r}"


def examine(library, family, checks, tell):
    """Tell how a family ran in each check: what is told, and the difference."""
    warnings.simplefilter("ignore")
    try:
        model, arguments = LIBRARIES[library][1](family)
        calls = [arguments(number) for number in range(CALLS)]
        wanted = [results(model, one) for one in calls]
    except Exception as error:  # not with these settings, or arguments
        tell("made", f"not tried: {short(error)}", 0.0)
        return
    tell("made", "made", difference(results(model, calls[0]), wanted[0]))
    for check in checks:
        try:
            tell(check, *CHECKS[check](model, calls, wanted))
        except Exception as error:
            tell(check, f"raises: {short(error)}", 0.0)


def import_once(library, checks):
    """Import what the processes of all families need, before these are forked off."""
    for module in COMMON[library]:
        importlib.import_module(module)
    if "onnx" in checks:
        importlib.import_module("onnxruntime")
        onnx_package("checker")
    tp.zeros(1)  # loads the plugins of the device


def in_process(library, family, checks, limit):
    """Return how a family ran, by check, for at most some seconds: what, how far apart, its seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run():
        with tp.no_grad():
            examine(library, family, checks, lambda *found: sender.send(found))

    process = context.Process(target=run)
    begin = before = time.monotonic()
    process.start()
    sender.close()
    found = {}
    try:
        while receiver.poll(max(0, begin + limit - time.monotonic())):
            check, how, apart = receiver.recv()
            now = time.monotonic()
            found[check] = how, apart, round(now - before, 1)
            before = now
        process.kill()
        found["limit"] = f"not done within {limit} s", 0.0, 0.0
    except EOFError:
        process.join()
        if process.exitcode:
            found["limit"] = f"ended with status {process.exitcode}", 0.0, 0.0
    process.join()
    return found


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--library", choices=LIBRARIES, default="transformers")
    parser.add_argument("--checks", default="compile")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each family")
    parser.add_argument("--json", type=Path, help="a file to which a line is added for each family")
    asked = parser.parse_args(arguments)
    kinds, differing = Counter(), []
    families = asked.families or LIBRARIES[asked.library][0]()
    checks = asked.checks.split(",")
    import_once(asked.library, checks)
    for family in families:
        begin = time.monotonic()
        found = in_process(asked.library, family, checks, asked.limit)
        for check, (how, apart, seconds) in found.items():
            kinds[f"{check} {how.partition(':')[0]}"] += 1
            if not apart <= CLOSE:
                differing.append(f"{family} ({check})")
            print(f"{family:28} {check:8} {apart:.1e} {seconds:5.1f} s {how}", flush=True)
        if asked.json:
            with asked.json.open("a") as file:
                line = {"library": asked.library, "family": family, "found": found}
                file.write(
                    json.dumps(line | {"seconds": round(time.monotonic() - begin, 1)}) + "\n"
                )
    for kind, number in sorted(kinds.items()):
        print(f"{number:4} {kind}")
    print(f"{len(differing)} differ", *differing)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
