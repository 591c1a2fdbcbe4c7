"""The kernels of further optimizers and of the scaler, compiled for the host, against the ops' bodies."""

import numpy as np
import pytest
from test_kernels_on_host import FLOATS, NATIVE, as_tensor, randoms
from test_networks_on_host import close

import tensorplug as tp
import tensorplug.amp
import tensorplug.optim
from tensorplug_cuda_cupy.kernels import adafactor, amp, more_optimizers, optimizers

pytestmark = [
    pytest.mark.usefixtures("on_host"),
    pytest.mark.xdist_group("cuda sources on the host"),  # one worker compiles them
]


SHAPES = [(40000,), (3, 4), (0,), (7, 1000), ()]


def lists(dtype, count, positive=False):
    made = []
    for n in range(count):
        arrays = [np.asarray(randoms(s, dtype, 10 * n + i)) for i, s in enumerate(SHAPES)]
        made.append([np.asarray(np.abs(a) + 1) for a in arrays] if positive else arrays)
    return made


STEPS = {
    "adadelta_step": (2, (0.1, 0.9, 1e-6, 0.1, True)),
    "adamax_step": (2, ("steps", 0.1, 0.9, 0.99, 0.1, 1e-8, False)),
    "asgd_step": (1, ("rates", "moves", 0.01, 0.1, False)),
    "nadam_step": (2, ("products", "steps", 0.1, 0.9, 0.99, 0.1, 4e-3, 1e-8, True, True)),
    "radam_step": (2, ("steps", 0.1, 0.9, 0.99, 0.1, 1e-8, False, False)),
    "rprop_step": (2, (0.5, 1.2, 1e-6, 50.0, True)),
}
NUMBERS = {
    "steps": [1.0, 2.0, 3.0, 9.0, 30.0],
    "rates": [0.1, 0.2, 0.3, 0.05, 0.4],
    "moves": [1.0, 0.5, 1.0, 0.1, 0.3],
    "products": [0.9, 0.8, 0.5, 0.6, 0.7],
}


def as_wide(arrays):
    """Return copies as tensors; halves as float32, in which the kernels compute with them."""
    return [
        tp.from_numpy(a.astype(np.float64 if a.dtype == np.float64 else np.float32)) for a in arrays
    ]


def agree(given, expected, dtype):
    for found, right in zip(given, expected, strict=True):
        for one, other in zip(found, right, strict=True):
            assert one.dtype == NATIVE[dtype] or one.shape == ()
            rounded = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype)
            tolerance = {} if rounded is None else {"rtol": rounded, "atol": rounded}
            tp.testing.assert_close(as_wide([one])[0], other, **tolerance)


@FLOATS
@pytest.mark.parametrize("name", STEPS)
def test_steps_of_further_optimizers(dtype, name):
    count, options = STEPS[name]
    options = [NUMBERS.get(o, o) if isinstance(o, str) else o for o in options]
    given = [*lists(dtype, 2), *lists(dtype, count, positive=True)]
    expected = [as_wide(arrays) for arrays in given]
    getattr(more_optimizers, name)(*given, *options)
    getattr(tp.ops.optim, name)(*expected, *options)
    agree(given, expected, dtype)


HALVES_STEPS = {
    "sgd_step": (1, (0.1, 0.9, 0.1, 0.1, True, False, False)),
    "adam_step": (3, ("steps", 0.1, 0.9, 0.99, 0.1, 1e-8, True, False, True)),
    "adagrad_step": (1, ("steps", 0.1, 0.1, 0.1, 1e-8, False)),
    "rmsprop_step": (3, (0.1, 0.9, 1e-8, 0.1, 0.5, True, False)),
}


@FLOATS
@pytest.mark.parametrize("name", HALVES_STEPS)
def test_steps_of_halves_are_rounded_once(dtype, name):
    count, options = HALVES_STEPS[name]
    options = [NUMBERS.get(o, o) if isinstance(o, str) else o for o in options]
    given = [*lists(dtype, 2), *lists(dtype, count, positive=True)]
    if name == "rmsprop_step":
        given[3] = [
            np.asarray(a * given[3][0].dtype.type(0.01)) for a in given[3]
        ]  # means below their squares
    expected = [as_wide(arrays) for arrays in given]
    getattr(optimizers, name)(*given, *options)
    getattr(tp.ops.optim, name)(*expected, *options)
    agree(given, expected, dtype)


MATRICES = [(3, 4), (40, 70), (2, 3, 5, 4), (1, 1), (0, 3), (300, 2)]


