"""What the tests of the compiled kernels share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(params=[1, 2, 4])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Compute on so many threads."""
    from tensorplug_cpu_cython import cpu_features  # tests are skipped where it is not built

    before = cpu_features.get_num_threads()
    cpu_features.set_num_threads(request.param)
    yield request.param
    cpu_features.set_num_threads(before)
