"""The list of methods for type checkers says what the registry says."""

import ast
import copy
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import op_registry

SOURCE = Path(tp.core.__file__).with_name("tensor") / "methods.py"


def listed_as(module: str) -> str:
    """What the list calls a module: by its stem, and otherwise where a method is called like it."""
    stem = module.rpartition(".")[2]
    return f"{stem}_ops" if stem in listed() else stem


def expected() -> dict[str, str]:
    """Each method that core adds, and the function whose signature it has."""
    found = {}
    for op in op_registry.all_ops():
        if op.owner != "tensorplug":
            continue
        family = listed_as(op.function.__module__)
        names = (op.method, *op.aliases) if op.method is not None else ()
        inplace = tuple(f"{n}_" for n in (op.inplace[:-1], *op.aliases)) if op.inplace else ()
        for name in (*names, *inplace):
            if getattr(tp.Tensor, name).__module__ != "tensorplug.core.tensor.tensor":
                found[name] = f"{family}.{op.function.__name__}"
    for name, function in vars(tp.Tensor).items():
        module = getattr(function, "__module__", None) or ""
        op = getattr(function, "op", None)  # of another spelling, too, see defined_by
        handwritten_method = op is None or (name not in found and function is not op.call)
        if handwritten_method and module.startswith(
            ("tensorplug.core.ops.", "tensorplug.core.tensor.resizing")
        ):
            found[name] = f"{listed_as(module)}.{function.__name__}"
    return {name: found[name] for name in found if name not in handwritten()}


def handwritten() -> set[str]:
    tree = ast.parse(SOURCE.with_name("tensor.py").read_text("utf-8"))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor").body
    names = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    for node in body:
        if isinstance(node, ast.Assign):
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return names


def listed() -> dict[str, str]:
    tree = ast.parse(SOURCE.read_text("utf-8"))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef)).body
    ops = next(n for n in body if isinstance(n, ast.If)).body
    return {n.targets[0].id: ast.unparse(n.value) for n in ops}


@pytest.mark.slow
def test_the_list_and_the_registry_agree():
    known, wanted = listed(), expected()
    missing = [
        f"        {name} = {wanted[name]}" for name in wanted if known.get(name) != wanted[name]
    ]
    extra = [name for name in known if name not in wanted]
    assert not missing, "add to core/tensor/methods.py, in order:\n" + "\n".join(sorted(missing))
    assert not extra, f"take out of core/tensor/methods.py: {', '.join(extra)}"


def test_the_list_is_in_order():
    assert list(listed()) == sorted(listed())


def test_the_list_costs_nothing_at_run_time():
    assert not listed().keys() & vars(tp.core.tensor.methods.TensorMethods).keys()


def test_tensor_is_four_classes():
    names = [cls.__name__ for cls in tp.Tensor.__mro__]
    assert names == ["Tensor", "TensorMethods", "Operators", "TensorBase", "object"]


def test_copies_share_what_the_originals_share() -> None:
    x = tp.arange(6.0)
    base, row, transposed, storage = copy.deepcopy([x, x[2:4], x.view(2, 3).T, x.untyped_storage()])
    base.add_(1)
    assert row.tolist() == [3.0, 4.0]
    assert row.storage_offset() == 2
    assert transposed.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert storage.data_ptr() == base.data_ptr()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    parameter = tp.nn.Parameter(tp.ones(2))
    again, shown = copy.deepcopy([parameter, parameter.detach()])
    assert again.data_ptr() != shown.data_ptr()


def test_sizes_hold_ints() -> None:
    assert tp.Size([tp.tensor(1), 2]) == (1, 2)
    assert [type(size) for size in tp.Size([tp.tensor(1), True])] == [int, int]
    for wrong in ([1, 2.0], ["a"], tp.ones(2)):
        with pytest.raises(TypeError):
            tp.Size(wrong)


def test_containers_of_python() -> None:
    x = tp.arange(3)
    assert reversed(x).tolist() == [2, 1, 0]
    assert reversed(tp.tensor(3)).tolist() == 3
    assert x.new(size=(2, 2)).shape == (2, 2)
    assert "meta" in f"{tp.empty((), device='meta')}"
    with pytest.raises(TypeError):
        del x[0]


@pytest.mark.parametrize("given", ["a", None, [1], {}])
def test_functions_of_elements_have_to_return_numbers(given):
    x = tp.arange(3)
    for call in (
        lambda: x.apply_(lambda a: given),
        lambda: x.map_(x, lambda a, b: given),
        lambda: x.map2_(x, x, lambda a, b, c: given),
    ):
        with pytest.raises(TypeError, match="cannot be interpreted as"):
            call()
    assert x.tolist() == [0, 1, 2]
    assert x.apply_(lambda a: a * 1.5).tolist() == [0, 1, 3]


def test_functions_of_elements_are_not_differentiated():
    x = tp.ones(2, requires_grad=True) * 1
    for name, others in (("apply_", 0), ("map_", 1), ("map2_", 2)):
        with pytest.raises(
            RuntimeError, match=f"Can't call {name}\\(\\) on Variable that requires grad"
        ):
            getattr(x, name)(*[x] * others, lambda *_: 0.0)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("make", [tp.Tensor, tp.FloatTensor, tp.zeros(1).new])
def test_older_constructors_share_memory_and_gradients(make):
    x = tp.ones(2)
    made = make(x)
    made[0] = 5.0
    assert x.tolist() == [5.0, 1.0]
    assert not made.requires_grad
    x = tp.ones(2, requires_grad=True)
    (make(x) * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("dtype", [tp.float64, tp.int32, tp.bool, tp.float16])
def test_new_takes_tensors_of_its_dtype_alone(dtype):
    with pytest.raises(
        TypeError, match=f"new.*expected a tensor of tensorplug.float32, got {dtype}"
    ):
        tp.zeros(1).new(tp.zeros(2, dtype=dtype))


def test_cdata_tells_tensors_apart():
    x = tp.ones(3, requires_grad=True)
    again = x
    assert x._cdata == again._cdata == x.retain_grad.__self__._cdata
    others = [x.detach(), x.view(3), x.clone(), tp.ones(3)]
    assert len({x._cdata, *[other._cdata for other in others]}) == 5
