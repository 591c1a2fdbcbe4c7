"""Functions in C: each stands in a table, those said to be pure are, and none does more where C calls it.

All callables of all modules of Python and NumPy that are written in C are gone through. Those that programs
may call are called twice with drawn arguments: the interpreter's audit hooks tell of files, processes and
sockets, and between both calls the world changes. The other way round, programs hand a function that does
something to whatever calls it, in every spelling.
"""

import array
import codecs
import csv
import functools
import importlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import pickle
import pprint
import random
import sys
import time
import types
import weakref

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.graph import c_modules
from tensorplug.graph.effects import does_more_when_called, may_do_more

TABLES = (c_modules.IMPURE_MODULES, c_modules.PURE_MODULES, c_modules.INTERNAL_MODULES)
KINDS = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
    types.WrapperDescriptorType, types.MethodWrapperType,
)  # fmt: skip
#: Of NumPy public names alone: others crash with arguments that are not theirs.
OF_NUMPY = ("numpy", "numpy.linalg", "numpy.fft", "numpy.char", "numpy.strings")
#: What these run is seen by itself, or is numbered by addresses.
LEFT_OUT = ("exec", "eval", "__del__", "__hash__")
DRAWS = 8


def modules_in_c():
    """Return the names of Python's modules that are written in C, but for those that test it."""
    names = set(sys.builtin_module_names)
    for name in ("_json", "_struct", "math"):
        origin = importlib.util.find_spec(name).origin or ""
        if origin.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            names |= {
                path.name.partition(".")[0]
                for path in pathlib.Path(origin).parent.iterdir()
                if path.name.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))
            }
    own = {name for name in names if name in sys.stdlib_module_names}
    return sorted(name for name in own if "test" not in name and not name.startswith("xx"))


@pytest.mark.parametrize("name", modules_in_c())
def test_each_module_stands_in_one_table(name):
    assert [name in table for table in TABLES].count(True) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of modules that Python will drop
def test_each_module_of_another_table_is_refused():
    refused = 0
    for name in modules_in_c():
        if name in c_modules.PURE_MODULES:
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for found in vars(module).values():
            if isinstance(found, types.BuiltinFunctionType) and found.__self__ is module:
                alone = id(found) in c_modules.PURE
                elsewhere = found.__module__ in c_modules.PURE_MODULES
                assert may_do_more(found) or alone or elsewhere, found
                refused += 1
    assert refused > 400


# --- those said to be pure --------------------------------------------------------------------------


class Base:
    pass


class Shared:
    pass


@functools.lru_cache
def cached(number):
    return number


shared = Shared()
kept = []
events = []
#: Events that tell of nothing but that Python works.
QUIET = {
    "object.__getattr__", "object.__setattr__", "object.__delattr__", "code.__new__", "compile", "exec",
    "import",
    "function.__new__", "array.__new__", "pickle.find_class",
}  # fmt: skip


class Audit:
    """What the interpreter tells of what runs, while it is asked."""

    asked = False

    def __call__(self, event, arguments):
        if self.asked and event not in QUIET:
            events.append(event)


@pytest.fixture(scope="module")
def audit():
    made = Audit()
    sys.addaudithook(made)  # for ever
    return made


def disturb(file):
    """Change what a function that is not pure may look at."""

    class New(Base):
        pass

    kept.extend([New, weakref.ref(shared, lambda gone: None), [None] * 7])
    cached(len(kept))
    file.write_text(str(len(kept)))


def drawn(file):
    """Return what arguments are drawn from, made anew."""

    class Own(Base):
        number = 1

    return [
        0, 1, 3, 2.5, True, 1j, None, "ascii", b"ab", [2, 1], (1, 2), {"a": 1}, {1, 2}, len, Own, Own(),
        Base, shared,
        bytearray(b"ab"), iter([1, 2]), io.BytesIO(b"a\n"), int, slice(0, 1), range(2), cached, str(file),
        lambda *given: 1,
    ]  # fmt: skip


