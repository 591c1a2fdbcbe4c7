"""The CUDA sources compile for each type of elements, with NVRTC."""

import itertools

import pytest
from on_device import HOSTED

from tensorplug_cuda_cupy import sources
from tensorplug_cuda_cupy.regions.expressions import (
    ACTIVATIONS,
    COMPARISONS,
    OF_BITS,
    OF_FLOATS,
    OF_NUMBERS,
    expression,
)
from tensorplug_cuda_cupy.regions.pointwise import OPTIONS
from tensorplug_cuda_cupy.regions.pointwise_source import Line, Place, text

FLOATS = ("float32", "float64", "float16", "bfloat16")
SOURCES = [("random", "", {})]
SOURCES += [
    (name, dtype, {})
    for name in (
        "activation",
        "optimizers_adafactor",
        "amp",
        "rnn",
        "losses",
        "dropout",
        "embedding",
        "optimizers",
        "normalization_layer",
        "softmax",
        "normalization_normalize",
    )
    for dtype in FLOATS
]
SOURCES += [("attention", dtype, {}) for dtype in ("float32", "float64")]
SOURCES += [("pooling", dtype, {"WIDE": wide}) for dtype in FLOATS for wide in (0, 1)]
HALVES = ("float16", "bfloat16")
SOURCES += [
    ("normalization_batch", dtype, {"NARROW": narrow, "WIDE": wide})
    for dtype in FLOATS
    for wide in (0, 1)
    for narrow in (0, *[1] * (dtype in HALVES))
]
SOURCES += [("embedding_rows", dtype, {}) for dtype in ("uint8", "uint16", "uint32", "uint64")]
SOURCES += [("indexing", dtype, {"WAY": 0, "PARTS": 1}) for dtype in sources.TYPES]
SOURCES += [
    ("indexing", dtype, {"WAY": way, "PARTS": 1})
    for way in (1, 2, 3, 4)
    for dtype in ("float32", "bfloat16", "int64", "uint8")
]
SOURCES += [("indexing", "float32", {"WAY": 0, "PARTS": 2})]

# Instantiates what is a template.
ELEMENTWISE = """
template <typename N> __device__ N floats(N a, N b) {
    return float_remainder(a, b) + float_floor_divide(a, b) + log_of_sum(a, b);
}
template <typename N> __device__ N integers(N a, N b) {
    return whole_fmod(a, b) + shifted_left(a, b) + shifted_right(a, b);
}
extern "C" __global__ void all(float* f, double* d, long long* l, unsigned char* c) {
    f[0] = floats(f[0], f[1]); d[0] = floats(d[0], d[1]);
    l[0] = integers(l[0], l[1]); c[0] = integers(c[0], c[1]);
}
"""


@pytest.fixture(scope="module")
def nvrtc():
    if HOSTED:
        pytest.skip(
            "NVRTC cannot run in one process with the host's driver: make test-cuda-compile"
        )
    pytest.importorskip("cupy", reason="CuPy is not installed: make test-cuda-compile installs it")
    from cupy.cuda import nvrtc

    try:
        nvrtc.getVersion()
    except ImportError as error:
        pytest.skip(f"NVRTC is not installed: {error}")
    return nvrtc


def compile_for(nvrtc, code, arch, options=sources.OPTIONS):
    program = nvrtc.createProgram(code, "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(
            program, (*options, f"--gpu-architecture={arch}", "-Werror=all-warnings")
        )
        return nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError:
        raise AssertionError(nvrtc.getProgramLog(program)) from None
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(("name", "dtype", "macros"), SOURCES)
def test_compiles(nvrtc, name, dtype, macros, arch):
    binary = compile_for(nvrtc, sources.text(name, dtype, **macros), arch)
    assert binary[1:4] == b"ELF"


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_elementwise_functions_compile(nvrtc, arch):
    code = (sources.FOLDER / "elementwise.cuh").read_text("utf-8") + ELEMENTWISE
    assert compile_for(nvrtc, code, arch)


def region_of(dtype, dims, wide):
    """Return the source of a region with all expressions of a dtype, and arrays of every layout."""
    layouts = ("rows", "one", "strided")
    given = [Place(dtype, number, layout) for number, layout in enumerate(layouts)]
    given.append(Place("bool", 3, "rows"))
    names = [
        *OF_NUMBERS,
        *OF_FLOATS,
        *OF_BITS,
        *COMPARISONS,
        *ACTIVATIONS,
        "bitwise_not",
        "cast",
        "where",
    ]
    lines, made = [], []
    for name, result in itertools.product(names, dict.fromkeys((dtype, "bool", "float32"))):
        for dtypes in ((dtype,), (dtype, dtype), ("bool", dtype, dtype)):
            for options in ((), (0.5,), (0.5, 2.0, 1.0), ("tanh",), ("none",)):
                found = expression(name, dtypes, result, options)
                if found:
                    register = len(given) + len(lines)
                    taken = (3, 0, 2) if len(dtypes) == 3 else range(len(dtypes))
                    lines.append(Line(found, (*dtypes, result), (*taken, register)))
                    made.append(Place(result, register, layouts[2 * (register % 2)]))
    assert len(lines) > 5
    return text(given, made, lines, dims, wide)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("dtype", "wide"), [*[(name, False) for name in sources.TYPES], ("int8", True)]
)
def test_regions_compile(nvrtc, dtype, wide, arch):
    assert compile_for(nvrtc, region_of(dtype, 3 - 2 * wide, wide), arch, OPTIONS)


def test_a_batch_of_tensors_fits_into_the_arguments_of_a_kernel():
    from tensorplug_cuda_cupy.kernels.optimizers.fused import BATCH

    assert BATCH.itemsize + 64 <= 4096
