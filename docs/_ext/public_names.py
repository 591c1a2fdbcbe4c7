"""The public names of tensorplug, sorted into the pages of the API reference.

A name belongs to a page by the namespace in which users find it and, where a namespace is large, by the
module that defines it. `pages` has no other source than the installed package: a name that is added
appears, and one that no page takes is an error.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorplug as tp

#: Constants, which carry no docstrings of their own.
CONSTANTS = {
    "e": "Euler's number.",
    "inf": "Infinity.",
    "nan": "Not a number.",
    "newaxis": "None: an index that adds a dimension.",
    "pi": "The ratio of a circle's circumference to its diameter.",
    "plugin.FusedCall": "The type of what a fuser compiles: from a list of arrays to new ones, or None.",
    "ops": "All ops by their registered names, those of extensions too: ``tp.ops.package.name``.",
    "default_generator": "The generator of the CPU's random numbers.",
    "cpu": 'The functions of the device type "cpu"; each device type has a module like it.',
    "strided": "The layout of dense tensors.",
    "sparse_coo": "The layout of tensors with the coordinates of each element.",
    "sparse_csr": "The layout of matrices that are stored row by row.",
    "sparse_csc": "The layout of matrices that are stored column by column.",
    "sparse_bsr": "The layout of matrices of blocks that are stored row by row.",
    "sparse_bsc": "The layout of matrices of blocks that are stored column by column.",
    "sparse.sparse_csc": "See :data:`tensorplug.sparse_csc`.",
    "sparse.sparse_bsr": "See :data:`tensorplug.sparse_bsr`.",
    "sparse.sparse_bsc": "See :data:`tensorplug.sparse_bsc`.",
    "sparse.sparse_coo": "See :data:`tensorplug.sparse_coo`.",
    "sparse.sparse_csr": "See :data:`tensorplug.sparse_csr`.",
    "contiguous_format": "Rows first.",
    "channels_last": "Of images ``(N, C, H, W)``: the channels of a pixel lie together.",
    "channels_last_3d": "The same of volumes ``(N, C, D, H, W)``.",
    "preserve_format": "As the input lies.",
    "plugin.API_VERSION": "The version of the plugin API.",
    "distributed.default_pg_timeout": "How long a collective may take where nothing else is said.",
    "plugin.FUSED": "The op of a :class:`FusionStep` that runs what another fuser took.",
    "plugin.GROUP": "The group of entry points in which plugins are found.",
    "plugin.CAPABILITIES": "What a device can declare that it has, with what each means.",
    "plugin.ALL_DTYPES": "Every dtype.",
    "plugin.FLOAT8": "The dtypes of eight bits, which kernels serve only by name.",
    "plugin.FLOATS": "The dtypes of real floating-point numbers.",
    "plugin.COMPLEXES": "The dtypes of complex numbers.",
    "plugin.INTEGRAL": "The dtypes of integers, and bool.",
    "plugin.Number": "The type of plain numbers.",
    "plugin.Shape": "The type of shapes.",
    "nn.attention.flex_attention.FlexKernelOptions": "Options for torch's kernels; nothing is read.",
    "types.Device": "What says where a tensor lives: a device, its name or its index.",
    "types.FileLike": "A path or an open file.",
    "types.Number": "A Python scalar.",
    "plugin.hookimpl": "Marks a method as the implementation of a hook.",
    "plugins.API_VERSION": "See :data:`tensorplug.plugin.API_VERSION`.",
    "plugins.GROUP": "See :data:`tensorplug.plugin.GROUP`.",
    "plugins.hookimpl": "See :data:`tensorplug.plugin.hookimpl`.",
    "autograd.Variable": "The former name of :class:`tensorplug.Tensor`.",
    "distributions.identity_transform": "The transform that changes nothing.",
    "compat.torch": "The namespace that stands in for torch.",
    "distributions.constraints.nonnegative_integer": "An integer of at least 0.",
    "distributions.constraints.positive_integer": "An integer of at least 1.",
}

#: Of the top level: the page for each module that defines ops or functions.
TOP_LEVEL = {
    "Creation": """core.ops.creation core.tensor.creation core.tensor.legacy core.tensor.host
        sparse.creation""",
    "Random numbers": "core.ops.random core.device.generator",
    "Arithmetic and elementary functions": """core.ops.arithmetic core.ops.bitwise core.ops.clamp
        core.ops.complex core.ops.elementary core.ops.numeric core.ops.special""",
    "Comparison, sorting and searching": "core.ops.comparison core.ops.sorting",
    "Reductions and statistics": """core.ops.cumulative core.ops.differences core.ops.distances
        core.ops.norms core.ops.reductions core.ops.softmax core.ops.statistics""",
    "Shapes, joining and copying": """core.ops.copying core.ops.joining core.ops.rearranging
        core.ops.shape core.ops.shorthands core.ops.strided""",
    "Indexing and masks": "core.ops.indexing core.ops.masking core.ops.triangles",
    "Products and linear algebra": "core.ops.linalg core.ops.matmul core.ops.fft sparse _lobpcg",
    "Neural-network functions": "nn _native _top_level",
    "Compiled programs": "graph",
    "Dtypes, devices and settings": """core.device.dtypes core.device.device core.tensor.shapes
        core.tensor.layout core.tensor.predicates autograd amp core.dispatch _namespaces _ops
        core.tensor.printing core.tensor.storages core.tensor.typed_storages storage serialization
        _settings __config__ builtins
        core.errors _devices _ops _streams""",
}

NN = {
    "Module and containers": """nn.module nn.modules.container nn.modules.parameter_container
        nn.parameter nn.hooks nn.parallel""",
    "Layers": """nn.modules.linear nn.modules.conv nn.modules.pooling nn.modules.padding
        nn.modules.flatten nn.modules.sparse nn.modules.vision nn.modules.dropout
        nn.modules.distance nn.modules.lazy""",
    "Activations and normalization": """nn.modules.activation nn.modules.batchnorm
        nn.modules.normalization""",
    "Sequences and attention": """nn.modules.rnn nn.modules.rnn_cells nn.modules.transformer
        nn.modules.attention""",
    "Losses": "nn.modules.loss nn.modules.margin_loss nn.modules.adaptive",
}

#: The other namespaces: title, and the modules whose names stand on one page.
NAMESPACES = {
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "masked": "Masked reductions",
    "sparse": "Sparse tensors",
    "special": "Special functions",
    "nn.functional": "Functions of networks",
    "nn.init": "Initial weights",
    "nn.utils": "Helpers of networks",
    "nn.utils.parametrize": "Parametrizations",
    "nn.utils.parametrizations": "Ready parametrizations",
    "nn.utils.prune": "Pruning",
    "nn.utils.rnn": "Packed sequences",
    "nn.attention": "Kinds of attention",
    "nn.attention.flex_attention": "Attention of functions",
    "storage": "Storages",
    "optim": "Optimizers",
    "optim.lr_scheduler": "Schedules of learning rates",
    "optim.swa_utils": "Averages of weights",
    "autograd": "Automatic differentiation",
    "autograd.functional": "Derivatives of functions",
    "autograd.forward_ad": "Forward mode",
    "autograd.graph": "The graph",
    "func": "Transforms of functions",
    "overrides": "Classes that take calls over",
    "library": "Ops of one's own",
    "fx": "Graphs of calls",
    "graph": "Programs as graphs of ops",
    "nn.utils.stateless": "Calls with other parameters",
    "amp": "Mixed precision",
    "data": "Datasets and loaders",
    "distributed": "Processes that exchange tensors",
    "distributed.algorithms": "Processes with unequal inputs",
    "distributed.algorithms.ddp_comm_hooks.default_hooks": "Communication hooks",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "PowerSGD",
    "distributed.checkpoint": "Checkpoints of several processes",
    "distributed.checkpoint.state_dict": "States by names of parameters",
    "distributed.device_mesh": "Grids of processes",
    "distributed.fsdp": "Modules divided among processes",
    "distributed.nn": "Collectives that have derivatives",
    "distributed.optim": "Optimizers of several processes",
    "distributed.tensor": "Tensors divided among processes",
    "distributed.tensor.parallel": "Layers divided among processes",
    "distributions": "Probability distributions",
    "distributions.constraints": "Constraints of parameters",
    "distributions.transforms": "Transforms of variables",
    "accelerator": "The accelerator, whichever it is",
    "export": "Programs in files",
    "futures": "Values that come later",
    "hub": "Models from the network",
    "profiler": "Profiles",
    "serialization": "Files",
    "safetensors": "Files of safetensors",
    "onnx": "Models in ONNX files",
    "signal.windows": "Windows",
    "random": "Random numbers",
    "quasirandom": "Sobol sequences",
    "multiprocessing": "Processes",
    "utils": "Helpers",
    "utils.benchmark": "Benchmarks",
    "utils.checkpoint": "Checkpointing",
    "utils.dlpack": "Exchange by DLPack",
    "utils.flop_counter": "Counts of operations",
    "utils.hooks": "Handles of hooks",
    "utils.module_tracker": "Which modules run",
    "utils.model_zoo": "State dicts from the network",
    "torch_version": "Versions",
    "types": "Types for annotations",
    "utils.tensorboard": "TensorBoard",
    "array_api": "The array API standard",
    "backends": "Facts about backends",
    "compat": "Programs written for torch",
    "return_types": "Named results",
    "cuda": "The functions of a device type",
    "testing": "Tests of tensors and plugins",
    "plugin": "The plugin API",
    "plugins": "Installed and registered plugins",
}

if importlib.util.find_spec("tensorboardX") is None:  # what that module needs
    del NAMESPACES["utils.tensorboard"]

#: Names of a namespace that are another one's, documented there.
SAME = {
    "utils.data": "data",
    "autograd.profiler": "profiler",
    "autograd.grad_mode": "autograd",
    "autograd.anomaly_mode": "autograd",
}
#: What the implementation keeps under names without an underscore.
INTERNAL = {"autograd.recorder", "nn.modules", "nn.parallel"}


@dataclass
class Name:
    """One public name: where it is found, what it is, and of which name it is an alias."""

    namespace: str  # "", "nn", "Tensor" …
    name: str
    value: Any
    alias_of: str | None = None

    @property
    def path(self) -> str:
        """Its path below ``tensorplug``."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def kind(self) -> str:
        """``class``, ``function``, ``property``, ``module`` or ``data``."""
        if isinstance(self.value, types.ModuleType):
            return "module"
        if isinstance(self.value, property):
            return "property"
        if inspect.isclass(self.value):
            return "class"
        if callable(self.value) and hasattr(self.value, "__code__"):
            return "function"
        return "function" if inspect.isroutine(self.value) else "data"

    @property
    def doc(self) -> str:
        """What is said about it, by itself and not by a base class."""
        value, constant = self.value, CONSTANTS.get(self.path)
        if constant is None and isinstance(value, float | None):
            constant = CONSTANTS.get(self.name)
        if constant is not None:
            return constant
        if isinstance(value, tp.dtype):
            return f"The dtype ``{value!r}``."
        if self.kind == "class":
            return inspect.cleandoc(vars(value).get("__doc__") or "")
        if self.kind == "data" and not module_of(type(value)).startswith("builtins"):
            return inspect.cleandoc(type(value).__doc__ or "").partition("\n\n")[0]
        return "" if self.kind == "data" else inspect.getdoc(value) or ""

    @property
    def summary(self) -> str:
        """The first sentence of `doc`, on one line."""
        return " ".join(self.doc.partition("\n\n")[0].split())


