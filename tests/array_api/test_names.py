"""Every name of the standard is there, with its parameters."""

import ast
import inspect
from inspect import Parameter
from pathlib import Path

import pytest

import tensorplug as tp
import tensorplug.array_api as xp


def standard():
    """The standard's names by section."""
    sections = {}
    for line in Path(__file__).with_name("standard.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            names = sections[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            names.append(line)
    return sections


STANDARD = standard()
HOLDERS = {
    "functions": xp,
    "linalg": xp.linalg,
    "fft": xp.fft,
    "info": xp.__array_namespace_info__(),
    "methods": xp.Array,
}
SIGNATURES = [
    pytest.param(section, line, id=f"{section}-{line.partition('(')[0]}")
    for section in HOLDERS
    for line in STANDARD[section]
]


def parameters(signature):
    """The parameters of a line of the list."""
    args = ast.parse(f"def function({signature}: pass").body[0].args
    by_place = [(a.arg, Parameter.POSITIONAL_ONLY) for a in args.posonlyargs]
    by_place += [(a.arg, Parameter.POSITIONAL_OR_KEYWORD) for a in args.args]
    defaults = [Parameter.empty] * (len(by_place) - len(args.defaults))
    defaults += map(ast.literal_eval, args.defaults)
    found = [Parameter(n, k, default=d) for (n, k), d in zip(by_place, defaults, strict=True)]
    if args.vararg:
        found.append(Parameter(args.vararg.arg, Parameter.VAR_POSITIONAL))
    for a, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        value = Parameter.empty if default is None else ast.literal_eval(default)
        found.append(Parameter(a.arg, Parameter.KEYWORD_ONLY, default=value))
    return found


def as_call(found, wanted, inherited):
    """Whether what `wanted` allows to be passed can be passed to `found`."""
    by_name = {p.name: p for p in found}
    for place, p in enumerate(wanted):
        if p.kind is Parameter.KEYWORD_ONLY:
            assert p.name in by_name, p.name
            assert by_name[p.name].kind in (p.kind, Parameter.POSITIONAL_OR_KEYWORD)
            assert by_name[p.name].default == p.default or p.default is Parameter.empty
        elif p.kind is Parameter.VAR_POSITIONAL:
            assert found[place].kind is p.kind
        else:
            assert found[place].kind in (p.kind, Parameter.POSITIONAL_OR_KEYWORD)
            if p.kind is Parameter.POSITIONAL_OR_KEYWORD:
                assert found[place].name == p.name
            assert inherited or found[place].default == p.default or p.name in ("x1", "x2")


@pytest.mark.parametrize(("section", "line"), SIGNATURES)
def test_function(section, line):
    name, _, rest = line.partition("(")
    function = getattr(HOLDERS[section], name)
    found = list(inspect.signature(function).parameters.values())
    as_call(found, parameters(rest), section == "methods")


@pytest.mark.parametrize("name", STANDARD["attributes"])
def test_attribute(name):
    assert hasattr(xp.ones((1, 1)), name)


@pytest.mark.parametrize("name", STANDARD["constants"])
def test_constant(name):
    value = getattr(xp, name)
    assert value is None if name == "newaxis" else isinstance(value, float)


@pytest.mark.parametrize("name", STANDARD["dtypes"])
def test_dtype(name):
    assert getattr(xp, name) is xp.empty(0, dtype=getattr(tp, name)).dtype


def test_namespace_of_a_tensor():
    assert tp.ones(1).__array_namespace__() is xp
    assert tp.ones(1).__array_namespace__(api_version="2024.12") is xp
    assert tp.nn.Parameter(tp.ones(1)).__array_namespace__() is xp
    with pytest.raises(ValueError, match="supported are 2021"):
        tp.ones(1).__array_namespace__(api_version="1999.12")


def test_info():
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {
        "real floating": tp.float32,
        "complex floating": tp.complex64,
        "integral": tp.int64,
        "indexing": tp.int64,
    }
    assert sorted(info.dtypes()) == sorted(STANDARD["dtypes"])
    assert list(info.dtypes(kind="complex floating")) == ["complex64", "complex128"]
    assert list(info.dtypes(kind=("bool", "unsigned integer")))[:2] == ["bool", "uint8"]
    assert info.capabilities()["data-dependent shapes"] is True
    with pytest.raises(ValueError, match="unknown kind 'float'"):
        info.dtypes(kind="float")


def test_default_dtypes_follow_the_default_dtype():
    tp.set_default_dtype(tp.float64)
    try:
        found = xp.__array_namespace_info__().default_dtypes()
        assert found["real floating"] is tp.float64
        assert found["complex floating"] is tp.complex128
        assert xp.linspace(0, 1, 3).dtype is tp.float64
    finally:
        tp.set_default_dtype(tp.float32)
