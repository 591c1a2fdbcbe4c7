"""Twenty installed plugins: whoever uses none of them imports none of them."""

import subprocess
import sys

import pytest
from benchmarks.plugins import environment, write_packages

USES = {
    "import": "import tensorplug",
    "nn": "import tensorplug, tensorplug.nn, tensorplug.optim, tensorplug.data",
    "an op": "import tensorplug as tp; (tp.ones(2, requires_grad=True) * 3).sum().backward()",
    "a list of them": "import tensorplug as tp; assert len(tp.plugins.installed()) >= 20",
    "a network": (
        "import tensorplug as tp; m = tp.nn.Linear(2, 2); m(tp.ones(1, 2)).sum().backward(); "
        "tp.optim.SGD(m.parameters(), lr=0.1).step()"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    write_packages(made)
    return made


def run(folder, script):
    script += "\nimport sys; print(*[m for m in sys.modules if m.startswith('tensorplug_many')])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=environment(folder), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_none_is_imported(folder, use):
    assert run(folder, USES[use]) == set()


def test_a_device_imports_its_own_package(folder):
    script = "import tensorplug as tp; tp.manydev4.is_available(); assert tp.manydev4.device_count() == 1"
    assert run(folder, script) == {"tensorplug_manydev4"}


@pytest.mark.slow
def test_an_op_of_an_extension_imports_extensions_alone(folder):
    script = "import tensorplug as tp; assert tp.explain('manyext3.twice').way == 'decomposition'"
    loaded = run(folder, script)
    assert "tensorplug_manyext3" in loaded
    assert not any("manydev" in name for name in loaded)


@pytest.mark.slow
def test_all_can_be_used(folder):
    script = (
        "import tensorplug as tp; tp.plugins.load_all(); assert not tp.plugins.quarantined(); "
        "assert tp.core.plugins.record_of('manyext7') and tp.core.plugins.record_of('manydev8')"
    )
    assert len(run(folder, script)) == 20
