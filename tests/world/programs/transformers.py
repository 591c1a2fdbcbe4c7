"""transformers: architectures with small random configurations, generation, files, Trainer, pipelines."""

import json
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from support import Programs, backward, fill, gradients, integers, norm, random

transformers.logging.set_verbosity_error()
programs = Programs()

SMALL = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
QUIET = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def tokens(*shape, seed=0):
    return integers(*shape, low=3, high=99, seed=seed)


def build(name, **options):
    """Return a model of a class, with weights of its own."""
    cls = getattr(transformers, name)
    config = cls.config_class(**options)
    return fill(cls(config)).eval()


def numbers(out):
    """Return the tensors of a model's output by name."""
    return {
        key: value
        for key, value in out.items()
        if isinstance(value, torch.Tensor) and key != "loss"
    }


def encoder(name, task="ForMaskedLM", **options):
    """Add a program: masked language model, and classification."""

    def run():
        ids = tokens(2, 9)
        mask = torch.ones_like(ids)
        mask[1, 6:] = 0
        net = build(f"{name}{task}", **SMALL | QUIET | options)
        out = net(input_ids=ids, attention_mask=mask, labels=ids)
        said = {"out": numbers(out)} | backward(out.loss, net)
        classify = build(
            f"{name}ForSequenceClassification", **SMALL | QUIET | options, num_labels=3
        )
        return said | {"classes": classify(input_ids=ids, attention_mask=mask).logits}

    programs.add(name.lower(), run)


def decoder(name, **options):
    """Add a program: loss and gradients of a causal language model, and generation with a cache."""

    def run():
        net = build(f"{name}ForCausalLM" if "LM" not in name else name, **SMALL | options)
        ids = tokens(2, 9)
        out = net(input_ids=ids, labels=ids)
        said = {"logits": out.logits} | backward(out.loss, net)
        with torch.no_grad():
            said["tokens"] = net.generate(ids[:1], max_new_tokens=12, do_sample=False)
            said["without cache"] = net.generate(
                ids[:1], max_new_tokens=6, do_sample=False, use_cache=False
            )
            said["beams"] = net.generate(ids, max_new_tokens=6, do_sample=False, num_beams=2)
            mask = torch.ones_like(ids)
            mask[0, :3] = 0
            said["padded"] = net.generate(
                ids, attention_mask=mask, max_new_tokens=5, do_sample=False
            )
        return said

    programs.add(name.lower().replace("lmheadmodel", ""), run)


encoder("Bert")
encoder("Roberta", type_vocab_size=1)
encoder(
    "DistilBert",
    dim=32,
    n_layers=2,
    n_heads=4,
    hidden_dim=37,
    dropout=0.0,
    attention_dropout=0.0,
    seq_classif_dropout=0.0,
)
encoder("Albert", embedding_size=16)
encoder("Electra", embedding_size=16)
encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True)  # fmt: skip
encoder(
    "ModernBert",
    global_attn_every_n_layers=2,
    local_attention=4,
    attention_dropout=0.0,
    cls_token_id=1,
    sep_token_id=2,
)
encoder("MPNet")

HEADS = {
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
decoder("GPT2LMHeadModel", **HEADS)
decoder("GPTNeo", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], attention_dropout=0.0,
        embed_dropout=0.0, resid_dropout=0.0, window_size=4)  # fmt: skip
decoder("GPTNeoX", rotary_pct=0.5)
decoder("GPTJ", **HEADS, rotary_dim=4)
decoder("OPT", ffn_dim=37, word_embed_proj_dim=32, dropout=0.0)
decoder("Llama", num_key_value_heads=2)
decoder("Mistral", num_key_value_heads=2, sliding_window=4)
decoder(
    "Mixtral",
    num_key_value_heads=2,
    num_local_experts=4,
    num_experts_per_tok=2,
    intermediate_size=40,
)
decoder("Qwen2", num_key_value_heads=2)
decoder("Qwen3", num_key_value_heads=2, head_dim=8)
decoder("Gemma", num_key_value_heads=2, head_dim=8)
decoder("Gemma2", num_key_value_heads=2, head_dim=8, sliding_window=4, attn_implementation="eager")
decoder("Phi")
decoder("Phi3", num_key_value_heads=2)
decoder("Bloom", n_layer=2, n_head=4, hidden_dropout=0.0, attention_dropout=0.0)
decoder(
    "Falcon",
    hidden_dropout=0.0,
    attention_dropout=0.0,
    new_decoder_architecture=False,
    num_ln_in_parallel_attn=None,
)
decoder("Mamba", state_size=8, use_mambapy=False)


