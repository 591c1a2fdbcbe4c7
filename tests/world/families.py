"""Every family of transformers' models, tiny and with its default settings, under tp.compile beside eager.

``python -m tensorplug.compat tests/world/families.py [FAMILY …]`` with the libraries of ``make world``. Prints how each family
ran: as one graph, as one once its first calls have set it up, in parts, or eagerly and why; the status is 1 if results differ.
"""

import sys
import warnings
from collections import Counter

import transformers
from transformers import CONFIG_MAPPING, MODEL_MAPPING, AutoModel, PretrainedConfig

import tensorplug as tp

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()

CALLS = 6
#: Models of more parameters are left out.
MOST = 5_000_000
#: By the names that families have for them.
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "embedding_size")
LAYERS = (
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "encoder_layers",
    "decoder_layers",
)
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


def settings_of(family):
    """Return the settings of a tiny model; those of its parts are as small."""
    todo = [CONFIG_MAPPING[family]()]
    for config in todo:
        for name, number in SMALL.items():
            if type(getattr(config, name, None)) in (int, float):
                setattr(config, name, number)
        todo += [part for part in vars(config).values() if isinstance(part, PretrainedConfig)]
    return todo[0]


def model_of(family):
    settings = settings_of(family)
    with tp.device("meta"):
        size = sum(p.numel() for p in AutoModel.from_config(settings).parameters())
    if size > MOST:
        raise ValueError(f"{size} parameters")
    tp.manual_seed(0)
    return AutoModel.from_config(settings).eval()


def arguments(model, number):
    """Return what a model takes: tokens, or images."""
    tp.manual_seed(number)
    if model.main_input_name == "input_ids":
        tokens = tp.randint(3, 90, (2, 8))
        given = {"input_ids": tokens, "attention_mask": tp.ones(2, 8, dtype=tp.int64)}
        return given | ({"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {})
    size = getattr(model.config, "image_size", 32)
    return {"pixel_values": tp.randn(2, 3, size, size)}


def tensors_in(value, seen):
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


def compare(family):
    """Return how a family ran, and by how much its results differ."""
    try:
        model = model_of(family)
        given = [arguments(model, number) for number in range(CALLS)]
        wanted = [[*tensors_in(model(**one), set())] for one in given]
    except Exception as error:  # not with these settings, or arguments
        return f"not tried: {type(error).__name__}: {str(error)[:60]!r}", 0.0
    compiled = tp.compile(model)
    difference = 0.0
    for one, results in zip(given, wanted, strict=True):
        try:
            found = [*tensors_in(compiled(**one), set())]
        except Exception as error:
            return f"raises {type(error).__name__}: {error}", float("inf")
        for a, b in zip(found, results, strict=True):
            distance = (a.double() - b.double()).abs().max() if a.numel() else 0.0
            difference = max(difference, float(distance) / max(float(b.abs().max()), 1e-9))
    explained = compiled.explain()
    if len(explained.graphs) == 1 and explained.calls == CALLS - 1:
        return "one graph", difference
    if len(explained.graphs) == 1 and explained.calls:
        return "one graph, once set up", difference
    reasons = "; ".join(dict.fromkeys(found.reason for found in explained.breaks))
    how = f"{len(explained.graphs)} graphs" if explained.graphs else "eager"
    return f"{how}: {reasons}", difference


def main(names):
    families = names or sorted(
        family for family, config in CONFIG_MAPPING.items() if config in MODEL_MAPPING
    )
    kinds, differing = Counter(), []
    for family in families:
        with tp.no_grad():
            how, difference = compare(family)
        kinds[how.partition(":")[0]] += 1
        if not difference <= 1e-5:
            differing.append(family)
        print(f"{family:28} {difference:.1e} {how}", flush=True)
    print(dict(kinds), f"{len(differing)} differ", *differing)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
