"""Run programs of torch's world on tensorplug, and compare them in numbers with torch.

``make world`` runs it. The figures of torch are those in ``figures/``, which ``--renew PYTHON`` writes anew with the
torch that this interpreter has; with ``--torch PYTHON`` the programs run there as well, and are compared with that.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from compare import Comparison  # noqa: E402

#: Libraries, by the module of their programs: the packages whose versions are shown.
LIBRARIES = {
    "torchvision": ["torchvision"],
    "transformers": ["transformers"],
    "timm": ["timm"],
    "peft": ["peft"],
    "accelerate": ["accelerate"],
    "lightning": ["lightning", "torchmetrics"],
    "small": ["safetensors", "einops", "tensorboardX"],
    # Many, of requirements-others.txt: they run where they are asked for by name.
    "others": [
        "pyro-ppl", "gpytorch", "botorch", "torch_geometric", "kornia", "diffusers", "segmentation-models-pytorch",
        "open_clip_torch", "skorch", "pytorch-tabnet", "torchinfo", "torchdiffeq", "stable-baselines3", "captum",
        "e3nn", "x-transformers", "snntorch", "ultralytics", "pytorch-metric-learning", "higher", "vit-pytorch",
    ],
    "further": [
        "monai", "sentence-transformers", "pytorch-ignite", "zuko", "vector-quantize-pytorch", "local-attention",
        "torch-optimizer", "thop", "torch_geometric",
    ],
}  # fmt: skip

#: Of programs, by "library.program": to how many "digits" they have to agree where it is not 4 (what passes through
#: many layers in float32 loses more), or why it "fails".
KNOWN: dict[str, dict[str, Any]] = json.loads((HERE / "known.json").read_text())

#: What runs in CI, of each library: quick ones that cover much of it.
SAMPLE = {
    "torchvision": ["mobilenet_v3_small", "nms", "roi_align", "roi_pool", "deform_conv2d", "box_ops", "transforms_v1", "utils"],
    "transformers": ["bert", "gpt2", "llama", "mixtral", "t5", "vit", "save_and_load", "file_of_torch", "trainer"],
    "timm": ["mobilenetv3_small_050"],
    "peft": ["lora"],
    "accelerate": ["loop", "states"],
    "lightning": ["fit"],
    "small": ["safetensors_files", "einops_functions", "einops_layers", "tensorboard"],
}  # fmt: skip


def run(python, library, names, *, compat, level=""):
    """Run programs of a library in one process; return what each said, by name.

    `level` says which of torch's variants of its kernels run: "default" are those in plain C++.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output.jsonl")
        how = ["-m", "tensorplug.compat"] if compat else []
        done = subprocess.run(
            [python, *how, str(HERE / "process.py"), library, str(output), *names],
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
            | ({"ATEN_CPU_CAPABILITY": level} if level else {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=folder,
        )
        lines = output.read_text().splitlines() if output.exists() else []
    said = {line.pop("program"): line for line in map(json.loads, lines)}
    if done.returncode:
        said.setdefault(
            "import", {"error": f"the process ended with {done.returncode}:\n{done.stdout[-3000:]}"}
        )
    return said


def renew(python, libraries):
    """Write what the programs say on torch."""
    for library in libraries:
        said = run(python, library, [], compat=False)
        failed = {name: one["error"] for name, one in said.items() if "error" in one}
        if failed:
            raise SystemExit(
                "\n".join(f"{library} {name}: {error}" for name, error in failed.items())
            )
        code = "import torch, importlib.metadata as m, sys; print(torch.__version__, *[m.version(n) for n in sys.argv[1:]])"
        command = [python, "-c", code, *[n for n in LIBRARIES[library] if n != "tensorboardX"]]
        torch, *versions = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.split()
        figures = {
            "torch": torch,
            "versions": versions,
            "programs": {name: one["result"] for name, one in said.items()},
            "plain": {},
        }
        plain = run(python, library, [], compat=False, level="default")
        for name, one in said.items():
            if Comparison(one["result"], plain[name]["result"], digits(library, name)).differences:
                figures["plain"][name] = plain[name]["result"]
        path = HERE / "figures" / f"{library}.json"
        path.write_text(
            json.dumps(rounded(figures), separators=(",", ":")).replace('},"', '},\n"') + "\n"
        )
        print(f"{path}: {len(said)} programs with torch {torch}")


def digits(library, name):
    """Return to how many digits a program has to agree."""
    return KNOWN.get(f"{library}.{name}", {}).get("digits", 4)


def compared(library, name, figures, result):
    """Compare with the figures; where torch's vectors and its plain C++ give others, a number may be either's."""
    comparison = Comparison(figures["programs"][name], result, digits(library, name))
    if comparison.differences and name in figures.get("plain", {}):
        other = Comparison(figures["plain"][name], result, digits(library, name))
        comparison.digits = max(comparison.digits, other.digits)
        differing = {line.partition(":")[0] for line in other.differences}
        comparison.differences = [
            line for line in comparison.differences if line.partition(":")[0] in differing
        ]
    return comparison


def rounded(value):
    """Return numbers with the digits that float32 has, and two more."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def check(library, names, python):
    """Run a library's programs on tensorplug and compare each; return the lines of a report."""
    started = time.monotonic()
    figures = json.loads((HERE / "figures" / f"{library}.json").read_text())
    reference = f"the figures of torch {figures['torch']}"
    if python:
        said = run(python, library, names, compat=False)
        figures = {"programs": {n: s["result"] for n, s in said.items() if "result" in s}}
        reference = f"torch in {python}"
    said = run(sys.executable, library, names, compat=True)
    passed, failed = [], []
    for name in names or figures["programs"]:
        one = said.get(name) or {
            "error": said.pop("import", {"error": "as the programs before it"})["error"]
        }
        if "error" in one:
            failed.append((name, one["error"].strip()))
            continue
        comparison = compared(library, name, figures, one["result"])
        if comparison.differences:
            failed.append((name, "\n".join(comparison.differences[:12])))
        else:
            passed.append((name, comparison))
    return library, passed, failed, reference, time.monotonic() - started


def versions(library):
    """Return the versions of a library's packages that are installed."""
    names = []
    for name in LIBRARIES[library]:
        try:
            names.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            names.append(f"{name} not installed")
    return ", ".join(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", help="by default all")
    parser.add_argument("--only", default="", help="names of programs, comma-separated")
    parser.add_argument("--sample", action="store_true", help="the quick ones")
    parser.add_argument(
        "--torch", default="", help="an interpreter that has torch and the libraries"
    )
    parser.add_argument("--renew", default="", help="the same, to write the figures anew")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="show each program")
    given = parser.parse_args()
    libraries = given.libraries or [name for name in LIBRARIES if name not in ("others", "further")]
    if given.renew:
        renew(str(Path(given.renew).absolute()), libraries)
        return
    python = given.torch and str(Path(given.torch).absolute())
    names = {
        library: given.only.split(",") if given.only else SAMPLE[library] if given.sample else []
        for library in libraries
    }
    total = good = known = 0
    table = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for library, passed, failed, reference, took in pool.map(
            lambda library: check(library, names[library], python), libraries
        ):
            print(f"=== {versions(library)}: {took:.0f} s, against {reference}")
            for name, why in failed:
                reason = KNOWN.get(f"{library}.{name}", {}).get("fails", "")
                known += bool(reason)
                print(
                    f"--- {library}.{name} failed"
                    + (f", which is known: {reason}" if reason else f"\n{why}\n")
                )
            for name, _ in passed:
                if "fails" in KNOWN.get(f"{library}.{name}", {}):
                    print(f"--- {library}.{name} passed, and known.json says that it fails")
                    known -= 1
            digits = [comparison.digits for _, comparison in passed]
            if given.verbose:
                for name, comparison in passed:
                    print(
                        f"    {name}: {comparison.numbers} numbers, {comparison.digits:.1f} digits"
                    )
            agreement = (
                f"{min(digits):.1f} to {max(digits):.1f}, median {statistics.median(digits):.1f}"
                if digits
                else "-"
            )
            table.append(
                (versions(library), f"{len(passed)}/{len(passed) + len(failed)}", agreement)
            )
            total += len(passed) + len(failed)
            good += len(passed)
    print(f"{'library':<48} {'passed':>9}  digits of agreement")
    for row in table:
        print(f"{row[0]:<48} {row[1]:>9}  {row[2]}")
    print(f"programs of torch's world: {good} of {total} passed")
    sys.exit(good + known != total)


if __name__ == "__main__":
    main()
