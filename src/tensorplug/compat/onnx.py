"""``torch.onnx``: the exporter under torch's arguments."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tensorplug.onnx import UnsupportedOperatorError as OnnxExporterError, export as write, load

__all__ = ["ONNXProgram", "OnnxExporterError", "export"]

#: Arguments of torch's that change nothing here.
_WITHOUT_EFFECT = """
    artifacts_dir autograd_inlining custom_opsets do_constant_folding dump_exported_program dynamo
    export_modules_as_functions export_params fallback keep_initializers_as_inputs operator_export_type
    optimize profile report training verbose verify
"""


class ONNXProgram:
    """What an export returns: the model, which can be saved and called.

    Attributes
    ----------
    model_proto
        The ``onnx.ModelProto``.
    """

    def __init__(self, model_proto: Any) -> None:
        self.model_proto = model_proto

    def save(self, destination: str | os.PathLike[str], **options: Any) -> None:
        """Write the model to a file."""
        from tensorplug.onnx.exporting import save

        save(self.model_proto, destination, options.get("external_data"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs of the model for inputs, as a tuple."""
        results = load(self.model_proto)(*args, **kwargs)
        return results if isinstance(results, tuple) else (results,)


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *deprecated: Any,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    external_data: bool | None = None,
    custom_translation_table: Any = None,
    **options: Any,
) -> ONNXProgram:
    """Write a module as an ONNX model, as :func:`tensorplug.onnx.export` does."""
    unknown = set(options) - set(_WITHOUT_EFFECT.split())
    if unknown:
        raise TypeError(f"export() got an unexpected keyword argument {unknown.pop()!r}")
    if custom_translation_table:
        raise NotImplementedError(
            "export() takes no table of translations: ops are written as ONNX's own"
        )
    if options.get("export_params") is False:
        raise NotImplementedError(
            "export() writes parameters always: a model without them does not run"
        )
    if opset_version is not None and opset_version < 18:
        warnings.warn(
            f"opset_version is {opset_version}; the model is written in 18, the oldest one here",
            stacklevel=2,
        )
    if isinstance(args, (list, tuple)) and args and isinstance(args[-1], dict) and kwargs is None:
        *args, kwargs = args  # torch's way to give arguments by name
    file: Any = f
    path = None if hasattr(file, "write") else file
    proto = write(
        model,
        tuple(args) if isinstance(args, (list, tuple)) else args,
        path,
        kwargs=kwargs,
        input_names=input_names,
        output_names=output_names,
        opset_version=max(opset_version or 18, 18),
        dynamic_axes=dynamic_axes,
        dynamic_shapes=dynamic_shapes,
        external_data=external_data if path else None,
    )
    if file is not None and path is None:
        file.write(proto.SerializeToString())
    return ONNXProgram(proto)
