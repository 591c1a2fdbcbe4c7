"""What a file keeps of a tensor beside its numbers: its class; and memory that is shown as two types."""

import copy
import io
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

import tensorplug as tp
from tensorplug.serialization.names import Global


class Measured(tp.Tensor):
    """A tensor of somebody's own."""


def written(obj, is_zip):
    file = io.BytesIO()
    tp.save(obj, file, _use_new_zipfile_serialization=is_zip)
    file.seek(0)
    return file


FORMATS = pytest.mark.parametrize("is_zip", [True, False])


@FORMATS
@pytest.mark.parametrize("attributes", [{}, {"unit": "m"}])
@pytest.mark.parametrize("dtype", [tp.float32, tp.int64, tp.uint16, tp.complex64])
def test_a_class_is_kept(dtype, attributes, is_zip):
    tensor = tp.arange(4).to(dtype).as_subclass(Measured)
    vars(tensor).update(attributes)
    file = written({"a": tensor, "b": [tensor]}, is_zip)
    with tp.serialization.safe_globals([Measured]):
        read = tp.load(file)
    assert type(read["a"]) is Measured
    assert read["a"].dtype is dtype
    assert vars(read["a"]) == attributes
    assert read["a"].tolist() == tensor.tolist()
    assert read["b"][0] is read["a"]


class Slotted(tp.Tensor):
    __slots__ = ("scale", "unit")


class Twice(Slotted):
    __slots__ = ("__hidden", "other")

    def hide(self, value):
        self.__hidden = value

    def hidden(self):
        return self.__hidden


class SlottedParameter(tp.nn.Parameter):
    __slots__ = ("scale", "unit")


class SlottedBuffer(tp.nn.Buffer):
    __slots__ = ("scale", "unit")


class OwnState(tp.Tensor):
    def __getstate__(self):
        return "mark", self.scale, self.__dict__

    def __setstate__(self, state):
        mark, self.scale, attributes = state
        assert mark == "mark"
        self.__dict__.update(attributes, is_restored=True)


def saved_and_loaded(is_zip):
    def round_trip(tensor):
        with tp.serialization.safe_globals([Slotted, Twice, OwnState]):
            return tp.load(written(tensor, is_zip))

    return round_trip


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda tensor: pickle.loads(pickle.dumps(tensor)),
    "forking pickler": lambda tensor: pickle.loads(ForkingPickler.dumps(tensor)),
    "file": saved_and_loaded(True),
    "old file": saved_and_loaded(False),
}
CLASSES = [Slotted, Twice, SlottedParameter, SlottedBuffer, OwnState]


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_slots_and_states_of_classes_are_kept(cls, way):
    if "file" in way and cls in (SlottedParameter, SlottedBuffer):
        pytest.skip("files keep no classes of parameters and buffers")
    tensor = tp.arange(3.0)
    tensor = tensor.as_subclass(cls) if cls in (Slotted, Twice, OwnState) else cls(tensor)
    tensor.scale = tp.full((2,), 5.0)
    tensor.note = "a"
    if cls is Twice:
        tensor.hide(7)
    copied = COPIES[way](tensor)
    assert type(copied) is cls
    assert copied.tolist() == [0, 1, 2]
    assert copied.scale.tolist() == [5, 5]
    assert (copied.scale is tensor.scale) == (way == "copy")
    assert copied.note == "a"
    assert not hasattr(copied, "unit")
    assert cls is not Twice or copied.hidden() == 7
    if cls is OwnState and way != "deepcopy":  # as in torch
        assert copied.is_restored


@FORMATS
def test_a_file_sets_no_other_slots(is_zip):
    tensor = tp.arange(3.0).as_subclass(Slotted)
    tensor.scale = 2
    honest = tensor.__getstate__()
    tensor.__class__.__getstate__ = lambda self: (honest[0], {**honest[1], "_shape": (9,), "x": 1})
    try:
        file = written(tensor, is_zip)
    finally:
        del Slotted.__getstate__
    with tp.serialization.safe_globals([Slotted]):
        read = tp.load(file)
    assert read.shape == (3,)
    assert read.scale == 2
    assert not hasattr(read, "x")


