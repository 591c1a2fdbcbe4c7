"""Modules under torch's names that show tensorplug's, and what makes imports find them."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from typing import Any

from tensorplug._devices import WELL_KNOWN

from . import distribution, refusals
from .additions import ADDITIONS

#: Files of which an import finds names, while the package's attribute is a function of the same name.
HIDDEN = {
    "torch.multiprocessing.spawn": "tensorplug.multiprocessing",
    "torch.nn.utils.spectral_norm": "tensorplug.nn.utils.weight_norm",
}

#: Where the counterpart of a module has another name than `torch` replaced by `tensorplug`.
RENAMED = {
    **HIDDEN,
    "torch.functional": "tensorplug",
    "torch.torch": "tensorplug",
    "torch._tensor": "tensorplug.core.tensor.tensor",
    "torch._tensor_str": "tensorplug.core.tensor.printing",
    **{
        f"torch.{kind}.{file}": f"tensorplug.{kind}"
        for kind in WELL_KNOWN
        for file in ("memory", "random", "streams")
    },
    **{
        f"torch.nn.modules.{family}": "tensorplug.nn.modules"
        for family in ("channelshuffle", "fold", "instancenorm", "pixelshuffle", "upsampling")
    },
    # Where DTensor was before torch 2.5.
    "torch.distributed._tensor": "tensorplug.distributed.tensor",
    "torch.distributed._tensor.api": "tensorplug.distributed.tensor",
    "torch.distributed._tensor.device_mesh": "tensorplug.distributed.device_mesh",
    "torch.distributed._tensor.placement_types": "tensorplug.distributed.tensor.placement_types",
    "torch.onnx": "tensorplug.compat.onnx",
    "torch.profiler.profiler": "tensorplug.profiler",
    "torch.utils.tensorboard.summary": "tensorboardX.summary",
    "torch.utils.tensorboard.writer": "tensorplug.utils.tensorboard",
    "torch.utils.data": "tensorplug.data",
    "torch.utils.data._utils": "tensorplug.data",
    "torch.utils.data._utils.collate": "tensorplug.data.collate",
    "torch.utils.data._utils.pin_memory": "tensorplug.data.pinning",
    "torch.utils.data._utils.worker": "tensorplug.data.workers",
    "torch.utils.data.dataloader": "tensorplug.data.loader",
    "torch.utils.data.dataset": "tensorplug.data.datasets",
    "torch.utils.data.distributed": "tensorplug.data.distributed_sampler",
    "torch.utils.data.sampler": "tensorplug.data.samplers",
}

#: Packages whose names both libraries sort into files, each in its own way.
_FLAT = (
    "torch.nn.modules.",
    "torch.nn.utils.",
    "torch.nn.parallel.",
    "torch.distributions.",
    "torch.optim.",
    "torch.utils.data.",
    "torch.amp.",
)

#: Modules whose names look like those that Python gives meanings to.
_SPECIAL = ("torch.__config__", "torch.__future__")

#: The files of torch's distributions, each with a class or two.
_DISTRIBUTIONS = """bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet
    exponential exp_family fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal
    inverse_gamma kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal
    mixture_same_family multinomial multivariate_normal negative_binomial normal one_hot_categorical pareto
    poisson relaxed_bernoulli relaxed_categorical studentT uniform von_mises weibull wishart
    constraint_registry"""

_MISSING: Any = object()


class Alias(types.ModuleType):
    """A module under torch's name; its attributes are those of a module, or object, of tensorplug."""

    def __init__(self, name: str, target: Any) -> None:
        super().__init__(name, f"{name}, as tensorplug has it.")
        file = getattr(target, "__file__", None)
        spec = ModuleSpec(name, FINDER, origin=file, is_package=True)
        own = {"_target": target, "__path__": [], "__file__": file, "__package__": name}
        # Programs go through a module's classes by `vars`; its other values may change, and are asked for.
        shown = vars(target).items() if isinstance(target, types.ModuleType) else ()
        for public, value in list(shown):
            if public.startswith("_") or f"{name}.{public}" in RENAMED:
                continue
            if isinstance(value, (type, types.FunctionType)):
                self.__dict__[public] = value
        self.__dict__.update(own, __spec__=spec, __loader__=FINDER)
        for added, value in ADDITIONS.get(name, {}).items():
            if added == "__version__" or not hasattr(target, added):
                self.__dict__[added] = value

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [public for public in dir(self) if not public.startswith("_")]
        full = f"{self.__name__}.{name}"
        if name.startswith("__") and full not in _SPECIAL:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if full in RENAMED and full not in HIDDEN:
            return alias_of(full)
        value = getattr(self._target, name, _MISSING)
        if value is _MISSING and self.__name__.startswith(_FLAT):
            # The package has what another of its files defines here.
            value = getattr(
                importlib.import_module(self.__name__.rpartition(".")[0]), name, _MISSING
            )
        if value is _MISSING:
            value = refusals.stand_in(self.__name__, name, _MISSING)
        if value is _MISSING and (full in _ADDED or _is_file(full)):
            return alias_of(full)
        if value is _MISSING:
            raise AttributeError(_missing(full))
        if _is_part(value) or (full in ADDITIONS and not callable(value)):
            try:
                return alias_of(full)
            except ModuleNotFoundError as error:
                raise AttributeError(_missing(full)) from error
        # What the module holds is found at once from now on; what it answers anew each time is asked for.
        if isinstance(value, (type, types.FunctionType)) and name in vars(self._target):
            self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Imports set a package's modules and their specs; what a program sets is a setting.
        if isinstance(value, Alias) and callable(vars(self._target).get(name)):
            return  # `torch.autograd.gradcheck` is the function, although a file has the name too
        table = ADDITIONS.get(self.__name__, {}).get(name)
        if isinstance(table, dict) and isinstance(value, dict) and value is not table:
            # One that is in use, as that of all modules' hooks.
            table.clear()
            table.update(value)
        elif name.startswith("__") or isinstance(value, Alias):
            super().__setattr__(name, value)
        else:
            setattr(self._target, name, value)
            self.__dict__.pop(name, None)

    def __delattr__(self, name: str) -> None:
        # `unittest.mock.patch` deletes what it has set, and sets what was there before.
        if self.__dict__.pop(name, _MISSING) is _MISSING or hasattr(self._target, name):
            delattr(self._target, name)

    def __dir__(self) -> list[str]:
        named = self.__name__
        shown = {*dir(self._target), *ADDITIONS.get(named, {}), *refusals.names(named)}
        return [name for name in sorted(shown) if name == "__all__" or hasattr(self, name)]