def callables_of(module):
    """Yield the names of what a module has in C, and a class with the name of a method, or a function."""
    for name in dir(module):
        value = getattr(module, name, None)
        if module.__name__ in OF_NUMPY and name.startswith("_"):
            continue
        if isinstance(value, KINDS):
            yield name, None, value
        elif isinstance(value, type) and not any(
            isinstance(item, types.FunctionType) for item in vars(value).values()
        ):
            yield name, None, value
            for method in vars(value):
                yield f"{name}.{method}", value, method


def shown(value, depth=0):
    if isinstance(value, (list, tuple)) and depth < 3:
        return [shown(item, depth + 1) for item in value]
    if isinstance(value, dict) and depth < 3:
        return [(shown(key, 3), shown(item, depth + 1)) for key, item in value.items()]
    plain = isinstance(value, (int, float, complex, str, bytes, bytearray, type(None)))
    return repr(value) if plain and " at 0x" not in repr(value) else type(value).__name__


def called(owner, what, seed, file, audit):
    """Return what a call with drawn arguments gives, and what was told of it; None if it is refused."""
    generator = random.Random(seed)
    pool = drawn(file)
    arguments = generator.choices(pool, k=generator.choice([0, 1, 1, 1, 2, 2, 3]))
    if owner is not None:
        fitting = [value for value in pool if isinstance(value, owner)]
        if not fitting:
            return None
        what = getattr(generator.choice(fitting), what, None)
    if isinstance(what, KINDS):
        if may_do_more(what):
            return None
    elif not isinstance(what, type) or does_more_when_called(what):
        return None
    events.clear()
    audit.asked = True
    try:
        result = shown(what(*arguments))
    except Exception as error:
        result = type(error).__name__
    finally:
        audit.asked = False
    return result, sorted(set(events))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [*sorted(c_modules.PURE_MODULES.intersection(modules_in_c())), *OF_NUMPY]
)
def test_what_programs_may_call_does_nothing_besides(name, audit, tmp_path, capfd):
    file = tmp_path / "file"
    disturb(file)
    module = importlib.import_module(name)
    for label, owner, what in callables_of(module):
        if any(word in label for word in LEFT_OUT):
            continue
        for seed in range(DRAWS):
            first = called(owner, what, seed, file, audit)
            disturb(file)
            again = called(owner, what, seed, file, audit)
            if first is None or again is None:
                continue
            assert again[0] == first[0], (label, seed)
            assert not (first[1] and again[1]), (
                label,
                seed,
                again,
            )  # the first call may import something
    assert capfd.readouterr().out == ""
    kept.clear()


# --- what is handed on ------------------------------------------------------------------------------

#: How a function gets to another one, in C, that calls it.
WAYS = [
    "list(map({f}, [1]))", "list(filter({f}, [1]))", "sorted([1], key={f})", "max([1], key={f})",
    "[1].sort(key={f})", "functools.reduce({f}, [1, 2])", "functools.partial({f}, 1)()",
    "list(iter({f}, None))",
    "collections.defaultdict({f})[1]", "operator.methodcaller('__call__', 1)({f})", "{f}.__call__(1)",
    "list(itertools.accumulate([1, 2], {f}))", "list(itertools.starmap({f}, [(1,)]))",
    "list(itertools.takewhile({f}, [1]))", "list(itertools.dropwhile({f}, [1]))",
    "list(itertools.filterfalse({f}, [1]))", "list(itertools.groupby([1], {f}))",
    "re.sub('a', lambda m: {f}() or '', 'a')",
    "contextvars.copy_context().run({f}, 1)", "np.frompyfunc({f}, 1, 1)(1)",
    "np.vectorize({f})(np.ones(1))",
    "call({f})", "call(*[{f}])", "list(map(call, [{f}]))", "use(f={f})",
    "(lambda g: list(map(g, [1])))({f})",
    "[list(map(g, [1])) for g in [{f}]]", "type('T', (), {{'go': {f}}}).go(1)", "{f}(1)", "{f}(*[1])",
]  # fmt: skip
#: How a program comes by a function.
SPELLINGS = {
    "print": "print", "alias": "alias", "attribute": "held.alias", "nested": "held.inner.alias",
    "item": "listed[0]",
    "value": "table['alias']", "of a module": "builtins.print", "default": "given", "local": "local",
    "free": "free",
    "of a class": "Held.of_class", "partial": "part",
}  # fmt: skip
TEXT = """
import builtins, collections, contextvars, functools, itertools, operator, re
import numpy as np
class Held:
    of_class = print
alias = print
held, held.inner = Held(), Held()
held.alias = held.inner.alias = print
listed, table, part = [print], {{'alias': print}}, functools.partial(print, 1)
def call(function):
    return list(map(function, [1]))
def use(f):
    return sorted([1], key=f)
def make(free):
    def program(x, given=print):
        {line}
        return x * 2
    return program
program = make(print)
"""


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_handed_on_happens_at_each_call(way, spelling, capsys):
    held = {"__name__": "programs"}
    line = way.format(f=SPELLINGS[spelling])
    if spelling == "local":
        line = f"local = print; {line}"
    exec(TEXT.format(line=line), held)
    compiled = tp.compile(held["program"])
    for _ in range(5):
        assert compiled(tp.ones(1)).item() == 2
        assert capsys.readouterr().out