@dataclass
class Page:
    """A page of the reference: names in groups."""

    title: str
    namespace: str
    groups: dict[str, list[Name]] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """The name of its file."""
        words = self.title if self.namespace in ("", "nn", "Tensor") else ""
        text = f"{self.namespace or 'tensorplug'}-{words}".replace(",", "").rstrip("-")
        return text.replace(" ", "-").lower()

    def names(self) -> Iterator[Name]:
        """Go through all of its names."""
        for group in self.groups.values():
            yield from group


def find(path: str) -> Any:
    """Return what ``tensorplug.<path>`` is."""
    value: Any = tp
    for part in path.split(".") if path else ():
        value = getattr(value, part)
    return value


def module_of(value: Any) -> str:
    """Return the module that defines it, below ``tensorplug``, or ``builtins``."""
    if isinstance(value, property):
        value = value.fget
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.removeprefix("tensorplug.") if module.startswith("tensorplug") else "builtins"


def listed(namespace: str) -> list[str]:
    """Return the public names of a namespace, submodules of the implementation left out."""
    module = find(namespace)
    if namespace == "cuda":  # a module made from its runtime: the functions are its class's
        return [name for name in dir(type(module)) if not name.startswith("_")]
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    own = [name for name in names if module_of(getattr(module, name)) == namespace]
    if not hasattr(module, "__all__") and own and namespace:
        return sorted(own)  # without what the module imports for itself
    found = []
    for name in names:
        path = f"{namespace}.{name}" if namespace else name
        if path in NAMESPACES:
            found.append(name)
            continue
        value = getattr(module, name)
        if name.startswith("_") or path in INTERNAL:
            continue
        if isinstance(value, types.ModuleType):
            if path in (*NAMESPACES, *SAME, "nn", "signal", "cpu", "mps", "xpu"):
                found.append(name)
        elif name != "annotations":
            found.append(name)
    return sorted(found)


