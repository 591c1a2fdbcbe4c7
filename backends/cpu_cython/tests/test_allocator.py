"""The allocator under many threads, compiled with sanitizers; no Python in between."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KERNELS = HERE.parent / "src" / "tensorplug_cpu_cython" / "c"
COMPILER = shutil.which(os.environ.get("CC", "gcc"))

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="GCC's sanitizers need Linux"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]


@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_threads_damage_nothing(tmp_path, sanitizers):
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n", "utf-8")
    trial = [COMPILER, f"-fsanitize={sanitizers}", tmp_path / "empty.c", "-o", tmp_path / "empty"]
    if subprocess.run(trial, capture_output=True, check=False).returncode:
        pytest.skip(f"the compiler has no -fsanitize={sanitizers}")
    if subprocess.run([tmp_path / "empty"], capture_output=True, check=False).returncode:
        pytest.skip(f"programs with -fsanitize={sanitizers} do not start here")
    program = tmp_path / "stress"
    options = [
        "-std=gnu11",
        "-O1",
        "-g",
        "-pthread",
        "-Wall",
        "-Werror",
        "-fno-sanitize-recover=all",
    ]
    sources = [HERE / "allocator_stress.c", KERNELS / "allocator.c"]
    command = [COMPILER, f"-fsanitize={sanitizers}", *options, f"-I{KERNELS}", *sources]
    subprocess.run([*command, "-o", program], check=True)
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [program], capture_output=True, text=True, env=clean, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("32000 allocations, ")
