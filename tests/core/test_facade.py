"""``import tensorplug``: what is there, and what an import costs."""

import json
import subprocess
import sys

import pytest

import tensorplug as tp


def modules_after(*lines: str) -> set[str]:
    code = "\n".join([*lines, "import json, sys", "print(json.dumps(list(sys.modules)))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


# Other packages and parts of the standard library that the import may load, with all that these do.
OTHERS = (
    "cmath", "collections.abc", "contextlib", "copyreg", "dataclasses", "functools", "gc", "inspect",
    "ml_dtypes", "numpy", "pluggy", "re", "threading", "typing_extensions", "warnings", "weakref",
)  # fmt: skip
# Sub-packages and modules of our own; those of device types are made, without a file.
OWN = {
    "_aten_keys", "_device_members", "_devices", "_einops", "_foreach", "_namespaces", "_ops",
    "_settings", "_streams", "autograd", "core",
    "cpu", "cuda", "mps", "xpu",
}  # fmt: skip


def test_the_import_loads_what_is_listed_and_no_more():
    before = modules_after(*[f"import {name}" for name in OTHERS])
    loaded = modules_after("import tensorplug") - before
    # What Cython's modules share has a module, too.
    own = {name for name in loaded if name.partition(".")[0] == "tensorplug"}
    assert {name for name in loaded - own if not name.lstrip("_").startswith("cython")} == set()
    assert {name.split(".")[1] for name in own - {"tensorplug"}} == OWN


def test_the_default_device_loads_with_the_first_op():
    assert "tensorplug_cpu_numpy" in modules_after("import tensorplug as tp", "tp.zeros(1)")


@pytest.mark.parametrize("name", ["nn", "optim", "data", "linalg", "fft", "special", "random"])
def test_packages_are_imported_on_first_use(name):
    assert getattr(tp, name).__name__ == f"tensorplug.{name}"
    assert name in dir(tp)


def test_names_that_programs_import():
    from tensorplug import device, float32, nn  # noqa: F401
    from tensorplug.nn import functional  # noqa: F401
    from tensorplug.utils.data import DataLoader, Dataset  # noqa: F401


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nosuch"):
        tp.nosuch  # noqa: B018
    assert not hasattr(tp, "__wrapped__")


def test_dtypes_have_their_second_names():
    assert tp.float is tp.float32
    assert tp.double is tp.float64
    assert tp.half is tp.float16
    assert tp.long is tp.int64
    assert tp.int is tp.int32
    assert tp.short is tp.int16
    assert tp.cfloat is tp.complex64
    assert tp.cdouble is tp.complex128
    assert tp.zeros(1).to(tp.bool).dtype is tp.bool


def test_a_well_known_device_without_its_plugin_is_quietly_absent():
    assert isinstance(tp.cuda.is_available(), bool)
    if tp.cuda.is_available():
        pytest.skip("the plugin and a device are here")
    assert tp.cuda.device_count() == 0
    tp.cuda.manual_seed_all(0)
    tp.cuda.empty_cache()
    assert not tp.zeros(1).is_cuda
    assert tp.zeros(1).is_cpu
    with pytest.raises(RuntimeError):
        tp.cuda.synchronize()
    with pytest.raises(RuntimeError, match="cuda"):
        tp.zeros(1).cuda()


def test_the_module_of_a_device_type_is_made_from_its_runtime():
    assert tp.cpu.is_available()
    assert tp.cpu.device_count() == 1
    assert tp.cpu.current_device() == 0
    tp.cpu.synchronize()
    assert tp.cpu.get_device_name() == "cpu"
    assert tp.cpu.get_device_properties().name == "cpu"
    assert isinstance(tp.cpu.memory_allocated(), int)
    assert tp.cpu.is_bf16_supported()
    assert not tp.cpu.is_tf32_supported()
    with tp.cpu.device(0):
        pass
    with pytest.raises(ValueError, match="cpu"):
        tp.cpu.get_device_name("meta")


def test_a_plugin_registered_in_process_gets_module_and_members():
    from tensorplug.core.device.meta import MetaRuntime

    class Runtime(MetaRuntime):
        type = "paper"
        namespace = {"Stream": "stream"}  # noqa: RUF012

        def device_count(self):
            return 2

        def memory_stats(self, index):
            return {"allocated": 10 + index}

    class Plugin:
        name = "paper"

        @tp.plugin.hookimpl
        def tensorplug_devices(self):
            return [Runtime()]

    tp.plugins.register(Plugin())
    try:
        assert tp.paper.device_count() == 2
        assert tp.paper.memory_allocated(1) == 11
        assert tp.paper.Stream == "stream"
        assert not tp.zeros(1).is_paper
        moved = tp.zeros(1).paper(1)
        assert moved.is_paper
        assert moved.device == tp.device("paper", 1)
        import tensorplug.paper as module

        assert module is tp.paper
    finally:
        tp.plugins.unregister("paper")


def test_ops_by_registered_name():
    assert tp.ops.add(tp.ones(1), 1).tolist() == [2]
    assert "add" in dir(tp.ops)
    with pytest.raises(AttributeError, match="did you mean"):
        tp.ops.addd  # noqa: B018


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: tp.is_tensor(tp.zeros(1)), True),
        (lambda: tp.is_tensor(1), False),
        (lambda: tp.numel(tp.zeros(2, 3)), 6),
        (lambda: tp.is_floating_point(tp.zeros(1)), True),
        (lambda: tp.is_complex(tp.zeros(1)), False),
        (lambda: tp.is_nonzero(tp.ones(1)), True),
        (lambda: tp.get_device(tp.zeros(1)), -1),
        (lambda: tp.result_type(tp.zeros(1, dtype=tp.int8), 1.0), tp.float32),
        (lambda: tp.can_cast(tp.float64, tp.int64), False),
        (lambda: tp.promote_types(tp.int8, tp.uint8), tp.int16),
        (lambda: tp.typename(tp.zeros(1)), "tensorplug.FloatTensor"),
        (lambda: tp.finfo(tp.float16).max, 65504.0),
        (lambda: tp.iinfo(tp.uint8).max, 255),
    ],
)
def test_questions(call, expected):
    assert call() == expected


def test_questions_about_other_things_raise():
    with pytest.raises(TypeError, match="Tensor"):
        tp.numel([1])


@pytest.mark.parametrize("convert", [int, float, complex])
def test_only_a_single_element_becomes_a_python_number(convert):
    assert convert(tp.tensor([[3]])) == 3
    with pytest.raises(ValueError, match="got 2 elements"):
        convert(tp.ones(2))


def test_precision_of_products_is_one_setting():
    products = tp.backends.cuda.matmul
    assert (products.allow_tf32, tp.get_float32_matmul_precision()) == (False, "highest")
    try:
        products.allow_tf32 = True
        assert tp.get_float32_matmul_precision() == "high"
        tp.set_float32_matmul_precision("highest")
        assert not products.allow_tf32
        tp.set_float32_matmul_precision("medium")
        assert products.allow_tf32
        assert not tp.backends.mkldnn.matmul.allow_tf32
    finally:
        products.allow_tf32 = False
    assert tp.get_float32_matmul_precision() == "highest"
