"""The values of chains stay in vector registers, at every level."""

import re
import shutil
import subprocess

import pytest

pointwise = pytest.importorskip("tensorplug_cpu_cython.pointwise", reason="cpu_cython is not built")

OF_ONE_INSTRUCTION = (
    "abs",
    "add",
    "maximum",
    "minimum",
    "mul",
    "neg",
    "relu",
    "sqrt",
    "sub",
)


@pytest.fixture(scope="module")
def links():
    """Return the instructions of each link, by name: a list for each level."""
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("objdump, of the binutils, is not installed")
    command = [objdump, "--disassemble", "--no-show-raw-insn", pointwise.__file__]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for name, body in re.findall(
        r"^[0-9a-f]+ <(\w+_link_F\d\d)>:\n((?:.+\n)+)", text, re.MULTILINE
    ):
        found.setdefault(name, []).append(body)
    if not found:
        pytest.skip("the module has no symbols")
    return found


@pytest.mark.parametrize("dtype", ["F32", "F64"])
@pytest.mark.parametrize("name", OF_ONE_INSTRUCTION)
def test_links_use_no_stack(links, name, dtype):
    for body in links[f"{name}_link_{dtype}"]:
        assert not re.findall(r".*\((?:%rsp|%rbp)\b.*", body)
