"""What the backend does to the process it lives in: OpenMP, the lock, forks, NumPy's own arrays."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import tensorplug as tp

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import pointwise  # noqa: E402

EXP = pointwise.Unary("exp").call


def run(program, **environment):
    """Run a program by itself, whose threads and libraries are none of this process's."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


WORK = """
import tensorplug as tp
import tensorplug.nn.functional as F

tp.set_num_threads(2)
x = tp.ones(300, 300)
assert (x @ x).sum().item() == 300**3
assert F.conv2d(tp.ones(2, 3, 64, 64), tp.ones(8, 3, 3, 3)).amax().item() == 27
assert tp.linalg.inv(tp.eye(200) * 2).sum().item() == 100
assert tp.ones(1 << 20).exp().amax().item() > 2.7
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="/proc tells the libraries")  # noqa: PTH110
def test_there_is_one_openmp_runtime():
    listing = (
        "import re\n"
        "libraries = {line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}\n"
        "print(*[path for path in libraries if re.search(r'/lib[a-z]*omp\\d*[-.]', path)])\n"
    )
    done = run(WORK + listing)
    assert done.returncode == 0, done.stderr
    (runtime,) = done.stdout.split()
    assert "libgomp" in runtime


def test_without_onednn_everything_works_and_it_is_said_once():
    hidden = "import sys\nsys.modules['tensorplug_cpu_cython.onednn'] = None\n"
    scores = (
        "q = tp.ones(1, 2, 5, 4)\n"
        "tp.testing.assert_close(F.scaled_dot_product_attention(q, q, q), q)\n"
        "assert tp.explain('linear', dtype=tp.bfloat16).kernel.plugin == 'cpu_numpy'\n"
        "assert tp.explain('exp').kernel.plugin == 'cpu_cython'\n"
    )
    done = run(hidden + WORK + scores)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("oneDNN is not in use") == 1, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_the_grain_is_checked():
    load = "import tensorplug_cpu_cython.cpu_features"
    assert run(load, TENSORPLUG_CPU_GRAIN="1").returncode == 0
    for wrong in ("0", "-1", "many", "1.5"):
        done = run(load, TENSORPLUG_CPU_GRAIN=wrong)
        assert done.returncode
        assert f"got {wrong!r}" in done.stderr


# --- memory ---------------------------------------------------------------------------------------


def test_numpys_own_arrays_keep_their_allocator():
    theirs = np.ones(1000)
    before = get_handler_name(), get_handler_name(theirs)
    ours = EXP(theirs)
    tp.from_numpy(theirs).add_(1.0)
    assert (get_handler_name(), get_handler_name(theirs)) == before
    assert get_handler_name(np.ones(1000)) == before[0]
    assert get_handler_name(ours) == "tensorplug_cpu_cython"
    assert theirs.tolist() == [2.0] * 1000


def test_results_outlive_the_tensors_that_had_them():
    kept = [(tp.ones(1000) * k).numpy() for k in range(50)]
    tp.cpu.empty_cache()
    again = [(tp.ones(1000) * -k).numpy() for k in range(50)]
    assert [array.sum() for array in kept] == [1000 * k for k in range(50)]
    assert [array.sum() for array in again] == [-1000 * k for k in range(50)]


# --- threads --------------------------------------------------------------------------------------


@pytest.fixture
def no_turns():
    """A thread that runs Python keeps the lock until it gives it up itself."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


def test_long_work_gives_up_the_lock(no_turns):
    start, seen = threading.Lock(), []
    start.acquire()
    other = threading.Thread(target=lambda: (start.acquire(), seen.append("other")))
    other.start()
    big = np.ones(1 << 20, np.float32)
    start.release()
    calls = 0
    while not seen and calls < 2000:  # until the system has woken the other thread
        EXP(big)
        calls += 1
    other.join()
    assert calls < 2000


def test_several_threads_compute_at_once():
    def work(seed):
        x = tp.from_numpy(np.random.default_rng(seed).standard_normal((600, 500), np.float32))
        x.requires_grad_()
        y = (x.exp().softmax(1) @ x.t().tanh()).log_softmax(0) + x.sum(1)
        y.square().mean().backward()
        return y.detach().numpy(), x.grad.numpy()

    before = tp.get_num_threads()
    tp.set_num_threads(2)
    try:
        expected = [work(seed) for seed in range(6)]
        found = [None] * 6

        def store(seed):
            for _ in range(5):
                found[seed] = work(seed)

        threads = [threading.Thread(target=store, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        tp.set_num_threads(before)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other[0], one[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(other[1], one[1], rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_children_of_a_process_that_is_busy_allocate_and_compute():
    """Whatever the other threads were at, in the allocator or in OpenMP, a child goes on by itself."""
    program = (
        "import os, threading, warnings\n"
        "import numpy as np\n"
        "from tensorplug_cpu_cython import allocator, cpu_features, pointwise\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "cpu_features.set_num_threads(2)\n"
        "add, done = pointwise.Binary('add').call, threading.Event()\n"
        "def busy():\n"
        "    small, big = np.ones(100), np.ones(1 << 18)\n"
        "    while not done.is_set():\n"
        "        for _ in range(50): add(small, small)\n"
        "        add(big, big)\n"
        "threads = [threading.Thread(target=busy) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "failed = 0\n"
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        big = np.ones(1 << 18)\n"
        "        right = all([add(big, big).sum() == 2 << 18 for _ in range(3)])\n"
        "        allocator.empty_cache()\n"
        "        os._exit(0 if right and cpu_features.get_num_threads() == 1 else 1)\n"
        "    failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0\n"
        "done.set()\n"
        "for thread in threads: thread.join()\n"
        "raise SystemExit(failed)\n"
    )
    done = run(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="GOMP is Linux's here")
@pytest.mark.parametrize(
    ("said", "spins"),
    [({}, "30000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "30000000000")],
    ids=["nothing", "a count", "a policy"],
)
def test_threads_wait_briefly_unless_the_environment_says_otherwise(said, spins):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        said.setdefault(name, "")
    program = (
        "import os, sys\n"
        "for name in ('GOMP_SPINCOUNT', 'OMP_WAIT_POLICY'):\n"
        "    if not os.environ[name]: del os.environ[name]\n"
        "before = dict(os.environ)\n"
        "import tensorplug_cpu_cython\n"
        "assert dict(os.environ) == before\n"
    )
    done = run(program, OMP_DISPLAY_ENV="verbose", **said)
    assert done.returncode == 0, done.stderr
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr
