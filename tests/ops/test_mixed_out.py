"""``out=`` of every dtype: what torch converts is converted, what it refuses is refused."""

import itertools
import warnings

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference of these tests")

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.lu is deprecated")  # as the reference

OUT = (
    "bool",
    "uint8",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
VIEWS = {
    "alias_copy": (),
    "as_strided_copy": ((2, 2), (1, 2)),
    "diagonal_copy": (),
    "expand_copy": ((2, 3, 3),),
    "permute_copy": ((1, 0),),
    "select_copy": (0, 1),
    "slice_copy": (0, 1, 3),
    "squeeze_copy": (),
    "t_copy": (),
    "transpose_copy": (0, 1),
    "unfold_copy": (0, 2, 1),
    "unsqueeze_copy": (0,),
    "view_copy": ((9,),),
}
SEVERAL = {
    "split_copy": (2,),
    "split_with_sizes_copy": ((1, 2),),
    "unbind_copy": (),
}
ACTIVATIONS = ("gelu", "hardshrink", "logsigmoid", "softplus", "softshrink")
#: By name, the arguments after the first; "x" is the first once more.
OTHERS = {
    "diff": (),
    "diff twice": (2,),
    "diff not at all": (0,),
    "lu": (),
    "linalg.lstsq": ("x",),
    "addbmm": ("3d", "3d"),
    "addmm": ("x", "x"),
    "matmul": ("x",),
    "nn.functional.linear": ("x",),
    **{f"nn.functional.{name}": () for name in ACTIVATIONS},
}  # fmt: skip


def function(L, name):
    for part in name.split()[0].split("."):
        # Some activations have out= only under their ATen name.
        L = getattr(L, part, None) or getattr(L, "_" + part)
    return L


def outcome(L, name, given, dtype, position):
    x = L.tensor(np.random.default_rng(3).normal(size=(3, 3)), dtype=L.float32)
    known = {"x": x, "3d": L.stack([x, x])}
    args = [known.get(value, value) if isinstance(value, str) else value for value in given]
    plain = function(L, name)(x, *args)
    results = plain if isinstance(plain, (tuple, list)) else (plain,)
    if position >= len(results):
        return None
    targets = [
        L.zeros(tuple(r.shape), dtype=getattr(L, dtype) if i == position else r.dtype)
        for i, r in enumerate(results)
    ]
    before = [target.tolist() for target in targets]
    out = targets if len(results) > 1 else targets[0]
    try:
        function(L, name)(x, *args, out=tuple(out) if isinstance(out, list) else out)
    except RuntimeError:
        assert L is torch or [target.tolist() for target in targets] == before
        return "refused"
    return [np.asarray(target.to(L.complex128).tolist()) for target in targets]


@pytest.mark.parametrize("dtype", OUT)
@pytest.mark.parametrize("name", [*VIEWS, *SEVERAL, *OTHERS])
def test_out_of_every_dtype(name, dtype):
    given = {**VIEWS, **SEVERAL, **OTHERS}[name]
    for position in itertools.count():
        expected = outcome(torch, name, given, dtype, position)
        if expected is None:
            break
        found = outcome(tp, name, given, dtype, position)
        if expected == "refused" or isinstance(found, str):
            assert found == expected, position
        else:
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def resized(L, name, given):
    x = L.arange(9.0).reshape(3, 3)
    plain = function(L, name)(x, *given)
    several = isinstance(plain, (tuple, list))
    targets = [L.ones(7) for _ in (plain if several else [plain])]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(L, name)(x, *given, out=tuple(targets) if several else targets[0])
    said = sum(["was resized" in str(warning.message) for warning in caught])
    return said > 0, [target.tolist() for target in targets]


# torch's split_copy does not resize.
@pytest.mark.parametrize(
    "name", [*VIEWS, "split_with_sizes_copy", "unbind_copy", "nn.functional.normalize"]
)
def test_a_tensor_that_is_resized_warns(name):
    found, expected = [
        resized(L, name, {**VIEWS, **SEVERAL}.get(name, (1.0, 0))) for L in (tp, torch)
    ]
    assert found[0] == expected[0]
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
