"""peft: adapters on a small language model."""

import tempfile
from pathlib import Path

import peft
import torch
import transformers
from support import Programs, fill, integers, norm, random, train

programs = Programs()


def llama():
    config = transformers.LlamaConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                      intermediate_size=40, max_position_embeddings=64)  # fmt: skip
    return fill(transformers.LlamaForCausalLM(config))


def adapter(name, config):
    """Add a program: a few steps with an adapter, what was trained, files, merging."""

    def run():
        net = peft.get_peft_model(llama(), config())
        with torch.no_grad():  # some adapters begin with random numbers
            for key, value in net.named_parameters():
                if value.requires_grad:
                    value.copy_(random(*value.shape, seed=key) * 0.1)
        ids = integers(2, 9, low=3, high=99)
        count = [p.numel() for p in net.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-2)
        said = {"trained": sum(count)} | train(
            net, lambda: net(input_ids=ids, labels=ids).loss, optimizer
        )
        net.eval()
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            net.save_pretrained(folder)
            said["files"] = sorted(
                path.name for path in Path(folder).iterdir() if path.suffix != ".md"
            )
            again = peft.PeftModel.from_pretrained(llama(), folder).eval()
            said["logits"] = again(input_ids=ids).logits
            said["tokens"] = again.generate(input_ids=ids[:1], max_new_tokens=5, do_sample=False)
            if hasattr(again, "merge_and_unload") and name not in {"prompt", "prefix"}:
                said["merged"] = again.merge_and_unload()(input_ids=ids).logits
        return said | {"state": norm(peft.get_peft_model_state_dict(net).values())}

    programs.add(name, run)


TARGETS = {"target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
adapter("lora", lambda: peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, **TARGETS))
adapter("rslora", lambda: peft.LoraConfig(r=4, use_rslora=True, lora_dropout=0.0, **TARGETS))
adapter("dora", lambda: peft.LoraConfig(r=4, use_dora=True, lora_dropout=0.0, **TARGETS))
adapter("loha", lambda: peft.LoHaConfig(r=4, **TARGETS))
adapter("lokr", lambda: peft.LoKrConfig(r=4, **TARGETS))
adapter(
    "ia3",
    lambda: peft.IA3Config(
        target_modules=["k_proj", "down_proj"],
        feedforward_modules=["down_proj"],
        task_type="CAUSAL_LM",
    ),
)
adapter("prompt", lambda: peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3))


@programs
def adapters_together():
    net = peft.get_peft_model(llama(), peft.LoraConfig(r=4, **TARGETS), adapter_name="one")
    net.add_adapter("two", peft.LoraConfig(r=2, **TARGETS))
    ids = integers(1, 9, low=3, high=99)
    said = {}
    with torch.no_grad():
        for key, value in net.named_parameters():
            if "lora" in key:
                value.copy_(random(*value.shape, seed=key) * 0.1)
        for name in ("one", "two"):
            net.set_adapter(name)
            said[name] = net(input_ids=ids).logits
        with net.disable_adapter():
            said["none"] = net(input_ids=ids).logits
    return said
