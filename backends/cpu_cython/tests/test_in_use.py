"""The backend is in use, with all its kernels: else every test here would pass on NumPy's."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("tensorplug_cpu_cython.pointwise", reason="cpu_cython is not built")

import tensorplug as tp
from tensorplug.core.plugins import discovery, entry_points


def test_no_kernel_is_set_aside():
    for name in ("nn", "optim", "amp"):
        getattr(tp, name)
    discovery.load_device(entry_points.EXTENSION)
    assert tp.explain("exp").kernel.plugin == "cpu_cython"
    assert tp.explain("softmax").kernel.plugin == "cpu_cython"
    assert not [entry for entry in tp.plugins.quarantined() if "cython" in str(entry)]
    assert not [k for k in tp.plugins.quarantined_kernels() if k.plugin == "cpu_cython"]
    assert not [k for k in tp.plugins.waiting_kernels() if k.plugin.startswith("cpu_cython")]


@pytest.mark.parametrize("level", ["SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16", "DEFAULT"])
def test_no_kernel_is_set_aside_on_another_processor(level):
    program = (
        "import tensorplug as tp; import tensorplug.nn; tp.ones(1) + 1\n"
        "print([str(k.error) for k in tp.plugins.quarantined_kernels()], tp.plugins.quarantined())"
    )
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": level}
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout, run.returncode) == ("[] []\n", 0), run.stderr