def translator(name, **options):
    """Add a program: an encoder with a decoder, loss and gradients, and generation."""

    def run():
        net = build(f"{name}ForConditionalGeneration", **options)
        ids = tokens(2, 9)
        out = net(input_ids=ids, labels=tokens(2, 7, seed=1))
        said = {"logits": out.logits} | backward(out.loss, net)
        with torch.no_grad():
            said["tokens"] = net.generate(ids, max_new_tokens=8, do_sample=False)
            said["beams"] = net.generate(ids, max_new_tokens=6, do_sample=False, num_beams=3)
        return said

    programs.add(name.lower(), run)


translator(
    "T5",
    vocab_size=99,
    d_model=32,
    d_kv=8,
    d_ff=37,
    num_layers=2,
    num_heads=4,
    dropout_rate=0.0,
    decoder_start_token_id=0,
)
translator("Bart", vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
           encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64, dropout=0.0, forced_eos_token_id=2, bos_token_id=0,
           pad_token_id=1, eos_token_id=2, decoder_start_token_id=2)  # fmt: skip


# --- images and sound ----------------------------------------------------------------------------

IMAGES = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
}


@programs
def vit():
    net = build("ViTForImageClassification", **IMAGES, **QUIET, num_labels=5)
    out = net(pixel_values=random(2, 3, 32, 32), labels=torch.tensor([1, 3]))
    return {"logits": out.logits} | backward(out.loss, net)


@programs
def clip():
    text = {key: value for key, value in SMALL.items() if key != "eos_token_id"} | {
        "projection_dim": 16,
        "eos_token_id": 98,
    }
    net = build("CLIPModel", text_config=text, vision_config=IMAGES, projection_dim=16)
    ids = tokens(3, 7)
    ids[:, -1] = 98
    out = net(input_ids=ids, pixel_values=random(3, 3, 32, 32), return_loss=True)
    return {"text": out.logits_per_text, "image": out.image_embeds} | backward(out.loss, net)


@programs
def dinov2():
    net = build("Dinov2Model", **IMAGES | {"patch_size": 8}, drop_path_rate=0.0)
    out = net(pixel_values=random(2, 3, 32, 32)).last_hidden_state
    return {"out": out} | backward(out.square().mean(), net)


@programs
def convnext():
    net = build(
        "ConvNextForImageClassification",
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_labels=4,
    )
    out = net(pixel_values=random(2, 3, 32, 32), labels=torch.tensor([1, 3]))
    return {"logits": out.logits} | backward(out.loss, net)


@programs
def swin():
    net = build("SwinForImageClassification", image_size=32, patch_size=2, embed_dim=16, depths=[1, 2], num_heads=[2, 4], window_size=4,
                drop_path_rate=0.0, num_labels=4)  # fmt: skip
    out = net(pixel_values=random(2, 3, 32, 32), labels=torch.tensor([1, 3]))
    return {"logits": out.logits} | backward(out.loss, net)


@programs
def segformer():
    net = build("SegformerForSemanticSegmentation", depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], decoder_hidden_size=16, num_labels=4,
                num_attention_heads=[1, 2, 2, 4], drop_path_rate=0.0, hidden_dropout_prob=0.0, classifier_dropout_prob=0.0)  # fmt: skip
    out = net(pixel_values=random(1, 3, 64, 64), labels=integers(1, 64, 64, high=4))
    return {"logits": out.logits} | backward(out.loss, net)


@programs
def whisper():
    net = build("WhisperForConditionalGeneration", vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_source_positions=30, max_target_positions=32,
                num_mel_bins=16, dropout=0.0, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
                begin_suppress_tokens=None, suppress_tokens=None)  # fmt: skip
    features = random(2, 16, 60)
    out = net(input_features=features, labels=tokens(2, 6))
    said = {"logits": out.logits} | backward(out.loss, net)
    with torch.no_grad():
        said["tokens"] = net.generate(input_features=features, max_new_tokens=8, do_sample=False)
    return said


@programs
def wav2vec2():
    net = build("Wav2Vec2ForCTC", **SMALL | QUIET | {"vocab_size": 32}, conv_dim=(8, 8, 8), conv_stride=(4, 2, 2), conv_kernel=(8, 3, 3),
                num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, hidden_dropout=0.0,
                attention_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0, layerdrop=0.0, apply_spec_augment=False,
                ctc_loss_reduction="mean")  # fmt: skip
    out = net(input_values=random(2, 800), labels=integers(2, 6, low=1, high=32))
    return {"logits": out.logits} | backward(out.loss, net)


