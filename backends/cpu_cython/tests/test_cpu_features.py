"""The allocator, threads and levels."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

cpu_features = pytest.importorskip(
    "tensorplug_cpu_cython.cpu_features", reason="cpu_cython is not built"
)
from tensorplug_cpu_cython import allocator, pointwise  # noqa: E402

ADD = pointwise.Binary("add").call


@pytest.fixture
def no_limit():
    yield
    allocator.set_memory_limit(0)


def test_blocks_are_aligned_and_used_again():
    allocator.empty_cache()
    first = allocator.empty((1000, 1000), np.dtype("f4"))
    address = first.ctypes.data
    assert address % 64 == 0
    del first
    before = allocator.memory_stats()
    second = allocator.empty((1000, 1000), np.dtype("f4"))
    after = allocator.memory_stats()
    assert second.ctypes.data == address
    assert after["allocations_from_cache"] == before["allocations_from_cache"] + 1
    assert after["reserved"] == before["reserved"]


def test_figures_return_to_what_they_were():
    before = allocator.memory_stats()
    array = allocator.empty((12345,), np.dtype("f8"))
    during = allocator.memory_stats()
    assert 12345 * 8 <= during["allocated"] - before["allocated"] <= 12345 * 8 * 9 // 8
    assert during["active"] == before["active"] + 1
    del array
    after = allocator.memory_stats()
    assert (after["allocated"], after["active"]) == (before["allocated"], before["active"])


def test_an_emptied_cache_holds_only_what_is_in_use():
    del_me = allocator.empty((1 << 20,), np.dtype("f4"))
    del del_me
    allocator.empty_cache()
    stats = allocator.memory_stats()
    assert stats["reserved"] == stats["allocated"]


def test_peaks_start_again():
    big = allocator.empty((1 << 22,), np.dtype("f4"))
    del big
    allocator.reset_peak_memory_stats()
    stats = allocator.memory_stats()
    assert stats["peak_allocated"] == stats["allocated"]


def test_a_limit_is_an_error_that_can_be_caught(no_limit):
    allocator.empty_cache()
    allocator.set_memory_limit(allocator.memory_stats()["reserved"] + (1 << 20))
    with pytest.raises(MemoryError, match="cannot allocate"):
        allocator.empty((1 << 20,), np.dtype("f8"))
    assert allocator.empty((10,), np.dtype("f8")).size == 10
    with pytest.raises(ValueError, match="-1"):
        allocator.set_memory_limit(-1)


def test_numpy_may_resize_a_result_and_does_not_come_here_itself():
    before = allocator.memory_stats()["active"]
    array = ADD(np.ones(10), np.ones(10))
    array.resize(100_000, refcheck=False)
    assert array[:10].sum() == 20
    other = np.ones(10)
    assert allocator.memory_stats()["active"] == before + 1
    del array, other
    assert allocator.memory_stats()["active"] == before


def test_threads_share_the_allocator():
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        kept = []
        for _ in range(2000):
            value = float(rng.integers(100))
            size = int(rng.integers(1, 5000))
            kept.append((value, ADD(np.full(size, value), np.zeros(size))))
            if len(kept) > 20:
                expected, array = kept.pop(int(rng.integers(20)))
                if not (array == expected).all():
                    wrong.append(expected)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_computes_with_one_thread():
    program = (
        "import os, numpy as np\n"
        "from tensorplug_cpu_cython import cpu_features, pointwise\n"
        "cpu_features.set_num_threads(2)\n"
        "add, big = pointwise.Binary('add').call, np.ones(1 << 20)\n"
        "add(big, big)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    cpu_features.set_num_threads(2)\n"
        "    os._exit(0 if cpu_features.get_num_threads() == 1 and add(big, big).sum() == 2 << 20 else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def _level(**environment):
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from tensorplug_cpu_cython import cpu_features; print(cpu_features.level())",
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(cpu_features.level() == "plain", reason="there is one level here")
def test_the_level_can_be_forced():
    assert _level(TENSORPLUG_CPU_SIMD="v2").stdout.strip() == "v2"
    refused = _level(TENSORPLUG_CPU_SIMD="v9")
    assert refused.returncode
    assert "must be v2, v3 or v4" in refused.stderr
