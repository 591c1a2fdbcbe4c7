"""set_num_threads reaches the BLAS, also where the device's plugin is loaded afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest
from threadpoolctl import threadpool_info

import tensorplug as tp


def limits() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_blas_obeys() -> None:
    before = tp.get_num_threads()
    tp.ones(1) + 1
    try:
        tp.set_num_threads(1)
        assert (tp.get_num_threads(), limits()) == (1, {1})
    finally:
        tp.set_num_threads(before)


#: Calls whose kernels load more libraries when they are first called.
LATER = [
    "tp.ones(1) + 1",
    "tp.geqrf(tp.eye(3))",
    "tp.linalg.ldl_factor(tp.eye(3))",
    "tp.linalg.lstsq(tp.eye(3), tp.eye(3), driver='gelss')",
    "tp.linalg.matrix_exp(tp.eye(300))",
    "tp.linalg.solve_triangular(tp.eye(3), tp.eye(3), upper=True)",
    "tp.special.zeta(tp.tensor(2.0), tp.tensor(2.0))",
    "tp.eye(3).to_sparse() @ tp.eye(3)",
]


@pytest.mark.parametrize("call", LATER)
def test_what_is_loaded_later_obeys(call: str) -> None:
    program = (
        f"import tensorplug as tp; tp.set_num_threads(1); {call}\n"
        "from threadpoolctl import threadpool_info as info\n"
        "print({p['num_threads'] for p in info() if p['user_api'] == 'blas'})"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "{1}"


@pytest.mark.parametrize(
    ("number", "error"),
    [(0, RuntimeError), (-1, RuntimeError), (1.5, TypeError), (True, TypeError)],
)
def test_bad_numbers(number: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="set_num_threads"):
        tp.set_num_threads(number)  # type: ignore[arg-type]