# --- files, training, pipelines ------------------------------------------------------------------

GPT = {**SMALL, **HEADS, "num_hidden_layers": 2}


def gpt2():
    return build("GPT2LMHeadModel", **GPT)


@programs
def save_and_load():
    ids = tokens(1, 9)
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        net = gpt2()
        net.save_pretrained(folder)
        said["files"] = sorted(path.name for path in Path(folder).iterdir())
        again = transformers.AutoModelForCausalLM.from_pretrained(folder)
        said["logits"] = again(ids).logits
        said["equal"] = torch.equal(again.eval()(ids).logits, net(ids).logits)
        net.save_pretrained(folder, max_shard_size="20KB")
        said["shards"] = len(list(Path(folder).glob("*.safetensors")))
        said["of shards"] = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()(ids).logits
        half = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.bfloat16)
        said["half"] = str(half.dtype)
    return said


@programs
def file_of_torch():
    """Load a state dict in torch's format, as `torch.save` of torch 2.13 wrote it."""
    path = Path(__file__).parents[1] / "figures" / "gpt2.bin"
    net = build(
        "GPT2LMHeadModel",
        **GPT | {"n_embd": 8, "n_layer": 1, "num_hidden_layers": 1, "hidden_size": 8},
    )
    state = torch.load(path, weights_only=True)
    said = net.load_state_dict(state, strict=True)
    return {
        "keys": list(said),
        "logits": net(tokens(1, 9)).logits,
        "tied": net.lm_head.weight is net.transformer.wte.weight,
    }


@programs
def sampling():
    """Sample; the numbers are the library's own, so lengths are compared."""
    net = gpt2()
    ids = tokens(1, 5)
    out = net.generate(
        ids,
        max_new_tokens=7,
        do_sample=True,
        top_k=5,
        top_p=0.9,
        temperature=0.7,
        eos_token_id=None,
    )
    penalised = net.generate(
        ids, max_new_tokens=7, do_sample=False, repetition_penalty=1.5, no_repeat_ngram_size=2
    )
    return {"shape": list(out.shape), "start": out[:, :5], "penalised": penalised}


@programs
def streaming():
    class Streamer(transformers.generation.streamers.BaseStreamer):
        def __init__(self):
            self.said = []

        def put(self, value):
            self.said.append(value.tolist())

        def end(self):
            self.said.append("end")

    streamer = Streamer()
    gpt2().generate(tokens(1, 5), max_new_tokens=5, do_sample=False, streamer=streamer)
    return {"said": streamer.said}


@programs
def attention_implementations():
    said = {}
    ids = tokens(2, 9)
    for kind in ("eager", "sdpa"):
        net = build("LlamaForCausalLM", **SMALL, num_key_value_heads=2, attn_implementation=kind)
        out = net(input_ids=ids, labels=ids)
        said[kind] = backward(out.loss, net)
    return said


@programs
def checkpointing():
    net = build("LlamaForCausalLM", **SMALL, num_key_value_heads=2).train()
    net.gradient_checkpointing_enable()
    ids = tokens(2, 9)
    return backward(net(input_ids=ids, labels=ids).loss, net)


