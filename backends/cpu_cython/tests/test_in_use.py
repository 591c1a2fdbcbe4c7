"""The backend is in use, with all its kernels: else every test here would pass on NumPy's."""

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