@pytest.mark.parametrize("strides", [(3, 1), (1, 2), (0, 4)])
def test_pickled_tensors_without_memory_keep_their_strides(strides):
    made = tp.empty_strided((2, 3), strides, device="meta")
    assert pickle.loads(pickle.dumps(made)).stride() == strides


@FORMATS
def test_a_class_that_is_not_trusted_is_refused(is_zip):
    file = written(tp.ones(2).as_subclass(Measured), is_zip)
    with pytest.raises(pickle.UnpicklingError, match="Measured, which is not on the list"):
        tp.load(file)


@FORMATS
def test_parameters_and_buffers_are_read_as_before(is_zip):
    parameter = tp.nn.Parameter(tp.ones(2))
    parameter.note = "a"
    read = tp.load(written([parameter, tp.nn.Buffer(tp.ones(2))], is_zip))
    assert type(read[0]) is tp.nn.Parameter
    assert read[0].note == "a"
    assert read[1].tolist() == [1, 1]


PAIRS = {
    "a part of complex numbers": lambda x: (x, x.imag),
    "parts before the whole": lambda x: (x.real, x),
    "a view of other bits": lambda x: (x.real, x.real.contiguous().view(tp.int32), x),
    "a view of the same bits": lambda x: (x.abs(), x.abs(), x, tp.view_as_real(x)),
    "integers": lambda x: [y := tp.arange(4), y.view(tp.uint8)],
    "storages": lambda x: [
        y := tp.ones(4),
        tp.TypedStorage(wrap_storage=y.untyped_storage(), dtype=tp.uint8),
    ],
}


@FORMATS
@pytest.mark.parametrize("pair", PAIRS)
def test_memory_of_two_types_is_refused(pair, is_zip):
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        written(PAIRS[pair](tp.randn(4, dtype=tp.complex64)), is_zip)


@FORMATS
def test_memory_of_one_type_is_shared(is_zip):
    x = tp.randn(4, dtype=tp.complex64)
    read = tp.load(written([x, x[1:], x.untyped_storage(), x.real.clone()], is_zip))
    read[0].zero_()
    assert read[1].abs().sum() == 0
    assert read[3].abs().sum() > 0
    tp.load(written([tp.ones(0), tp.ones(0).view(tp.int32)], is_zip))  # nothing is shown


@FORMATS
@pytest.mark.parametrize("persistent", [True, False])
def test_parameters_and_buffers_of_such_a_class(persistent, is_zip):
    module = tp.nn.Module()
    module.weight = tp.nn.Parameter(tp.ones(2).as_subclass(Measured))
    module.mean = tp.nn.Buffer(tp.zeros(2).as_subclass(Measured), persistent=persistent)
    for table in (module._parameters, module._buffers):
        (tensor,) = table.values()
        assert type(tensor) is Measured
    assert isinstance(module.mean, tp.nn.Buffer)
    assert not isinstance(module.mean, tp.nn.Parameter)
    assert sorted(module.state_dict()) == ["mean", "weight"][not persistent :]
    with tp.serialization.safe_globals([Measured]):
        read = tp.load(written(dict(module.state_dict()), is_zip))
    assert {type(tensor) for tensor in read.values()} == {Measured}


class Old:
    """A tensor as torch before 0.4 wrote it."""

    def __reduce__(self):
        storage = tp.arange(12.0).untyped_storage()
        typed = tp.TypedStorage(wrap_storage=storage, dtype=tp.float32)
        return Global("torch._utils", "_rebuild_tensor"), (typed, 2, (2, 3), (4, 1))


@FORMATS
def test_tensors_of_old_files_are_read(is_zip):
    read = tp.load(written(Old(), is_zip))
    assert read.tolist() == [[2, 3, 4], [6, 7, 8]]
    assert (read.storage_offset(), read.stride()) == (2, (4, 1))


def saved(values):
    file = io.BytesIO()
    tp.save(values, file)
    file.seek(0)
    return tp.load(file)


@pytest.mark.parametrize("stored", [saved, lambda values: pickle.loads(pickle.dumps(values))])
@pytest.mark.parametrize("shown", [None, "int8", "int16", "int64", "float16", "complex32"])
@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "complex32", "complex128", "int64", "uint8", "bool"]
)
def test_views_share_memory_again_whatever_dtype_made_it(dtype, shown, stored):
    made = tp.arange(0.0, 32.0).to(getattr(tp, dtype))
    whole = made if shown is None else made.view(getattr(tp, shown))
    values = {"whole": whole, "odd": whole[1::2], "turned": whole[:2].view(2, 1).t()}
    found = stored(values)
    for name, value in values.items():
        assert found[name].tolist() == value.tolist()
        assert found[name].stride() == value.stride()
    found["odd"].zero_()
    assert found["whole"][1] == 0
    assert found["whole"].data_ptr() + whole.element_size() == found["odd"].data_ptr()


