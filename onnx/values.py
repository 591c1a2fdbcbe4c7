"""What ONNX files hold besides graphs: element types, tensors, attributes."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device import dtypes
from tensorplug.core.tensor.creation import from_numpy

from .errors import ONNXError
from .package import onnx_package

__all__ = [
    "DTYPES",
    "NARROW",
    "TYPE_NUMBERS",
    "attribute_value",
    "dtype_of",
    "tensor_of",
    "type_name",
]

#: ONNX's numbers of element types; part of the format, they never change.
DTYPES = {
    1: dtypes.float32,
    2: dtypes.uint8,
    3: dtypes.int8,
    4: dtypes.uint16,
    5: dtypes.int16,
    6: dtypes.int32,
    7: dtypes.int64,
    9: dtypes.bool_,
    10: dtypes.float16,
    11: dtypes.float64,
    12: dtypes.uint32,
    13: dtypes.uint64,
    14: dtypes.complex64,
    15: dtypes.complex128,
    16: dtypes.bfloat16,
    17: dtypes.float8_e4m3fn,
    18: dtypes.float8_e4m3fnuz,
    19: dtypes.float8_e5m2,
    20: dtypes.float8_e5m2fnuz,
    24: dtypes.float8_e8m0fnu,
}
TYPE_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
STRING = 8
#: The entry of a model's metadata in which we write which initializers are parameters.
PARAMETERS = "tensorplug.parameters"
#: Element types that have no dtype here, and one in which constants of them are held: for DequantizeLinear.
NARROW = {
    21: ("uint4", dtypes.uint8),
    22: ("int4", dtypes.int8),
    23: ("float4e2m1", dtypes.float8_e4m3fn),
    25: ("uint2", dtypes.uint8),
    26: ("int2", dtypes.int8),
}


def type_name(number: int) -> str:
    """Return how ONNX calls an element type that has no dtype here."""
    return NARROW[number][0] if number in NARROW else "strings" if number == STRING else str(number)


def dtype_of(number: int) -> Any:
    """Return the dtype of an ONNX element type."""
    try:
        return DTYPES[number]
    except KeyError:
        name = type_name(number)
        raise NotImplementedError(f"tensors of {name} have no dtype here") from None


def tensor_of(proto: Any, folder: str = "") -> Any:
    """Return the tensor of a TensorProto, of strings a (nested) list."""
    helper = onnx_package("numpy_helper")
    what = f"tensor {proto.name!r}"
    if (
        proto.data_type not in DTYPES
        and proto.data_type not in NARROW
        and proto.data_type != STRING
    ):
        dtype_of(proto.data_type)
    if proto.data_location == 1:  # EXTERNAL
        _load_external(proto, folder)
    try:
        array = helper.to_array(proto)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ONNXError(f"{what}: its data does not fit its type and shape: {error}") from error
    if proto.data_type == STRING:
        return _decoded(array.tolist())
    if proto.data_type in NARROW:
        wide = array.astype("float32" if proto.data_type == 23 else "int16")
        return from_numpy(wide).to(NARROW[proto.data_type][1])
    return from_numpy(array if array.flags.writeable and array.flags.owndata else array.copy())


def _decoded(strings: Any) -> Any:
    if isinstance(strings, list):
        return [_decoded(item) for item in strings]
    return strings.decode() if isinstance(strings, bytes) else strings


def _load_external(proto: Any, folder: str) -> None:
    helper = onnx_package("external_data_helper")
    location = next((entry.value for entry in proto.external_data if entry.key == "location"), "?")
    try:
        helper.load_external_data_for_tensor(proto, folder)
    except Exception as error:
        raise ONNXError(
            f"tensor {proto.name!r}: its data is in the file {location!r}, which cannot be read beside the "
            f"model in {folder or '.'!r}: {error}. Put the file there, and load the model by its path"
        ) from error


def attribute_value(attribute: Any) -> Any:
    """Return an attribute as Python values, tensors, or protos of graphs and types."""
    helper = onnx_package("helper")
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "DESCRIPTOR"):
        return tensor_of(value) if value.DESCRIPTOR.name == "TensorProto" else value
    return [item.decode() if isinstance(item, bytes) else item for item in value]
