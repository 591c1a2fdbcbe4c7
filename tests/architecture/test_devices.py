"""No file above the plugin line names a device, but for the default one and "meta"."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
FOLDERS = sorted(f for f in CONFIG["setuptools"]["package-dir"].values() if "/" not in f)
# The table of well-known device types, with the command that installs each.
TABLE = ROOT / "src/tensorplug/_devices.py"
FILES = sorted({p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")} - {TABLE})

# What PyTorch and its out-of-tree backends call their devices, and other common names.
DEVICES = {"cuda", "cudnn", "fpga", "hip", "hpu", "ipu", "maia", "metal", "mps", "mtia", "npu"}
DEVICES |= {"opencl", "rocm", "sycl", "tpu", "vulkan", "webgpu", "xla", "xpu"}
WORD = re.compile(r"[a-z]+")
# A member of torch's enum of implementations of attention, which programs name.
ALLOWED = {
    "nn/attention/__init__.py": {"CUDNN_ATTENTION"},
    # The name of a distribution.
    "src/tensorplug/cli/compat.py": {"(torch|triton|nvidia-.*|pytorch-triton.*|cuda-.*)$"},
    # An argument that torch's function has.
    "src/tensorplug/_top_level.py": {"cudnn_enabled"},
    # Torch's names of devices in calls of its library.
    "src/tensorplug/library/registration.py": {
        "CUDA",
        "cuda",
        "MPS",
        "mps",
        "XPU",
        "xpu",
        "HPU",
        "hpu",
    },
    # Numbers of processes that torchrun's option names.
    "distributed/run.py": {"xpu"},
    # Members of torch's enum of what a profiler may look at.
    "profiler/profile.py": {"XPU", "MTIA", "CUDA", "HPU"},
}
# Files that hold torch's names, which programs import.
TABLES = ("src/tensorplug/compat/", "src/tensorplug/_absent.py")


def docstrings(tree: ast.Module) -> set[ast.AST]:
    """The strings that stand by themselves: docstrings, and their like after an attribute."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def named_devices(source: str) -> Iterator[tuple[int, str]]:
    """The line and text of each string or name in the code that holds a device's name as a word."""
    tree = ast.parse(source)
    told = docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if node not in told:
                pass
            case ast.Name(id=text) | ast.Attribute(attr=text):
                pass
            case ast.FunctionDef(name=text) | ast.ClassDef(name=text):
                pass
            case ast.arg(arg=text) | ast.keyword(arg=str(text)):
                pass
            case _:
                continue
        if DEVICES.intersection(WORD.findall(text.lower())):
            yield node.lineno, text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_device_is_named(path):
    name = path.relative_to(ROOT).as_posix()
    if name.startswith(TABLES):
        return
    allowed = ALLOWED.get(name, set())
    found = named_devices(path.read_text("utf-8"))
    assert [(line, text) for line, text in found if text not in allowed] == []


@pytest.mark.parametrize(
    "source",
    [
        'device = "cuda"',
        'device = "cuda:0"',
        'def f(device="opencl"): ...',
        'raise E("pip install tensorplug[cuda13]")',
        'f"{index} mps"',
        "tensor.is_cuda",
        "def xpu(self): ...",
    ],
)
def test_a_device_in_the_code_is_found(source):
    assert len(list(named_devices(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        'device = "cpu"',
        'device = "meta"',
        '"""Moves to "cuda"."""',
        'def f():\n    """>>> x.to("cuda")"""',
        'x = 1  # not for "cuda"',
        'x = "chip"',
        "relationship = 1",
    ],
)
def test_a_device_in_text_is_not_counted(source):
    assert list(named_devices(source)) == []