@functools.cache
def homes() -> dict[int, str]:
    """Return for each class and function, by its id, the path under which it is described.

    Where several names mean one object, it is the first namespace that has it, and there the name that
    the object itself carries.
    """
    found: dict[int, str] = {}
    for namespace in ("", "nn", *NAMESPACES):
        names = [n for n in raw_names(namespace) if n.kind in ("function", "class")]
        for n in sorted(names, key=lambda n: n.value.__name__ != n.name):
            found.setdefault(id(n.value), n.path)
    return found


@functools.cache
def raw_names(namespace: str) -> list[Name]:
    """Return the names of a namespace, aliases not yet told from others."""
    home = type(find("cuda")) if namespace == "cuda" else find(namespace)
    return [Name(namespace, name, getattr(home, name)) for name in listed(namespace)]


def names_of(namespace: str) -> list[Name]:
    """Return the names of a namespace."""
    for n in raw_names(namespace):
        path = homes().get(id(n.value), n.path)
        n.alias_of = None if path == n.path else path
    return raw_names(namespace)


def sorted_into(
    table: dict[str, str], names: list[Name], namespace: str, label: Callable[[str], str]
) -> list[Page]:
    """Sort names into pages by the module that defines each."""
    found = {title: Page(title, namespace) for title in table}
    places = [(module, title) for title, modules in table.items() for module in modules.split()]
    places.sort(key=lambda place: -len(place[0]))
    for n in names:
        module = module_of(n.value)
        home = next(
            (p for p in places if module == p[0] or module.startswith(p[0] + ".")), None
        )  # fmt: skip
        if home is None:
            raise LookupError(f"no page of the reference takes {n.path}, defined in {module}")
        found[home[1]].groups.setdefault(label(home[0]), []).append(n)
    order = [label(module) for modules in table.values() for module in modules.split()]
    for page in found.values():
        page.groups = dict(sorted(page.groups.items(), key=lambda item: order.index(item[0])))
    return list(found.values())


