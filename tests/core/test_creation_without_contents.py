"""Memory without contents: filled while deterministic algorithms are asked for."""

import contextlib

import pytest

import tensorplug as tp

DTYPES = [
    dtype
    for dtype in vars(tp).values()
    if isinstance(dtype, tp.dtype)
    and dtype.itemsize
    and not dtype.name.startswith(("q", "float4", "bits"))
]
MAKERS = {
    "empty": lambda dtype: tp.empty(2, 3, dtype=dtype),
    "empty(out=)": lambda dtype: tp.empty(2, 3, out=tp.zeros(0, dtype=dtype)),
    "empty(memory_format=)": lambda dtype: tp.empty(
        1, 2, 2, 2, dtype=dtype, memory_format=tp.channels_last
    ),
    "empty_like": lambda dtype: tp.empty_like(tp.zeros(2, 3, dtype=dtype).t()),
    "empty_strided": lambda dtype: tp.empty_strided((2, 3), (1, 4), dtype=dtype),
    "empty_permuted": lambda dtype: tp.empty_permuted((2, 3), (1, 0), dtype=dtype),
    "new_empty": lambda dtype: tp.zeros(1, dtype=dtype).new_empty(2, 3),
    "new_empty_strided": lambda dtype: tp.zeros(1, dtype=dtype).new_empty_strided((2,), (3,)),
    "new": lambda dtype: tp.zeros(1, dtype=dtype).new(2, 3),
    "resize_": lambda dtype: tp.zeros(2, dtype=dtype).resize_(5)[2:],
    "resize_ of none": lambda dtype: tp.zeros(0, dtype=dtype).resize_(2, 2),
}


@contextlib.contextmanager
def deterministic(fill=True, warn_only=False):
    tp.use_deterministic_algorithms(True, warn_only=warn_only)
    before = tp.utils.deterministic.fill_uninitialized_memory
    tp.utils.deterministic.fill_uninitialized_memory = fill
    try:
        yield
    finally:
        tp.use_deterministic_algorithms(False)
        tp.utils.deterministic.fill_uninitialized_memory = before


@pytest.mark.parametrize("warn_only", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", MAKERS)
def test_memory_without_contents_is_filled(name, dtype, warn_only):
    with deterministic(warn_only=warn_only):
        made = MAKERS[name](dtype)
    assert made.numel()
    assert made.dtype is dtype
    if dtype.is_floating_point or dtype.is_complex:
        read = made if dtype.is_complex else made.to(tp.float64)
        assert read.isnan().all()
    else:
        largest = 1 if dtype is tp.bool else tp.iinfo(dtype).max
        assert set(made.flatten().tolist()) == {largest}


def test_what_a_smaller_size_shows_is_kept():
    with deterministic():
        assert tp.arange(6.0).resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
        assert tp.arange(3.0).resize_(2).resize_(3).tolist() == [0.0, 1.0, 2.0]


def test_the_setting_turns_it_off():
    assert tp.utils.deterministic.fill_uninitialized_memory is True
    x = tp.zeros(1000)
    with deterministic(fill=False):
        assert tp.utils.deterministic.fill_uninitialized_memory is False
        made = x.resize_(2000)[1000:]
        assert not made.isnan().all()
    with pytest.raises(TypeError, match="must be a bool, not int"):
        tp.utils.deterministic.fill_uninitialized_memory = 1


@pytest.mark.parametrize(
    ("arguments", "named", "said"),
    [((1,), {}, "'mode'"), ((None,), {}, "'mode'"), ((True,), {"warn_only": 1}, "'warn_only'")],
)
def test_only_bools_are_taken(arguments, named, said):
    with pytest.raises(TypeError, match=f"argument {said}.* must be bool, not"):
        tp.use_deterministic_algorithms(*arguments, **named)
    assert not tp.are_deterministic_algorithms_enabled()
