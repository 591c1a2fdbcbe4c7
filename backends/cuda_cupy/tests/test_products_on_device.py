"""Products by cuBLAS and linear layers by cuBLASLt: what is asked for, of whatever shapes and layouts."""

import ctypes
import gc

import pytest
from on_device import EXACT, FLOATS, each, needs_device, needs_host, randoms

import tensorplug as tp
from tensorplug_cuda_cupy.kernels import matmul
from tensorplug_cuda_cupy.libraries import cublas, cublaslt

pytestmark = needs_device
DTYPES = pytest.mark.parametrize(
    "dtype", [*FLOATS, tp.complex64, tp.complex128], ids=lambda dtype: dtype.name
)
LINEAR = pytest.mark.parametrize(
    "dtype", [tp.float32, tp.float16, tp.bfloat16], ids=lambda dtype: dtype.name
)
linear = tp.nn.functional.linear


@pytest.fixture
def calls(monkeypatch):
    """Return the arguments of the products that cuBLAS is asked for."""
    made, products = [], cublas.products
    monkeypatch.setattr(cublas, "products", lambda *a: made.append(a) or products(*a))
    return made


@pytest.fixture
def plans(monkeypatch):
    """Return cuBLASLt's plans; in the end, all that they were made of is destroyed."""
    made = {}
    monkeypatch.setattr(cublaslt, "_plans", made)
    gc.collect()
    living = getattr(cublaslt.library(), "hosted_living", int)
    before = living()
    yield made
    made.clear()
    gc.collect()
    assert living() == before


def check(function, *tensors, dtype):
    """Compare a function on the device with the CPU, which takes the same numbers in more bits."""
    wide = tp.complex128 if dtype.is_complex else tp.float64
    found = function(*each(lambda t: t if t.device.type == "cuda" else t.to("cuda"), tensors))
    expected = function(*each(lambda t: t.cpu().to(wide), tensors))
    assert (found.dtype, found.shape) == (dtype, expected.shape)
    exact = EXACT.get(dtype, 1e-5 if dtype == tp.complex64 else 1e-12)
    tp.testing.assert_close(found.cpu().to(wide), expected, rtol=exact, atol=4 * exact)


def numbers(*shape, dtype=tp.float32, seed=0):
    made = randoms(*shape, seed=seed)
    if dtype.is_complex:
        made = tp.complex(made, randoms(*shape, seed=seed + 50))
    return made.to(dtype).to("cuda")


@DTYPES
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((1, 4), (4, 1)), ((3, 1), (1, 5)),
        ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)), ((3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (1, 2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)),
        ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((0, 3, 4), (4, 5)), ((2, 0, 3, 4), (1, 1, 4, 5)),
    ],
)  # fmt: skip
def test_shapes(dtype, a, b):
    left, right = numbers(*a, dtype=dtype), numbers(*b, dtype=dtype, seed=1)
    check(lambda a, b: a @ b, left, right, dtype=dtype)


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.mT.contiguous().mT,
    "every second": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "wide rows": lambda x: tp.cat([x, x], -1)[..., : x.shape[-1]],
    "the same row": lambda x: x[..., :1, :].expand(x.shape),
}


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 4), (4, 1))])
def test_layouts(first, second, shapes):
    left = LAYOUTS[first](numbers(*shapes[0], dtype=tp.float64))
    right = LAYOUTS[second](numbers(*shapes[1], dtype=tp.float64, seed=1))
    check(lambda a, b: a @ b, left, right, dtype=tp.float64)


def test_transposes_are_not_copied(calls):
    left, right = numbers(3, 4), numbers(5, 4, seed=1)
    left @ right.t()
    assert calls[-1][:2] == (1, 0)  # turned as cuBLAS sees them, the second one first
    numbers(4, 3).t() @ right.t()
    assert calls[-1][:2] == (1, 1)


def test_one_matrix_serves_a_whole_batch(calls):
    matmul.product(*[plain_array(numbers(*shape)) for shape in ((5, 3, 4), (1, 4, 2))])
    assert calls[-1][9] == 0


def plain_array(tensor):
    import cupy

    return cupy.from_dlpack(tensor)


def test_tf32_is_asked_for(calls, plans, monkeypatch):
    single, double = numbers(2, 2), numbers(2, 2, dtype=tp.float64)

    def types(x):
        return (x @ x) is not None and calls[-1][-2]

    assert (types(single), types(double)) == (68, 70)
    monkeypatch.setattr(tp.backends.cuda.matmul, "allow_tf32", True)
    assert (types(single), types(double)) == (77, 70)
    linear(single, single, single[0])
    assert [key[2] for key in plans] == [77]
    monkeypatch.setattr(tp.backends.cuda.matmul, "allow_tf32", False)
    try:
        tp.set_float32_matmul_precision("high")
        assert types(single) == 77
    finally:
        tp.set_float32_matmul_precision("highest")


# --- linear layers ------------------------------------------------------------------------------


@LINEAR
@pytest.mark.parametrize("shape", [(3, 4), (4,), (2, 3, 4), (1, 4), (5, 1, 2, 4)])
def test_linear(plans, dtype, shape):
    tensors = [numbers(*s, dtype=dtype, seed=i) for i, s in enumerate((shape, (5, 4), (5,)))]
    check(linear, *tensors, dtype=dtype)
    assert plans
    assert None not in plans.values()


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_linear_of_layouts(plans, first, second):
    x, weight = LAYOUTS[first](numbers(3, 4)), LAYOUTS[second](numbers(5, 4, seed=1))
    check(linear, x, weight, numbers(5, seed=2), dtype=tp.float32)
    assert None not in plans.values()
    turned = next(iter(plans))[3]
    assert turned[1] == (first == "columns")  # as cuBLASLt sees them, the weight first
    assert turned[0] == (second in ("rows", "wide rows"))