def _is_part(value: Any) -> bool:
    """Return whether a value is a module of the library, not one that a module of it imports."""
    return isinstance(value, types.ModuleType) and value.__name__.startswith("tensorplug")


def _missing(name: str) -> str:
    return f"tensorplug has no counterpart of {name}"


def is_ours(module: Any) -> bool:
    """Return whether a module is one of these."""
    return type(module) is Alias


def alias_of(name: str) -> Any:
    """Return the module of one of torch's names, whether or not imports find it.

    Raises
    ------
    ModuleNotFoundError
        If there is no counterpart.
    """
    known = sys.modules.get(name)
    if known is not None and is_ours(known):
        return known
    target = _target(name)
    if target is _MISSING:
        raise ModuleNotFoundError(_missing(name), name=name)
    alias = Alias(name, target)
    if FINDER in sys.meta_path:
        sys.modules[name] = alias
    return alias


def _target(name: str) -> Any:
    found = _counterpart(name)
    return types.ModuleType(name) if found is _MISSING and name in _ADDED else found


#: The modules that have additions or stand-ins, and the packages above them.
_ADDED = {
    ".".join(parts[:end])
    for parts in [name.split(".") for name in (*ADDITIONS, *refusals.REFUSALS)]
    for end in range(1, len(parts) + 1)
}


def _is_file(name: str) -> bool:
    """Return whether a name is that of a file of torch's, of whose contents the package above has all."""
    package, _, file = name.rpartition(".")
    if package == "torch.distributions":
        return file in _DISTRIBUTIONS.split()
    return package.endswith(".amp") and file in ("autocast_mode", "grad_scaler")


def _counterpart(name: str) -> Any:
    if name == "torch":
        return importlib.import_module("tensorplug")
    if _is_file(name) and name.startswith("torch.distributions."):
        return importlib.import_module("tensorplug.distributions")
    kind, *rest = name.split(".")[1:]
    if rest and rest[0] == "amp":  # of a device type, in one file or more
        return getattr(importlib.import_module("tensorplug"), kind).amp
    own = RENAMED.get(name, f"tensorplug.{name.removeprefix('torch.')}")
    try:
        return importlib.import_module(own)
    except ModuleNotFoundError as error:
        if not own.startswith(error.name or "-"):
            raise  # the module is there, but imports what is not
    # Such as `torch.backends.cudnn`, an object; functions and classes are no modules.
    parent, _, last = own.rpartition(".")
    try:
        value = getattr(importlib.import_module(parent), last, _MISSING)
    except ModuleNotFoundError:
        return _MISSING
    return _MISSING if isinstance(value, (type, types.FunctionType)) else value


class Finder(MetaPathFinder, Loader):
    """Finds torch's modules among tensorplug's, and the distribution that would bring them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of torch; None for others, and where there is no counterpart."""
        if fullname.partition(".")[0] != "torch":
            return None
        try:
            spec: ModuleSpec = alias_of(fullname).__spec__
        except ModuleNotFoundError as error:
            if error.name != fullname:
                raise
            return None
        return spec

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return the module."""
        return alias_of(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module shows another."""

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[Distribution]:
        """Find the distribution "torch", for ``importlib.metadata``."""
        if distribution.is_asked_for(context.name if context else None):
            yield distribution.TorchDistribution()


#: The one that `install()` puts in front of the others.
FINDER = Finder()