def tensor_pages() -> list[Page]:
    """Sort the members of Tensor: what tensors have of their own, ops, and ops in place."""
    pages = {
        title: Page(title, "Tensor") for title in ("The class", "Ops as methods", "Ops in place")
    }
    for name in dir(tp.Tensor):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(tp.Tensor, name)
        n = Name("Tensor", name, value if isinstance(value, property) else getattr(tp.Tensor, name))
        module = module_of(n.value)
        n.alias_of = homes().get(id(n.value))
        if module.startswith(("core.ops", "nn")):
            title, group = "Ops as methods", module.split(".")[2]
        elif module == "core.dispatch.calls":
            title, group = "Ops in place", "in place"
        else:
            title = "The class"
            group = "attributes" if n.kind == "property" else group_of(module)
        pages[title].groups.setdefault(group, []).append(n)
    return list(pages.values())


#: What groups are called where the module's name says nothing to users.
GROUPS = {
    "builtins": "constants",
    "_namespaces": "ops by name",
    "_ops": "ops by name",
    "_settings": "settings",
    "__config__": "configuration",
    "core.dispatch": "kernels",
    "core.tensor.creation": "from data",
    "core.tensor.legacy": "from data",
    "core.tensor.host": "from other libraries",
    "core.tensor.tensor": "memory and conversion",
    "core.tensor.device_members": "devices",
}


def group_of(module: str) -> str:
    """Return the name of a group: the last part of its module's, or a plainer word."""
    return GROUPS.get(module, module.rpartition(".")[2].replace("_", " ").strip())


def pages() -> dict[str, list[Page]]:
    """Return all pages of the reference, in sections."""
    tp.ops  # noqa: B018  whatever is found on first use is there from here on
    top = [n for n in names_of("") if n.kind != "module" and n.name != "Tensor"]
    networks = [n for n in names_of("nn") if n.kind != "module"]
    spaces = []
    for namespace, title in NAMESPACES.items():
        names = [n for n in names_of(namespace) if n.kind != "module"]
        spaces.append(Page(title, namespace, {"names": names}))
    return {
        "tensorplug": sorted_into(TOP_LEVEL, top, "", group_of),
        "tensorplug.Tensor": tensor_pages(),
        "tensorplug.nn": sorted_into(NN, networks, "nn", group_of),
        "Namespaces": spaces,
    }


@functools.cache
def public_classes() -> frozenset[type]:
    """Return the classes that have an entry of their own."""
    spaces = ("", "nn", *NAMESPACES)
    return frozenset(n.value for space in spaces for n in names_of(space) if n.kind == "class")


def members(value: type) -> list[str]:
    """Return the members to document with a class.

    They are its own and those of bases that have no entry, without what overrides the member of a
    base that has one.
    """
    found: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base.__module__.partition(".")[0] != "tensorplug":
            continue
        if base is not value and base in public_classes():
            elsewhere = vars(base)
            found = {name: entry for name, entry in found.items() if name not in elsewhere}
        elif base is value or base not in public_classes():
            found.update(vars(base))
    inherited = {
        name for base in value.__mro__[1:] if base in public_classes() for name in dir(base)
    }
    names = []
    for name, entry in found.items():
        function = entry.__func__ if isinstance(entry, classmethod | staticmethod) else entry
        if isinstance(function, property):
            function = function.fget
        if inspect.isfunction(function) and function.__doc__ and not name.startswith("_"):
            names.append(name)
    return sorted(set(names) - inherited)