class Lines(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        ids = tokens(8, seed=index)
        return {"input_ids": ids, "labels": ids}


@programs
def trainer():
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        args = transformers.TrainingArguments(
            folder, num_train_epochs=2, per_device_train_batch_size=4, learning_rate=1e-2, report_to=[], logging_steps=1, save_steps=3,
            disable_tqdm=True, use_cpu=True, lr_scheduler_type="linear", warmup_steps=1, weight_decay=0.1, max_grad_norm=0.5,
            eval_strategy="epoch",
        )  # fmt: skip

        class Ordered(transformers.Trainer):
            def _get_train_sampler(self, *args):
                return torch.utils.data.SequentialSampler(self.train_dataset)

        net = gpt2()
        training = Ordered(model=net, args=args, train_dataset=Lines(), eval_dataset=Lines())
        result = training.train()
        said["loss"] = result.training_loss
        said["log"] = [entry["loss"] for entry in training.state.log_history if "loss" in entry]
        said["eval"] = [
            entry["eval_loss"] for entry in training.state.log_history if "eval_loss" in entry
        ]
        said["grad_norm"] = [
            float(entry["grad_norm"])
            for entry in training.state.log_history
            if "grad_norm" in entry
        ]
        said["parameters"] = norm(net.parameters())
        said["checkpoints"] = sorted(path.name for path in Path(folder).glob("checkpoint-*"))
        said["files"] = sorted(path.name for path in Path(folder, "checkpoint-3").iterdir())
        resumed = Ordered(model=gpt2(), args=args, train_dataset=Lines(), eval_dataset=Lines())
        said["resumed"] = resumed.train(
            resume_from_checkpoint=str(Path(folder, "checkpoint-3"))
        ).global_step
        said["resumed parameters"] = norm(resumed.model.parameters())
        said["predicted"] = training.predict(Lines()).predictions.shape
    return said


def tokenizer(folder):
    """Write and return a tokenizer of words."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *[f"w{i}" for i in range(90)]]
    raw = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )
    fast.save_pretrained(folder)
    return fast


@programs
def pipelines():
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        words = tokenizer(folder)
        classify = transformers.pipeline(
            "text-classification",
            model=build("BertForSequenceClassification", **SMALL | QUIET, num_labels=3),
            tokenizer=words,
            top_k=None,
        )
        said["classes"] = classify(["w1 w2 w3", "w4 w5"])
        fill_mask = transformers.pipeline(
            "fill-mask", model=build("BertForMaskedLM", **SMALL | QUIET), tokenizer=words, top_k=3
        )
        said["mask"] = [[one["token_str"], one["score"]] for one in fill_mask("w1 [MASK] w3")]
        generate = transformers.pipeline("text-generation", model=gpt2(), tokenizer=words)
        said["text"] = generate("w1 w2 w3", max_new_tokens=5, do_sample=False)
        features = transformers.pipeline(
            "feature-extraction", model=build("BertModel", **SMALL | QUIET), tokenizer=words
        )
        said["features"] = features("w1 w2")[0][0][:4]
        named = transformers.pipeline(
            "token-classification",
            model=build("BertForTokenClassification", **SMALL | QUIET, num_labels=3),
            tokenizer=words,
        )
        said["named"] = [[one["entity"], float(one["score"])] for one in named("w1 w2 w3")]
        answer = transformers.pipeline("question-answering", model=build("BertForQuestionAnswering", **SMALL | QUIET), tokenizer=words) if "question-answering" in transformers.pipelines.SUPPORTED_TASKS else None  # fmt: skip
        said["answer"] = (
            None if answer is None else answer(question="w1 w2", context="w3 w4 w5 w6")["score"]
        )
    return said


@programs
def image_pipeline():
    from PIL import Image

    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    net = build("ViTForImageClassification", **IMAGES, **QUIET, num_labels=5)
    classify = transformers.pipeline(
        "image-classification", model=net, image_processor=processor, top_k=5
    )
    rows, columns = np.mgrid[:32, :32]
    picture = Image.fromarray(np.stack([rows * 5, columns * 4, rows + columns], -1).astype("uint8"))
    return {
        "classes": classify(picture),
        "pixels": processor(picture, return_tensors="pt").pixel_values,
    }


@programs
def collators():
    with tempfile.TemporaryDirectory() as folder:
        words = tokenizer(folder)
        padded = transformers.DataCollatorWithPadding(words)(
            [{"input_ids": [5, 6, 7]}, {"input_ids": [8]}]
        )
        batch = words(["w1 w2 w3", "w4"], padding=True, return_tensors="pt")
        language = transformers.DataCollatorForLanguageModeling(words, mlm=False)(
            [{"input_ids": [5, 6, 7]}, {"input_ids": [8]}]
        )
    return {
        "padded": dict(padded),
        "batch": dict(batch),
        "language": dict(language),
        "text": words.batch_decode(batch["input_ids"]),
    }


@programs
def schedules_and_optimizers():
    layer = torch.nn.Linear(2, 2)
    said = {}
    for name in ("linear", "cosine", "constant_with_warmup", "polynomial", "inverse_sqrt"):
        optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
        schedule = transformers.get_scheduler(
            name, optimizer, num_warmup_steps=3, num_training_steps=10
        )
        rates = []
        for _ in range(10):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr()[0])
        said[name] = rates
    fill(layer)
    adafactor = transformers.Adafactor(
        layer.parameters(), lr=0.01, relative_step=False, scale_parameter=False
    )
    for _ in range(3):
        adafactor.zero_grad()
        layer(random(3, 2)).square().mean().backward()
        adafactor.step()
    return said | {"adafactor": norm(layer.parameters()), "gradients": gradients(layer)}


@programs
def configurations():
    config = transformers.LlamaConfig(**SMALL, dtype=torch.float16)
    said = json.loads(config.to_json_string())
    return {"dtype": said["dtype"], "again": str(transformers.LlamaConfig.from_dict(said).dtype)}
