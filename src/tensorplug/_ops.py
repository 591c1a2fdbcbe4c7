"""``tp.ops``: ops by the names of packages and of ATen, as torch spells them."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tensorplug import _aten_keys
from tensorplug.core import Tensor, plugins
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.op import Op
from tensorplug.core.dispatch.torch_dispatch import decomposed

#: What ATen calls the forms of its ops; here one op serves them all.
_OVERLOADS = frozenset(
    {
        "default", "Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor", "Tensor_out",
        "out", "Scalar_out", "dim", "dim_IntList", "dim_max", "dim_min", "dim_DimnameList", "other", "int",
        "self", "int_out", "correction", "IntList_out", "Scalar_mode", "Tensor_mode",
        "ScalarSelf", "ScalarOther",
        "start", "start_step", "size", "sizes", "dtype", "dtype_layout", "device", "names", "prev_dim", "p",
        "value", "values", "dims", "using_ints", "self_int", "self_float", "vec", "tensor", "low",
        "generator",
        "float", "from", "to", "memory_format", "names_out", "Int", "bool", "str", "list", "List",
        "ListOfTensors", "ord_dtype",
        "int_Scalar", "int_Tensor", "int_Tensor_Scalar", "src", "reduce", "two", "sections", "indices",
        "tensor_indices_or_sections", "Tensor_indices", "stable", "values_stable", "no_stats", "default_out",
        "padding", "Hashed_Tensor", "Dimname", "dimname", "names_dim", "all_out", "unary_out", "descending",
        "ScalarOpt_dim", "Scalar_Other", "Scalar_Self", "dim_int", "self_Tensor", "value_reduce",
        "IntList", "Tensor_float", "bin_ct", "bins_tensor", "dx", "float_Tensor", "float_float", "input", "x",
        "L", "OutScalar_Other", "OutScalar_Self", "OutTensor", "Q", "ScalarAndTensor", "ScalarList",
        "ScalarOpt_dim_dtype", "ScalarOpt_dtype", "Scalar_Scalar", "Sequence", "TensorList",
        "TensorList_bins", "Tensor_generator", "U", "X", "a", "array", "atol_rtol_float",
        "atol_rtol_tensor", "beta",
        "ccol_row_value", "ccol_row_value_size", "center", "comp_plain_value", "comp_plain_value_size",
        "crow_col_value", "crow_col_value_size", "data", "decimals", "deprecated", "dim_dtype", "dim_values",
        "eigenvalues", "eigvals", "grad_input", "hacked_twin", "indexing", "indices_size", "int_bins",
        "intlist", "inverse", "low_dtype", "low_generator", "low_generator_dtype", "m", "msg", "n_scalar",
        "ord_str", "other_scalar", "out_mode", "output", "output_mask", "p_str", "padding_idx", "periodic",
        "periodic_alpha", "periodic_alpha_beta", "quantized", "rcond_tensor", "result", "scalar",
        "scalararray", "scalarint", "scalarrayarray", "scalarrayint", "self_scalar", "sign",
        "source_Storage", "source_Storage_storage_offset", "source_Tensor", "source_Tensor_storage_offset",
        "sparse_dim", "step", "str_ord", "sublist", "tensorarray", "tensorarrayint", "tol_tensor", "x_scalar",
    }
)  # fmt: skip


def _is_overload(name: str) -> bool:
    """Return whether ATen has forms of that name; one that writes to ``out=`` ends so."""
    return name in _OVERLOADS or name.removesuffix("_out") in _OVERLOADS


class OpOverload:
    """One form of an op: ``tp.ops.aten.add.Tensor``.

    Attributes
    ----------
    overloadpacket : OpOverloadPacket
        All forms of the op.
    """

    def __init__(self, packet: OpOverloadPacket, overload: str, implementation: Any = None) -> None:
        self.overloadpacket = packet
        self._overloadname = overload
        self._implementation = implementation
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__module__ = packet.__module__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._target(*args, **kwargs)

    @property
    def _target(self) -> Any:
        if self._implementation is None:
            return self.overloadpacket._target
        return self._implementation.op.call

    @property
    def op(self) -> Op:
        """The op behind."""
        found: Op = self._target.op
        return found

    @property
    def _op(self) -> Any:
        return self._target

    @property
    def _schema(self) -> Any:
        if self._implementation is None:
            raise AttributeError(f"{self} has no schema: it is an op of tensorplug's own")
        return self._implementation.schema

    @property
    def namespace(self) -> str:
        """The package that has the op."""
        return self.overloadpacket._namespace

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Make a call by the decomposition of a composite; NotImplemented for any other op."""
        op = getattr(self._target, "op", None)
        if op is None or op.kind != "composite":
            return NotImplemented
        return decomposed(op, args, kwargs)

    def name(self) -> str:
        """Return ``"namespace::op"``, with the overload's name unless it is the default."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return self.overloadpacket._qualified_op_name + suffix

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"

    def __reduce__(self) -> Any:
        return _overload, (
            self.namespace,
            self.overloadpacket.__name__,
            self._overloadname,
        )

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self


class OpOverloadPacket:
    """An op with all its forms: ``tp.ops.aten.add``, which is callable, and ``tp.ops.aten.add.Tensor``."""

    def __init__(self, namespace: str, name: str, target: Any = None) -> None:
        self._namespace = namespace
        self.__name__ = name
        self.__module__ = f"tensorplug.ops.{namespace}"
        self._qualified_op_name = f"{namespace}::{name}"
        self._given = target
        self._overloads: dict[str, OpOverload] = {}

    @property
    def _target(self) -> Any:
        if self._given is not None:
            return self._given
        if len(self._overloads) == 1 or "default" in self._overloads:
            return self._overloads.get("default", next(iter(self._overloads.values())))._target
        return self._of_several

    def _of_several(self, *args: Any, **kwargs: Any) -> Any:
        errors = []
        for overload in self._overloads.values():
            try:
                overload._schema.bind(args, kwargs)
            except RuntimeError as error:
                errors.append(str(error))
                continue
            return overload(*args, **kwargs)
        raise RuntimeError(f"no overload of {self} takes such arguments:\n" + "\n".join(errors))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._target(*args, **kwargs)

    @property
    def op(self) -> Op:
        """The op behind."""
        found: Op = self._target.op
        return found

    def overloads(self) -> list[str]:
        """Return the names of the forms that were defined or used."""
        return list(self._overloads) or ["default"]

    def add(self, name: str, implementation: Any) -> OpOverload:
        """Add a form that is defined at run time."""
        made = self._overloads[name] = OpOverload(self, name, implementation)
        return made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = self._overloads.get(name)
        if known is None and self._given is not None and _is_overload(name):
            known = self._overloads[name] = OpOverload(self, name)
        if known is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return known

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self._target.__doc__

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __reduce__(self) -> Any:
        return _packet, (self._namespace, self.__name__)

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self


#: Packets by namespace and name: one object each, for programs compare them and use them as keys.
PACKETS: dict[tuple[str, str], OpOverloadPacket] = {}


def _packet(namespace: str, name: str) -> Any:
    return getattr(getattr(sys.modules["tensorplug"].ops, namespace), name)


def _overload(namespace: str, name: str, overload: str) -> Any:
    return getattr(_packet(namespace, name), overload)


#: ATen's names of what has another one here, or is written as a method.
_ATEN = {
    "_to_copy": lambda input, **options: input.to(copy=True, **options),
    "_softmax": lambda input, dim, _half_to_float: _packet("aten", "softmax")(input, dim),
    "_log_softmax": lambda input, dim, _half_to_float: _packet("aten", "log_softmax")(input, dim),
    "_unsafe_view": lambda input, size: input.reshape(size),
    "alias": lambda input: input.view(input.shape),
    "lift_fresh": lambda input: input,
    "sym_size": lambda input, dim=None: input.size(dim),
    "sym_numel": lambda input: input.numel(),
    "sym_stride": lambda input, dim=None: input.stride(dim),
    "lift": lambda input: input,
    "_conj": lambda input: input.conj(),
    "_local_scalar_dense": lambda input: input.item(),
    "_pin_memory": lambda input, _device=None: input.pin_memory(),
    "_reshape_alias": lambda input, size, stride: input.as_strided(
        size, stride, input.storage_offset()
    ),
    "_stack": lambda tensors, dim=0: _packet("aten", "stack")(tensors, dim),
    # Not the op of that name.
    "convolution": lambda *args: sys.modules["tensorplug"].convolution(*args),
    "_to_dense": lambda input, _dtype=None, _masked_grad=None: input.to_dense(),
    "_unsafe_index": lambda input, indices: _packet("aten", "index")(input, indices),
    "_adaptive_avg_pool2d": lambda input, output_size: _packet("aten", "adaptive_avg_pool2d")(
        input, output_size
    ),
    "_adaptive_avg_pool3d": lambda input, output_size: _packet("aten", "adaptive_avg_pool3d")(
        input, output_size
    ),
    "slice": lambda input, dim=0, start=None, end=None, step=1: input[
        (slice(None),) * (dim % input.ndim) + (slice(start, end, step),)
    ],
}


def find_aten(name: str) -> Any:
    """Return what computes an op of ATen, or None."""
    if name in _ATEN:
        return _ATEN[name]
    facade: Any = sys.modules["tensorplug"]
    if name.endswith("_") and not name.endswith("__"):
        found = getattr(Tensor, name, None)
        if found is not None:
            return found
    elif op_registry.has_op(name):
        return op_registry.get_op(name).call
    for part in ("", "nn.functional", "special", "linalg", "fft"):
        namespace = facade
        for step in part.split(".") if part else ():
            namespace = getattr(namespace, step)
        short = name.removeprefix(f"{part}_") if part in ("special", "linalg", "fft") else name
        found = getattr(namespace, short, None)
        if callable(found) and not isinstance(found, type):
            return found
    found = getattr(Tensor, name, None)
    if callable(found):
        return found
    op = op_registry.find_op(name)
    if op is not None:
        return op.call
    return _aten_keys.refusing(name) if name in _aten_keys.KEYS else None


class OpNamespace:
    """Ops by their registered name: ``tp.ops.add``, ``tp.ops.package.name`` for an extension's.

    ``tp.ops.aten`` has those of ATen.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.add(tp.tensor([1]), 2)
    tensor([3])
    >>> tp.ops.aten.add.Tensor
    <OpOverload(op='aten.add', overload='Tensor')>
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if self._prefix:
            return self._packet(name)
        if name == "aten" or any(namespace == name for namespace, _ in PACKETS):
            return OpNamespace(f"{name}.")
        if op_registry.has_op(name):
            return op_registry.get_op(name).call
        plugins.load_device("extension")
        if any(op.name.startswith(f"{name}.") for op in op_registry.all_ops()):
            return OpNamespace(f"{name}.")
        try:
            return op_registry.get_op(name).call
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def _packet(self, name: str) -> Any:
        namespace = self._prefix[:-1]
        known = PACKETS.get((namespace, name))
        if known is not None and (known._given is None or namespace == "aten"):
            return known
        target = find_aten(name) if namespace == "aten" else self._registered(name)
        if target is None:
            raise AttributeError(f"'tensorplug.ops.{namespace}' object has no attribute {name!r}")
        if known is None or known._given is not target:  # its plugin may have come anew
            known = PACKETS[namespace, name] = OpOverloadPacket(namespace, name, target)
        return known

    def _registered(self, name: str) -> Any:
        try:
            return op_registry.get_op(self._prefix + name).call
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def load_library(self, path: Any) -> None:
        """Answer for a library of compiled ops, if a plugin brings its ops: torchvision's and torchaudio's.

        Raises
        ------
        OSError
            If none does, as torch raises where a library does not fit it.
        """
        importlib.import_module("tensorplug.compat.libraries").load(path)

    def __dir__(self) -> list[str]:
        start = len(self._prefix)
        names = [
            op.name[start:] for op in op_registry.all_ops() if op.name.startswith(self._prefix)
        ]
        return sorted({name.partition(".")[0] for name in names})