def test_a_plan_serves_all_of_its_kind(plans):
    layers = [[numbers(*s, seed=n) for s in ((3, 4), (5, 4), (5,))] for n in range(3)]
    for tensors in layers:  # all in memory at once, so at three places each
        check(linear, *tensors, dtype=tp.float32)
    assert len(plans) == 1


def test_memory_that_is_hardly_aligned(plans):
    room = numbers(64)
    for shift in range(4):
        x, weight = room[shift:][:12].reshape(3, 4), room[shift + 13 :][:20].reshape(5, 4)
        check(linear, x, weight, room[shift:][:5], dtype=tp.float32)
    assert None not in plans.values()
    assert len(plans) > 1


@pytest.mark.parametrize(
    ("shapes", "dtype"),
    [
        (((3, 4), (5, 4), (5,)), tp.float64),
        (((3, 4), (5, 4), (5,)), tp.complex64),
        (((0, 4), (5, 4), (5,)), tp.float32),
        (((3, 0), (5, 0), (5,)), tp.float32),
        (((3, 4), (4,), ()), tp.float32),
    ],
)
def test_what_is_left_to_cublas(plans, shapes, dtype):
    tensors = [numbers(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes)]
    check(linear, *tensors, dtype=dtype)
    assert not plans


@pytest.mark.parametrize(
    ("refused", "status"),
    [("MatmulAlgoGetHeuristic", 15), ("MatmulAlgoGetHeuristic", 14), ("Matmul", 14)],
)
def test_cublas_serves_where_cublaslt_does_not(plans, monkeypatch, refused, status):
    call = cublaslt._call

    def refusing(name, *arguments):
        if name == refused:
            raise cublaslt.CublasLtError(name, status)
        call(name, *arguments)

    monkeypatch.setattr(cublaslt, "_call", refusing)
    tensors = [numbers(*s, seed=i) for i, s in enumerate(((3, 4), (5, 4), (5,)))]
    if status == 14:
        said = rf"cublasLt{refused} failed: internal error \(14\); cuBLAS serves"
        with pytest.warns(UserWarning, match=said):
            check(linear, *tensors, dtype=tp.float32)
    check(linear, *tensors, dtype=tp.float32)  # and says no more
    assert list(plans.values()) == [None]


def test_no_library(plans, monkeypatch):
    monkeypatch.setattr(cublaslt, "library", lambda: None)
    tensors = [numbers(*s, seed=i) for i, s in enumerate(((3, 4), (5, 4), (5,)))]
    check(linear, *tensors, dtype=tp.float32)
    assert not plans


@needs_host
@pytest.mark.parametrize("wrong", ["steps", "alignments", "workspace", "destroyed"])
def test_the_hosts_library_refuses_what_is_wrong(plans, wrong):
    x, weight, bias = (numbers(*s).data_ptr() for s in ((3, 4), (5, 4), (5,)))
    result = numbers(3, 5).data_ptr()
    steps = (3, 4) if wrong == "steps" else (4, 4)

    def run():
        plan = cublaslt.Plan(0, 68, (1, 0), (5, 3, 4), steps, (256, 256, 256), bias)
        if wrong == "workspace":
            plan._found.workspace = 1
        if wrong == "destroyed":
            cublaslt._call("MatrixLayoutDestroy", plan._layouts.pop(0))
            plan._layouts.insert(0, ctypes.c_void_p(result))
        plan.run(weight, x + 4 * (wrong == "alignments"), bias, result)

    with pytest.raises(cublaslt.CublasLtError, match="invalid value"):
        run()


def test_structures_have_the_sizes_of_c():
    assert ctypes.sizeof(cublaslt.Algorithm) == 64
    assert ctypes.sizeof(cublaslt.Heuristic) == 96


FLOATS = [tp.float16, tp.bfloat16, tp.float32, tp.float64]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("shapes", [((2, 3, 4), (5, 4)), ((4,), (5, 4)), ((3, 4), (4,))])
@pytest.mark.parametrize("with_bias", [True, False])
def test_activations_behind_linear_layers(dtype, activation, shapes, with_bias, plans):
    from tensorplug.plugin import get_op

    function = get_op("linear_activation").call
    input, weight = (numbers(*s, dtype=dtype, seed=n) for n, s in enumerate(shapes))
    bias = numbers(5, dtype=dtype, seed=2) if with_bias and weight.ndim == 2 else None
    for layout in (lambda x: x, lambda x: x.repeat_interleave(2, -1)[..., ::2]):
        given = [layout(input), weight, bias]
        found = function(*given, activation).cpu().double()
        wide = [None if x is None else x.cpu().double() for x in given]
        tolerance = {tp.float16: 2e-3, tp.bfloat16: 2e-2, tp.float32: 1e-5, tp.float64: 1e-12}[
            dtype
        ]
        tp.testing.assert_close(found, function(*wide, activation), rtol=tolerance, atol=tolerance)
    fused = activation in ("relu", "gelu_tanh") and dtype != tp.float64 and weight.ndim == 2
    assert any(key[-1] == activation for key in plans) == fused