class Doubled(tp.Tensor):
    """A tensor without memory of its own: twice another one."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        return tp.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype,
            device=inner.device, requires_grad=requires_grad,
        )  # fmt: skip

    def __init__(self, inner, requires_grad=False):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is tp.ops.aten.detach.default:
            return cls(args[0].inner)
        return func(*[a.inner * 2 if isinstance(a, cls) else a for a in args], **(kwargs or {}))


def trusted(file):
    with tp.serialization.safe_globals([Doubled]):
        return tp.load(file)


WAYS = {
    "pickle": lambda obj: pickle.loads(pickle.dumps(obj)),
    "to a process": lambda obj: pickle.loads(bytes(ForkingPickler.dumps(obj))),
    "zip": lambda obj: trusted(written(obj, True)),
    "legacy": lambda obj: trusted(written(obj, False)),
    "copy": copy.copy,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [tp.float32, tp.int64, tp.bool])
@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.t(), lambda x: x[1:, 1:], lambda x: x[0, 0], lambda x: x[:0]]
)
def test_tensors_without_memory_of_their_own_are_kept(view, dtype, way):
    tensor = Doubled(view(tp.arange(6).view(2, 3).to(dtype)), dtype.is_floating_point)
    tensor.unit = "m"
    read = WAYS[way](tensor)
    assert type(read) is Doubled
    assert read.unit == "m"
    for name in ("shape", "dtype", "device", "requires_grad"):
        assert getattr(read, name) == getattr(tensor, name)
    assert (read.stride(), read.storage_offset()) == (tensor.stride(), tensor.storage_offset())
    assert read.inner.tolist() == tensor.inner.tolist()
    assert (read + 1).tolist() == (tensor + 1).tolist()


@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_parameter_without_memory_of_its_own_is_kept(requires_grad):
    module = tp.nn.Module()
    module.weight = tp.nn.Parameter(Doubled(tp.ones(2)), requires_grad)
    read = trusted(written({"weight": module.weight}, True))["weight"]
    assert isinstance(read, tp.nn.Parameter)
    assert type(read) is Doubled
    assert read.requires_grad is requires_grad
    assert read.inner.tolist() == [1.0, 1.0]


def test_a_class_without_memory_has_to_be_trusted():
    with pytest.raises(pickle.UnpicklingError, match="Doubled"):
        tp.load(written(Doubled(tp.ones(2)), True))


class Halves(tp.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = tp.nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)

    def half(self, x):
        return self.linear(x) / 2

    def __repr__(self):
        raise AssertionError("what is being read may be incomplete")


@pytest.mark.parametrize("owner", ["itself", "child", "another"])
@pytest.mark.parametrize("zipped", [True, False])
def test_modules_whose_methods_were_replaced(owner, zipped):
    module = Halves()
    module.beside = Halves()
    module.forward = {
        "itself": module.half, "child": module.linear.forward, "another": module.beside.half
    }[owner]  # fmt: skip
    read = tp.load(written(module, zipped), weights_only=False)
    x = tp.ones(2)
    assert read(x).tolist() == module(x).tolist()
    kept = {"itself": read, "child": read.linear, "another": read.beside}[owner]
    assert read.forward.__self__ is kept


class Names:
    """Pickled as an attribute of an object, whichever the file names."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name

    def __reduce__(self):
        return getattr, (self.owner, self.name)


@pytest.mark.parametrize("name", ["training", "__class__", "__dict__", "_parameters", "nothing"])
def test_only_methods_of_objects_are_found(name):
    file = written([module := Halves(), Names(module, name)], True)
    with pytest.raises(pickle.UnpicklingError, match="the attribute"):
        tp.load(file, weights_only=False)
    file = written([module, Names(module.half, "__func__")], True)
    with pytest.raises(pickle.UnpicklingError):
        tp.load(file, weights_only=False)
