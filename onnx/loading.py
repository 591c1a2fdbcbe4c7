"""Reading models: the file, its checks, functions taken apart, and the module made from it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .building import Builder
from .errors import ONNXError, UnsupportedOperatorError
from .module import ONNXModule
from .package import onnx_package
from .registry import find
from .values import DTYPES, NARROW, PARAMETERS, type_name

__all__ = ["load"]


def load(
    f: Any, *, trainable: bool | Callable[[str], bool] | None = None, device: Any = None
) -> ONNXModule:
    """Load an ONNX model as a module that runs and trains.

    Parameters
    ----------
    f
        A path, the bytes of a model, a file open for reading, or an ``onnx.ModelProto``. Weights that the
        model keeps in files of their own are read from beside the path.
    trainable
        Which initializers are parameters: all floating-point ones (True), none (False), or those whose name
        a function returns True for. By default it is those that have dimensions; single numbers (a scale in
        a formula) and running statistics are buffers, as integers are; files that :func:`export` wrote say it
        themselves.
    device
        Where parameters and buffers go.

    Returns
    -------
    ONNXModule
        In evaluation mode.

    Raises
    ------
    ONNXError
        The model is malformed, or data beside it is missing.
    UnsupportedOperatorError
        Operators of it cannot be run here; the message has all of them, each with its reason.
    ImportError
        The package ``onnx`` is not installed.

    Notes
    -----
    Nothing from the file is run as code. Random operators draw from the generator of the device, as
    ``tp.manual_seed`` sets it, and not from a ``seed`` in the model.

    Examples
    --------
    >>> import onnx.parser, tensorplug as tp
    >>> text = '''<ir_version: 8, opset_import: ["" : 18]>
    ... linear (float[N, 2] x) => (float[N, 3] y)
    ... <float[2, 3] weight = {1, 2, 3, 4, 5, 6}> { y = MatMul(x, weight) }'''
    >>> model = tp.onnx.load(onnx.parser.parse_model(text))
    >>> model(tp.tensor([[1.0, 1.0]]))
    tensor([[5., 7., 9.]], grad_fn=<MatmulBackward0>)
    >>> [name for name, _ in model.named_parameters()]
    ['weight']
    """
    model, folder = _read(f)
    versions = _checked(model)
    model = _inlined(model, versions)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    chosen = _chosen(trainable, metadata)
    builder = Builder(versions, folder, chosen)
    program = builder.build(model.graph)
    for value in [*model.graph.input, *model.graph.output]:
        number = value.type.tensor_type.elem_type
        if number in NARROW:
            reason = f"tensors of {type_name(number)} have no dtype here"
            builder.unsupported.append((f"input or output {value.name!r}", reason))
    if builder.unsupported:
        raise _refusal(builder.unsupported)
    inputs = {i.name: _declared(i.type) for i in model.graph.input}
    module = ONNXModule(program, builder.tensors, builder.parameters, inputs, versions, metadata)
    return module if device is None else module.to(device)


def _chosen(
    trainable: bool | Callable[[str], bool] | None, metadata: dict[str, str]
) -> Callable[[str], bool] | None:
    """Return what says which initializers are parameters; of a file of ours, the file itself."""
    if isinstance(trainable, bool):
        return lambda _: trainable
    if trainable is None and PARAMETERS in metadata:
        try:
            names = set(json.loads(metadata[PARAMETERS]))
        except (ValueError, TypeError) as error:
            raise ONNXError(f"the metadata {PARAMETERS!r} is no list of names: {error}") from error
        return names.__contains__
    return trainable


def _read(f: Any) -> tuple[Any, str]:
    """Return the model, and the folder of its other files."""
    onnx = onnx_package()
    if isinstance(f, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(f)
        return copy, ""
    folder = ""
    if isinstance(f, (str, os.PathLike)):
        folder = str(Path(f).parent)
        data, what = Path(f).read_bytes(), str(f)
    elif isinstance(f, (bytes, bytearray, memoryview)):
        data, what = bytes(f), "the bytes given"
    elif hasattr(f, "read"):
        data, what = f.read(), str(getattr(f, "name", "the file given"))
    else:
        raise TypeError(
            f"load takes a path, bytes, an open file or an onnx.ModelProto, not {type(f).__name__}"
        )
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:
        raise ONNXError(f"{what}: no ONNX model, or one cut short: {error}") from error
    if not model.HasField("graph"):
        raise ONNXError(f"{what}: no ONNX model: it has no graph")
    return model, folder


def _checked(model: Any) -> dict[str, int]:
    """Check a model as the format says; return the versions of its domains."""
    onnx = onnx_package()
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        versions[domain] = int(entry.version)
    newest = {
        "": onnx.defs.onnx_opset_version(),
        "ai.onnx.ml": onnx_package("helper").VERSION_TABLE[-1][3],
    }
    for domain, known in newest.items():
        if versions.get(domain, 0) > known:
            raise ONNXError(
                f"the model has opset {versions[domain]} of domain {domain or 'ai.onnx'!r}; the installed "
                f"onnx {onnx.__version__} knows up to {known}: pip install --upgrade onnx"
            )
    if model.ir_version > onnx.IR_VERSION:
        raise ONNXError(
            f"the model has version {model.ir_version} of the format; the installed onnx {onnx.__version__} "
            f"knows up to {onnx.IR_VERSION}: pip install --upgrade onnx"
        )
    try:
        onnx.checker.check_model(_without_weights(model))
    except onnx.checker.ValidationError as error:
        raise ONNXError(f"the model is malformed: {error}") from error
    return versions


def _without_weights(model: Any) -> Any:
    """Return the model; where the checker could not take it, as it is too large, a copy without its data."""
    if model.ByteSize() < 2**31 and not _has_external(model.graph):
        return model
    onnx = onnx_package()
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for proto in copy.graph.initializer:
        size = proto.dims
        proto.ClearField("raw_data")
        proto.ClearField("external_data")
        proto.ClearField("data_location")
        value = onnx.helper.make_tensor_value_info(proto.name, proto.data_type, list(size))
        if proto.name not in {i.name for i in copy.graph.input}:
            copy.graph.input.append(value)
    del copy.graph.initializer[:]
    return copy


def _has_external(graph: Any) -> bool:
    return any(proto.data_location == 1 for proto in graph.initializer)


def _inlined(model: Any, versions: dict[str, int]) -> Any:
    """Take apart the model's own functions, and operators that only ONNX's definition of them can run."""
    inliner = onnx_package("inliner")
    if model.functions:
        model = inliner.inline_local_functions(model)
        for entry in model.opset_import:
            versions.setdefault(
                "" if entry.domain == "ai.onnx" else entry.domain, int(entry.version)
            )
    unknown = [
        (domain, name)
        for domain, name in _operators(model.graph)
        if find(domain, name, versions.get(domain, 1)) is None
        and _has_function(name, domain, versions.get(domain, 1))
    ]
    if unknown:
        model = inliner.inline_selected_functions(model, unknown, inline_schema_functions=True)
    return model


def _operators(graph: Any) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for node in graph.node:
        found.add(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
        for attribute in node.attribute:
            if attribute.type == 5:  # GRAPH
                found |= _operators(attribute.g)
    return found


def _has_function(name: str, domain: str, version: int) -> bool:
    definitions = onnx_package("defs")
    if not definitions.has(name, version, domain):
        return False
    schema = definitions.get_schema(name, version, domain)
    return bool(schema.has_function or schema.has_context_dependent_function)


def _declared(kind: Any) -> tuple[Any, int | None]:
    """Return the dtype and the number of dimensions of an input, None for what is not said."""
    if not kind.HasField("tensor_type"):
        return None, None
    tensor = kind.tensor_type
    rank = len(tensor.shape.dim) if tensor.HasField("shape") else None
    return DTYPES.get(tensor.elem_type), rank


def _refusal(unsupported: list[tuple[str, str]]) -> UnsupportedOperatorError:
    counted = Counter(unsupported)
    lines = [
        f"  {name}{f' ({count} times)' if count > 1 else ''}: {reason}"
        for (name, reason), count in counted.items()
    ]
    message = "the model has what cannot be run here:\n" + "\n".join(lines)
    return UnsupportedOperatorError(message, list(counted))