class Opened(io.FileIO):
    pass


def subclasses(x):
    return x * len(Base.__subclasses__())


def references(x):
    return x * weakref.getweakrefcount(shared)


def hits(x):
    cached(1)
    return x * cached.cache_info().hits


def from_file(x):
    return x * float(np.fromfile("numbers", sep=" ")[0])


def opened(x):
    with Opened("numbers") as file:
        return x * float(file.read())


def random_lazily(x):
    return x * np.random.rand()  # noqa: NPY002


def of_a_generator(x):
    return x * np.random.default_rng().random()


def instant(x):
    return x * functools.partial(time.monotonic_ns)()


@pytest.mark.parametrize(
    "program",
    [subclasses, references, hits, from_file, opened, random_lazily, of_a_generator, instant],
    ids=lambda program: program.__name__,
)
def test_is_read_at_each_call(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compiled = tp.compile(program)
    found = []
    for number in range(6):
        (tmp_path / "numbers").write_text(str(number))
        found.append(compiled(tp.ones(1, dtype=tp.float64)).item())
        disturb(tmp_path / "file")
    assert len(set(found)) == 6
    kept.clear()


def test_what_is_only_called_there_may_stand_in_a_branch_that_is_not_taken():
    def program(x, verbose=False, show=print):
        if verbose:
            print(time.time(), time.monotonic(), id(x))
        if verbose:
            show(x)
        return x * 2

    compiled = tp.compile(program)
    for _ in range(3):
        compiled(tp.ones(1))
    assert compiled.explain().calls == 2


#: Ways to write to a file, most of them from C.
WRITES = {
    "csv": lambda file: csv.writer(file).writerow([1]),
    "json": lambda file: json.dump([1], file),
    "pickle": lambda file: pickle.dump(1, file.buffer),
    "array": lambda file: array.array("b", b"a").tofile(file.buffer),
    "codec": lambda file: codecs.getwriter("utf-8")(file.buffer).write("a"),
    "print": lambda file: print(1, file=file),
    "pprint": lambda file: pprint.pprint(1, file),
    "writelines": lambda file: file.writelines(["a"]),
}


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("given", [False, True])
def test_a_file_is_written_at_each_call(way, given, tmp_path):
    write = WRITES[way]
    with (tmp_path / "file").open("w") as file:

        def program(x, held=None):
            write(held or file)
            return x * 2

        compiled = tp.compile(program)
        before = 0
        for _ in range(6):
            compiled(tp.ones(1), *[file] * given)
            file.flush()
            size = (tmp_path / "file").stat().st_size
            assert size > before
            before = size


def test_what_is_reached_by_a_name_that_is_not_read_counts_by_one_that_is():
    held = types.SimpleNamespace(unread=iter(range(100)), calls=[print])
    held.read = types.SimpleNamespace(numbers=held.unread)
    program = tp.compile(lambda x: x * next(held.read.numbers))
    assert [program(tp.ones(1)).item() for _ in range(6)] == [0, 1, 2, 3, 4, 5]
