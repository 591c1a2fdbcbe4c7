"""Tiny models of each family of transformers, timm and torchvision, with random weights, and what they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import torch

import tensorplug as tp

#: Models of transformers with more parameters are left out.
MOST = 50_000_000
#: By the names that families of transformers have for them.
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "embed_dim")
LAYERS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth",
)  # fmt: skip
HEADS = (
    "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
    "decoder_attention_heads", "num_experts", "num_local_experts", "n_routed_experts",
)  # fmt: skip
INNER = ("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "hidden_dim")
LENGTHS = ("max_position_embeddings", "n_positions")
SMALL = {
    **dict.fromkeys(WIDTHS, 32), **dict.fromkeys(LAYERS, 2), **dict.fromkeys(HEADS, 4), **dict.fromkeys(INNER, 64),
    **dict.fromkeys(LENGTHS, 64), "d_kv": 8, "head_dim": 8, "num_key_value_heads": 2, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "vocab_size": 99, "type_vocab_size": 2, "image_size": 32, "patch_size": 8,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip

#: What makes a model, and its arguments by name of the n-th call.
Made = tuple[Any, Callable[[int], dict[str, Any]]]


# --- transformers ---


def transformers_families() -> list[str]:
    """Return the families that have a model of their own."""
    from transformers import CONFIG_MAPPING, MODEL_MAPPING

    return sorted(name for name, config in CONFIG_MAPPING.items() if config in MODEL_MAPPING)


#: What is changed of the default settings: all that makes a model small, or what fits more of them.
_CHANGES = (
    SMALL,
    {name: value for name, value in SMALL.items() if name not in ("head_dim", "d_kv")}
    | dict.fromkeys(LAYERS, 4),
    dict.fromkeys(LAYERS, 2) | {name: SMALL[name] for name in ("vocab_size", *HEADS[-3:])},
    {name: value for name, value in SMALL.items() if name not in ("head_dim", "d_kv")}
    | dict.fromkeys(WIDTHS, 512),  # heads of 128, which rotations by parts are given for
    {},
)


def settings_of(family: str, changes: dict[str, int]) -> Any:
    """Return settings of a model with some of them changed, and those of its parts."""
    from transformers import CONFIG_MAPPING, PretrainedConfig

    todo = [CONFIG_MAPPING[family]()]
    for config in todo:
        for name, number in changes.items():
            with suppress(Exception):  # one that differs from layer to layer
                if type(getattr(config, name, None)) in (int, float):
                    setattr(config, name, number)
        todo += [part for part in vars(config).values() if isinstance(part, PretrainedConfig)]
    return todo[0]


def transformers_model(family: str) -> Made:
    """Return a model, tiny if it can be made so, and what it takes: tokens, images or sound."""
    from transformers import AutoModel

    errors = []
    for changes in _CHANGES:
        try:
            config = settings_of(family, changes)
            with tp.device("meta"):
                size = sum(p.numel() for p in AutoModel.from_config(config).parameters())
            if size > MOST:
                raise ValueError(f"{size} parameters")
            tp.manual_seed(0)
            model = AutoModel.from_config(config).eval()
            given = _accepted(model)
        except Exception as error:  # not with these settings
            errors.append(error)
            continue
        return model, given
    raise errors[0]


def _accepted(model: Any) -> Callable[[int], dict[str, Any]]:
    """Return arguments that a model takes, of those that its main input has in some family."""
    errors = []
    for prepared in (lambda: model, lambda: without_caches(model)):  # which few layers may not have
        for arguments in _CANDIDATES.get(model.main_input_name, [_tokens]):
            try:
                prepared()(**arguments(model, 0))
            except Exception as error:
                errors.append(error)
                continue
            return lambda number: arguments(model, number)
    raise errors[0]


def _tokens(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    tokens = tp.randint(3, 90, (2, 8))
    given = {"input_ids": tokens, "attention_mask": tp.ones(2, 8, dtype=tp.int64)}
    return given | ({"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {})


def _tokens_alone(model: Any, number: int) -> dict[str, Any]:
    return {"input_ids": _tokens(model, number)["input_ids"]}


def _part(config: Any) -> Any:
    return getattr(config, "vision_config", None) or getattr(config, "backbone_config", None)


def _images(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    config = model.config
    size = getattr(config, "image_size", None) or getattr(_part(config), "image_size", None) or 64
    high, wide = size if isinstance(size, (list, tuple)) else (size, size)
    return {"pixel_values": tp.randn(2, getattr(config, "num_channels", 3), high, wide)}


def _images_of(size: int) -> Callable[[Any, int], dict[str, Any]]:
    def images(model: Any, number: int) -> dict[str, Any]:
        tp.manual_seed(number)
        return {"pixel_values": tp.randn(1, 3, size, size)}

    return images


def _images_and_tokens(model: Any, number: int) -> dict[str, Any]:
    return _images(model, number) | _tokens_alone(model, number)


def _films(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    size = getattr(model.config, "image_size", 32)
    frames = getattr(model.config, "num_frames", 4)
    name = model.main_input_name
    return {name: tp.randn(1, frames, 3, size, size)}


def _features(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    config = model.config
    bins = getattr(config, "num_mel_bins", None) or getattr(config, "feature_size", None) or 80
    frames = 2 * getattr(config, "max_source_positions", 16)
    given = {"input_features": tp.randn(1, bins, frames)}
    return given | _decoder(model)


def _frames(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    config = model.config
    bins = (
        getattr(config, "input_feat_per_channel", None)
        or getattr(config, "feature_projection_input_dim", None)
        or getattr(config, "num_mel_bins", None)
        or 80
    )
    return {"input_features": tp.randn(1, 64, bins)} | _decoder(model)


def _decoder(model: Any) -> dict[str, Any]:
    if not model.config.is_encoder_decoder:
        return {}
    return {"decoder_input_ids": tp.randint(3, 90, (1, 8))}


def _sound(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    return {"input_values": tp.randn(1, 1920)} | _decoder(model)


def _loud(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    return {"input_values": tp.randn(1, 1, 9600)}


def _spectrogram(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    config = model.config
    return {
        "input_values": tp.randn(
            1, getattr(config, "max_length", 64), getattr(config, "num_mel_bins", 80)
        )
    }


def _series(model: Any, number: int) -> dict[str, Any]:
    tp.manual_seed(number)
    config = model.config
    length = getattr(config, "context_length", None) or 32
    return {model.main_input_name: tp.randn(2, length, getattr(config, "num_input_channels", 1))}


#: By the name of a model's main input, in the order in which they are tried.
_CANDIDATES: dict[str, list[Callable[[Any, int], dict[str, Any]]]] = {
    "input_ids": [_tokens, _tokens_alone, _images_and_tokens],
    "pixel_values": [_images, _images_of(64), _images_of(224), _images_and_tokens, _films],
    "pixel_values_videos": [_films],
    "input_features": [_features, _frames],
    "input_values": [_sound, _loud, _spectrogram],
    "past_values": [_series],
}


# --- images ---

#: What the names of small models have, smallest first.
_SMALLEST = (
    "test_", "zepto", "atto", "femto", "_pico", "nano", "xxxs", "xxs", "_xs", "_t0", "_s0", "_b0", "_00", "_0",
    "050", "micro", "tiny", "_t", "mini", "small", "_s", "18", "26t", "121", "x0_5", "_b1", "_1", "base", "",
)  # fmt: skip


def _smallest(names: list[str]) -> str:
    """Return the name that promises the smallest model."""
    return min(names, key=lambda name: ([n in name for n in _SMALLEST].index(True), len(name)))


def timm_families() -> list[str]:
    """Return the modules of timm's models."""
    import timm

    return sorted(set(timm.list_modules()))


