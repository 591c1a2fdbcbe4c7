"""What gradcheck finds: each kind of fault, in both modes, with the words of torch's."""

from __future__ import annotations

import pytest

import tensorplug as tp

try:
    import torch
except ImportError:
    torch = None

# What torch's forward mode imports is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
LIBRARIES = [
    "tensorplug",
    pytest.param("torch", marks=pytest.mark.skipif(torch is None, reason="reference")),
]


def library(name):
    return tp if name == "tensorplug" else torch


def numbers(L, *shape, dtype="float64"):
    return L.linspace(0.5, 1.5, 4, dtype=getattr(L, dtype)).reshape(2, 2).requires_grad_()


def hooked(L, change):
    def apply(x):
        y = x.clone()
        y.register_hook(change)
        return y

    return apply


def function(L, **steps):
    steps = {name: staticmethod(step) for name, step in steps.items()}
    return type("Function", (L.autograd.Function,), steps).apply


def unsteady(L, share):
    calls = []

    def backward(ctx, g):
        calls.append(g)
        return g * 2 * (1 + share * len(calls))

    return function(L, forward=lambda ctx, x: x * 2, backward=backward)


def wrong_jvp(L):
    def forward(ctx, x, y):
        return x + y, y * 1

    return function(
        L,
        forward=forward,
        backward=lambda ctx, g, h: (g, g + h),
        jvp=lambda ctx, x, y: (x + y * 1.1, y * 1),
    )


#: By name: a function of one tensor, options, and what is said of it.
FAULTS = {
    "scaled": (
        lambda L: hooked(L, lambda g: g * 1.1), {}, "Jacobian mismatch for output 0 with respect to input 0"
    ),
    "shifted": (
        lambda L: hooked(L, lambda g: g + 1e-6), {}, "backward not multiplied by grad_output"
    ),
    "second output": (
        lambda L: lambda x: (x * 1, hooked(L, lambda g: -g)(x)), {},
        "Jacobian mismatch for output 1 with respect to input 0",
    ),
    "cut off": (lambda L: lambda x: x.detach() * 2, {}, "Numerical gradient for function expected to be"),
    "unsteady": (lambda L: unsteady(L, 1e-7), {}, "Backward is not reentrant"),
    "unsteady beyond the tolerance": (
        lambda L: unsteady(L, 1e-5), {"nondet_tol": 1e-7}, "Backward is not reentrant"
    ),
    "forward mode": (
        lambda L: lambda x: wrong_jvp(L)(x * 1, x), {"check_forward_ad": True},
        "Jacobian computed with forward mode mismatch for output 0 with respect to input 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("lib", LIBRARIES)
def test_a_fault_is_found(lib: str, name: str, fast: bool) -> None:
    L = library(lib)
    make, options, words = FAULTS[name]
    check = L.autograd.gradcheck
    with pytest.raises(RuntimeError, match=words) as caught:
        check(make(L), (numbers(L),), fast_mode=fast, **options)
    assert type(caught.value).__name__ == "GradcheckError"
    assert not check(make(L), (numbers(L),), fast_mode=fast, raise_exception=False, **options)


#: By name: a function, and inputs, of which nothing is wrong.
SOUND = {
    "two of each": (lambda L: lambda x, y: (x * y, x + 2 * y), 2, {}),
    "nothing returned": (lambda L: lambda x: (), 1, {}),
    "one cut off": (lambda L: lambda x, y: (x * y, y.detach().abs().sign()), 2, {}),
    "steady enough": (lambda L: unsteady(L, 1e-9), 1, {"nondet_tol": 1e-5}),
    "forward mode": (lambda L: lambda x, y: (x * y, y.sin()), 2, {"check_forward_ad": True}),
    "batches": (
        lambda L: lambda x, y: x @ y, 2,
        {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True},
    ),
    "forward mode alone": (
        lambda L: lambda x: x.exp(), 1, {"check_forward_ad": True, "check_backward_ad": False}
    ),
}  # fmt: skip


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("lib", LIBRARIES)
def test_what_is_sound_passes(lib: str, name: str, dtype: str, fast: bool) -> None:
    L = library(lib)
    make, count, options = SOUND[name]
    points = tuple([numbers(L, dtype=dtype) for _ in range(count)])
    assert L.autograd.gradcheck(make(L), points, fast_mode=fast, **options)


@pytest.mark.parametrize("lib", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_complex_outputs_are_told_apart(lib, dtype):
    L = library(lib)
    apply = hooked(L, lambda g: g * 1.5)
    with pytest.raises(
        RuntimeError, match="considering the imaginary part of complex outputs only"
    ):
        L.autograd.gradcheck(
            lambda x: apply(x if x.is_complex() else L.complex(x, x)), (numbers(L, dtype=dtype),)
        )


def test_one_output_of_several_that_is_cut_off() -> None:
    for fast in (False, True):
        with pytest.raises(
            RuntimeError, match="Numerical gradient for function expected to be zero"
        ):
            tp.autograd.gradcheck(lambda x: (x * 1, x.detach() * 2), (numbers(tp),), fast_mode=fast)


@pytest.mark.parametrize("lib", LIBRARIES)
@pytest.mark.parametrize(
    "options",
    [
        {"check_backward_ad": False},
        {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
        {"check_batched_forward_grad": True},
    ],
)
def test_options_that_check_nothing_are_refused(lib, options):
    L = library(lib)
    with pytest.raises(AssertionError, match=r"check_(backward|forward)_ad to be True"):
        L.autograd.gradcheck(lambda x: x, (numbers(L),), **options)


@pytest.mark.parametrize("lib", LIBRARIES)
def test_forward_mode_records_nothing_for_backward(lib):
    L = library(lib)
    seen = []

    def note(x):
        if L.autograd.forward_ad._current_level >= 0:
            seen.append(x.requires_grad)
        return x * 2

    assert L.autograd.gradcheck(note, (numbers(L),), check_forward_ad=True)
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_calls_in_fast_mode_do_not_grow_with_the_input(dtype):
    calls = []

    def counted(x):
        calls[-1] += 1
        return x.exp() * x, x.sin()

    for size in (1, 40):
        calls.append(0)
        x = tp.linspace(0.5, 1.5, size, dtype=getattr(tp, dtype)).requires_grad_()
        assert tp.autograd.gradcheck(
            counted, (x,), fast_mode=True, check_forward_ad=True, check_batched_forward_grad=True
        )
    assert calls[0] + 1 >= calls[1]  # of one element there is one direction to batch, of more two