@FLOATS
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("clip", [1.0, 1e-3])
def test_adafactor(dtype, maximize, clip):
    options = (0.1, -0.8, 1e-7, 1e-3, clip, 0.1, maximize)
    for flat in (False, True):
        shapes = SHAPES if flat else MATRICES
        params, grads = (
            [np.asarray(randoms(s, dtype, 10 * n + i)) for i, s in enumerate(shapes)]
            for n in (0, 1)
        )
        states = [
            [],
            [],
            [np.asarray(np.abs(randoms(s, dtype, 5)) + 1).astype(NATIVE[dtype]) for s in SHAPES],
        ]
        if not flat:
            states = [
                [np.abs(randoms((*s[:-1], 1), dtype, 7)) for s in shapes],
                [np.abs(randoms((*s[:-2], 1, s[-1]), dtype, 8)) for s in shapes],
                [],
            ]
        given = [params, grads, *states]
        expected = [as_wide(arrays) for arrays in given]
        # A first step would make variances of single elements that float16 cannot hold.
        first = 1.0 if dtype != "float16" else 2.0
        steps = [first, 2.0, 3.0, 9.0, 30.0, 4.0][: len(shapes)]
        adafactor.adafactor_step(*given, steps, *options)
        tp.ops.optim.adafactor_step(*expected, steps, *options)
        agree(given, expected, dtype)


def test_adafactor_of_what_is_not_in_rows():
    params, grads = [randoms((4, 3)).T], [randoms((3, 4), seed=1)]
    rows, columns = [np.abs(randoms((6, 1)))[::2]], [np.abs(randoms((1, 4)))]
    given = [params, grads, rows, columns, []]
    expected = [as_wide([np.ascontiguousarray(a) for a in arrays]) for arrays in given]
    options = ([2.0], 0.1, -0.8, 1e-7, 1e-3, 1.0, 0.0, False)
    adafactor.adafactor_step(*given, *options)
    tp.ops.optim.adafactor_step(*expected, *options)
    for found, right in zip(given, expected, strict=True):
        for one, other in zip(found, right, strict=True):
            tp.testing.assert_close(tp.from_numpy(np.ascontiguousarray(one)), other)


@FLOATS
@pytest.mark.parametrize("found", [None, 0.0, 1.0])
@pytest.mark.parametrize("rate", [None, 0.25])
def test_steps_on_the_device(dtype, found, rate):
    one = [None if n is None else np.array(n, np.float32) for n in (rate, found)]
    other = [None if a is None else tp.from_numpy(a.copy()) for a in one]
    given = [*lists(dtype, 2), *lists(dtype, 3, positive=True)]
    given.append([np.array(n, np.float32) for n in (0, 1, 2, 9, 5)])
    expected = [as_wide(arrays) for arrays in given]
    options = (0.1, 0.9, 0.99, 0.1, 1e-8, True, False, True)
    more_optimizers.adam_step_on_device(*given, *one, *options)
    tp.ops.optim.adam_step_on_device(*expected, *other, *options)
    options = (0.1, 0.9, 0.1, 0.1, False, True, False)
    more_optimizers.sgd_step_on_device(*given[:3], *one, *options)
    tp.ops.optim.sgd_step_on_device(*expected[:3], *other, *options)
    agree(given, expected, dtype)


@FLOATS
@pytest.mark.parametrize("bad", [None, np.inf, np.nan])
def test_unscale(dtype, bad):
    grads = [np.asarray(randoms(s, dtype, i)) for i, s in enumerate(SHAPES)]
    if bad is not None:
        grads[3][2, 5] = bad
    found, inverse = np.zeros((), np.float32), np.array(0.25, np.float32)
    expected = [as_tensor(a) for a in grads]
    right = tp.zeros(())
    tp.ops.amp.unscale(expected, right, tp.tensor(0.25))
    amp.unscale(grads, found, inverse)
    assert found == right.item() == (bad is not None)
    for one, other in zip(grads, expected, strict=True):
        close(one.reshape(tuple(other.shape)), other, dtype, equal_nan=True, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("scale", "tracker", "found"),
    [(8.0, 0, 0.0), (8.0, 2, 0.0), (8.0, 1, 1.0), (3e38, 2, 0.0)],
)
def test_update_scale(scale, tracker, found):
    arrays = [np.array(scale, np.float32), np.array(tracker, np.int32), np.array(found, np.float32)]
    tensors = [tp.from_numpy(a.copy()) for a in arrays]
    amp.update_scale(*arrays, 2.0, 0.5, 3)
    tp.ops.amp.update_scale(*tensors, 2.0, 0.5, 3)
    assert [a.tolist() for a in arrays] == [t.tolist() for t in tensors]