def _image_arguments(channels: int, high: int, wide: int) -> Callable[[int], dict[str, Any]]:
    def images(number: int) -> dict[str, Any]:
        tp.manual_seed(number)
        return {"x": tp.randn(2, channels, high, wide)}

    return images


def timm_model(family: str) -> Made:
    """Return the smallest model of a module, with images as small as it takes."""
    import timm

    name = _smallest(timm.list_models(module=family))
    default = timm.get_pretrained_cfg(name)
    full = default.test_input_size or default.input_size
    errors = []
    for options, size in (
        ({"img_size": 64}, (3, 64, 64)),
        ({}, (3, 64, 64)),
        ({"img_size": 128}, (3, 128, 128)),
        ({}, (3, 128, 128)),
        ({}, default.input_size),
        ({}, full),
    ):
        try:
            tp.manual_seed(0)
            model = _awake(timm.create_model(name, num_classes=10, **options).eval())
            given = _image_arguments(*size)
            model(**_named(model, given(0)))
        except Exception as error:
            errors.append(error)
            continue
        return model, lambda number: _named(model, given(number))
    raise errors[-1]


def _named(model: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by the names that a model has for them, in order."""
    return dict(zip(inspect.signature(model.forward).parameters, given.values(), strict=False))


def _awake(model: Any) -> Any:
    """Give parameters that begin at zero, and hide all that is before them, other values."""
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.1)
    return model


def torchvision_families() -> list[str]:
    """Return the modules of torchvision's models, with their kind."""
    from torchvision import models

    builders = [models.get_model_builder(name) for name in models.list_models()]
    return sorted({builder.__module__.removeprefix("torchvision.models.") for builder in builders})


def torchvision_model(family: str) -> Made:
    """Return the smallest model of a module, and the images, films or pairs of them that it takes."""
    from torchvision import models

    names = [
        name
        for name in models.list_models()
        if models.get_model_builder(name).__module__ == f"torchvision.models.{family}"
    ]
    kind = family.partition(".")[0]
    options: dict[str, Any] = {"weights": None}
    if kind in ("detection", "segmentation"):
        options["weights_backbone"] = None
    if kind != "optical_flow":
        options["num_classes"] = 10
    tp.manual_seed(0)
    model = _awake(models.get_model(_smallest(names), **options).eval())
    fixed = family in ("vision_transformer", "maxvit", "swin_transformer")
    size = 224 if fixed else 299 if family == "inception" else 64

    def arguments(number: int) -> dict[str, Any]:
        tp.manual_seed(number)
        if kind == "detection":
            given: tuple[Any, ...] = ([tp.rand(3, 64, 64)],)
        elif kind == "optical_flow":
            given = (tp.rand(1, 3, 128, 128), tp.rand(1, 3, 128, 128))
        elif kind == "video":
            given = (
                tp.randn(1, 3, 16, 224, 224)
                if "mvit" in family or "swin" in family
                else tp.randn(1, 3, 8, 64, 64),
            )
        else:
            given = (tp.randn(2, 3, size, size),)
        return _named(model, dict(enumerate(given)))

    model(**arguments(0))
    return model, arguments


#: By library: its families, and what makes a model of one.
LIBRARIES: dict[str, tuple[Callable[[], list[str]], Callable[[str], Made]]] = {
    "transformers": (transformers_families, transformers_model),
    "timm": (timm_families, timm_model),
    "torchvision": (torchvision_families, torchvision_model),
}


def without_caches(model: Any) -> Any:
    """Return a model that returns no caches of keys and values: tensors alone can be exported."""
    for part in (model, *model.modules()):
        config = getattr(part, "config", None)
        if getattr(config, "use_cache", None):
            config.use_cache = False
    return model


def with_batched_experts(model: Any) -> Any:
    """Return a model whose experts are products in a batch, which is transformers' form for ONNX."""
    if hasattr(model, "set_experts_implementation"):
        with suppress(ValueError):  # it has none
            model.set_experts_implementation("batched_mm")
    return model


def tensors_in(value: Any, seen: set[int]) -> Iterator[Any]:
    """Return all tensors of a result, in caches of keys and values too."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, tp.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, seen)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, tp.nn.Module)):
        yield from tensors_in(vars(value), seen)
