"""Files of images, read and written by Pillow, and files as they are."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import composite

#: What the numbers of torchvision's ImageReadMode ask for; 0 leaves the image as it is.
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


@composite(name="image.read_file", method=False)
def read_file(filename: str) -> Tensor:
    """Return the bytes of a file, (bytes,) uint8."""
    return _bytes_tensor(Path(filename).read_bytes())


@composite(name="image.write_file", method=False, outputs="")
def write_file(filename: str, data: Tensor) -> None:
    """Write bytes, (bytes,) uint8, to a file."""
    _check_bytes("write_file", data)
    Path(filename).write_bytes(_bytes(data))


@composite(name="image.decode_image", method=False)
def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """Return an image of any format that Pillow reads as (channels, height, width); a GIF as there."""
    _check_bytes("decode_image", data)
    if _bytes(data[:6]) in (b"GIF87a", b"GIF89a"):
        return decode_gif(data)
    return _decode("decode_image", data, mode, apply_exif_orientation)


@composite(name="image.decode_png", method=False)
def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """Return a PNG as (channels, height, width), uint8, or uint16 where it has 16 bits."""
    return _decode("decode_png", data, mode, apply_exif_orientation, "PNG")


@composite(name="image.decode_jpeg", method=False)
def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """Return a JPEG as (channels, height, width), uint8."""
    return _decode("decode_jpeg", data, mode, apply_exif_orientation, "JPEG")


@composite(name="image.decode_webp", method=False)
def decode_webp(data: Tensor, mode: int) -> Tensor:
    """Return a WebP as (channels, height, width), uint8."""
    return _decode("decode_webp", data, mode, False, "WEBP")


@composite(name="image.decode_gif", method=False)
def decode_gif(data: Tensor) -> Tensor:
    """Return a GIF as (3, height, width), uint8, or (frames, 3, height, width) where there are more."""
    from PIL import ImageSequence

    image = _open("decode_gif", data, "GIF")
    frames = [np.array(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]
    result = tp.from_numpy(np.stack(frames)).permute(0, 3, 1, 2).contiguous()
    return result[0] if len(frames) == 1 else result


@composite(name="image.encode_png", method=False)
def encode_png(data: Tensor, compression_level: int) -> Tensor:
    """Return an image (1 or 3, height, width), uint8, as the bytes of a PNG."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError(
            f"encode_png(): expected a compression level of 0 to 9, got {compression_level}"
        )
    return _encode("encode_png", data, "PNG", compress_level=compression_level)


@composite(name="image.encode_jpeg", method=False)
def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    """Return an image (1 or 3, height, width), uint8, as the bytes of a JPEG."""
    return _encode("encode_jpeg", data, "JPEG", quality=quality)


def _check_bytes(name: str, data: Tensor) -> None:
    if data.dtype is not tp.uint8 or data.ndim != 1:
        raise RuntimeError(f"{name}(): expected bytes, 1-d uint8, got {data.ndim}-d {data.dtype}")


def _bytes(data: Tensor) -> bytes:
    return bytes(data.detach().cpu().contiguous().numpy().tobytes())


def _bytes_tensor(data: bytes) -> Tensor:
    return tp.from_numpy(np.frombuffer(data, np.uint8).copy())


def _open(name: str, data: Tensor, *formats: str) -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise RuntimeError(f"{name}(): images are read by Pillow: pip install pillow") from error
    _check_bytes(name, data)
    try:
        return Image.open(io.BytesIO(_bytes(data)), formats=formats or None)
    except OSError as error:
        kind = f"a {formats[0]}" if formats else "an image"
        raise RuntimeError(
            f"{name}(): the bytes are not those of {kind} that Pillow reads"
        ) from error


def _decode(name: str, data: Tensor, mode: int, turn: bool, *formats: str) -> Tensor:
    if mode and mode not in _MODES:
        raise RuntimeError(f"{name}(): expected a mode from 0 to 4, got {mode}")
    image = _open(name, data, *formats)
    if turn:
        from PIL import ImageOps

        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        return tp.from_numpy(np.array(image, np.uint16)).unsqueeze(0)
    if mode:
        wanted = _MODES[mode]
    elif image.mode in _MODES.values():
        wanted = image.mode
    else:  # of two colours, or of a palette
        wanted = (
            "L" if image.mode in ("1", "I") else "RGBA" if "transparency" in image.info else "RGB"
        )
    if wanted[0] == "L" and image.format == "JPEG":
        image.draft("L", None)  # as it is in the file, not by way of RGB
    pixels = (
        _gray(image, wanted)
        if wanted[0] == "L" and image.format == "PNG"
        else np.array(image.convert(wanted))
    )
    result = tp.from_numpy(pixels if pixels.ndim == 3 else pixels[:, :, None])
    return result.permute(2, 0, 1).contiguous()


def _gray(image: Any, wanted: str) -> Any:
    """Return the luminance that libpng computes, in whole numbers of its own; other formats have Pillow's."""
    if image.mode in ("1", "L", "LA", "I"):
        return np.array(image.convert(wanted))
    pixels = np.array(image.convert("RGBA")).astype(np.int32)
    red, green, blue, alpha = np.moveaxis(pixels, -1, 0)
    gray = np.where(
        (red == green) & (red == blue), red, (9794 * red + 19234 * green + 3740 * blue) >> 15
    )
    return (gray if wanted == "L" else np.stack([gray, alpha], -1)).astype(np.uint8)


def _encode(name: str, data: Tensor, kind: str, **options: int) -> Tensor:
    from PIL import Image

    if data.dtype is not tp.uint8 or data.ndim != 3 or data.shape[0] not in (1, 3):
        raise RuntimeError(
            f"{name}(): expected uint8 of shape [1 or 3, height, width], got {data.dtype} {list(data.shape)}"
        )
    pixels = np.ascontiguousarray(data.detach().cpu().permute(1, 2, 0).numpy())
    file = io.BytesIO()
    Image.fromarray(pixels if data.shape[0] == 3 else pixels[:, :, 0]).save(file, kind, **options)
    return _bytes_tensor(file.getvalue())


OPS = [
    read_file, write_file, decode_image, decode_png, decode_jpeg, decode_webp, decode_gif, encode_png,
    encode_jpeg,
]  # fmt: skip
