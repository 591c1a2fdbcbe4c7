"""A device with a memory of its own passes the conformance suite with kernels for primitives alone.

Here on a sample of the cases. For all of them, some 20,000, in a few minutes::

    pip install --no-deps --no-build-isolation tests/plugins/packages/tp_second_memory
    pytest -n auto --pyargs tensorplug.testing.conformance --device vault
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "packages" / "tp_second_memory"
SAMPLE = 13  # every so many cases, a number that goes into no count of dtypes or layouts

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("second_memory")]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run Python with the package installed beside this environment, and return what it prints."""
    work = tmp_path_factory.mktemp("second_memory")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(SOURCE, work / "source", ignore=ignored)
    environment = {**os.environ, "PYTHONPATH": str(work / "site"), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_ADDOPTS", None)

    def call(*arguments):
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=work,
            env=environment,
        )
        assert done.returncode == 0, f"{done.stdout[-20000:]}\n{done.stderr}"
        return done.stdout

    pip = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    call(*pip, "--no-build-isolation", "--target", work / "site", work / "source")
    return call


def test_every_primitive_and_nothing_else_has_a_kernel(run):
    script = """if True:
        import tensorplug as tp
        import tensorplug.nn
        from tensorplug.core.dispatch.op_registry import all_ops
        from tensorplug.core.dispatch.choice import choose

        tp.zeros(1, device="vault")
        dtypes = tp.plugins.runtimes()["vault"].dtypes
        for op in all_ops():
            for dtype in dtypes:
                way = choose(op, "vault", dtype).way
                assert (way == "kernel") is (op.kind == "primitive"), (op, dtype, way)
        primitives = [op for op in all_ops() if op.kind == "primitive"]
        assert 50 < len(primitives) < 120, len(primitives)
    """
    run("-W", "error", "-c", script)


def test_a_sample_of_the_conformance_suite(run):
    suite = ["-m", "pytest", "-W", "error", "-q", "-p", "no:cacheprovider", "--tb=short"]
    suite += ["--pyargs", "tensorplug.testing.conformance", "--device", "vault"]
    text = run(*suite, "--every", SAMPLE)
    found = re.search(r"(\d+) passed", text)
    assert found is not None, text[-2000:]
    assert int(found[1]) > 1000
