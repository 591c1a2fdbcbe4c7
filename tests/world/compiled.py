"""Public models under tp.compile and tp.onnx.export: as eager, forward and gradients; graphs counted.

``python -m tensorplug.compat tests/world/compiled.py [MODEL …]`` with the libraries of ``make world``; onnxruntime, if
installed, runs what is exported. Prints a line for each model; the status is 1 if one differs.
"""

import sys
import time
import traceback
import warnings
from copy import deepcopy

import numpy as np
import torch

import tensorplug as tp

warnings.simplefilter("ignore")


def images(batch):
    return (torch.randn(batch, 3, 64, 64),)


def tokens(batch):
    return (torch.randint(0, 90, (batch, 12)),)


def vision(name, **options):
    def make():
        from torchvision import models

        return getattr(models, name)(num_classes=10, **options)

    return make, images


def image_model(name):
    def make():
        import timm

        return timm.create_model(name, num_classes=10)

    return make, images


def vit():
    from torchvision import models

    return models.VisionTransformer(64, 16, 2, 4, 64, 128, num_classes=10)


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}


def language(model, config, **options):
    def make():
        import transformers

        made = getattr(transformers, config)(**options)
        made.use_cache = False
        made._attn_implementation = "eager"

        class Logits(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = getattr(transformers, model)(made)

            def forward(self, ids):
                return self.net(input_ids=ids, return_dict=False)[0]

        return Logits()

    return make, tokens


MODELS = {
    "resnet18": vision("resnet18"),
    "mobilenet_v3_small": vision("mobilenet_v3_small"),
    "efficientnet_b0": vision("efficientnet_b0"),
    "squeezenet1_1": vision("squeezenet1_1"),
    "shufflenet_v2_x0_5": vision("shufflenet_v2_x0_5"),
    "densenet121": vision("densenet121"),
    "vit": (vit, images),
    "timm mobilenetv3_small_050": image_model("mobilenetv3_small_050"),
    "timm convnext_atto": image_model("convnext_atto"),
    "timm resnet10t": image_model("resnet10t"),
    "bert": language("BertModel", "BertConfig", intermediate_size=64, **SMALL),
    "gpt2": language("GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4, vocab_size=99),
    "llama": language(
        "LlamaForCausalLM", "LlamaConfig", intermediate_size=64, num_key_value_heads=2, **SMALL
    ),
    "distilbert": language(
        "DistilBertModel", "DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64,
        vocab_size=99,
    ),
}  # fmt: skip


def apart(a, b):
    """Return how far apart two tensors are, relative to the first."""
    a, b = a.detach().double(), b.detach().double()
    return float((a - b).abs().max() / a.abs().max().clamp_min(1e-30))


def inference(net, data):
    """Return how far results of changing batch sizes are from eager's, and how many graphs there were."""
    net = deepcopy(net).eval()
    compiled = tp.compile(net)
    worst = 0.0
    with torch.no_grad():
        for batch in (2, 2, 3, 4, 2, 3):
            given = data(batch)
            worst = max(worst, apart(net(*given), compiled(*given)))
    return worst, compiled.explain()


def training(net, data):
    """Return how far gradients are from eager's after each of four calls, relative to the largest of all.

    Behind normalisation of two values some gradients are nothing but rounding.
    """
    nets = [deepcopy(net).train() for _ in range(2)]
    runs = [nets[0], tp.compile(nets[1])]
    worst = 0.0
    for step in range(4):
        given = data(2)
        found = []
        for one, run in zip(nets, runs, strict=True):
            torch.manual_seed(step)
            one.zero_grad()
            out = run(*given)
            out.square().mean().backward()
            found.append([out, *[p.grad for p in one.parameters() if p.grad is not None]])
        assert len(found[0]) == len(found[1])
        scale = max([float(a.detach().abs().max()) for a in found[0]])
        pairs = zip(*found, strict=True)
        worst = max(worst, *[float((a - b).detach().abs().max()) / scale for a, b in pairs])
    return worst, runs[1].explain()


def exported(net, data):
    """Return how far onnxruntime's result is from eager's."""
    try:
        import onnxruntime
    except ImportError:
        return "no onnxruntime"
    import tempfile
    from pathlib import Path

    net = deepcopy(net).eval()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder, "model.onnx")
        tp.onnx.export(net, data(2), path, dynamic_shapes=({0: tp.export.Dim("batch")},))
        session = onnxruntime.InferenceSession(str(path))
        given = data(3)
        (made,) = session.run(None, {session.get_inputs()[0].name: given[0].numpy()})
        return apart(net(*given), torch.from_numpy(np.ascontiguousarray(made)))


def main(names):
    unknown = sorted(set(names) - set(MODELS))
    if unknown:
        sys.exit(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    bad = 0
    for name in names or MODELS:
        make, data = MODELS[name]
        torch.manual_seed(0)
        begin = time.perf_counter()
        parts = []
        try:
            net = make()
        except ImportError as error:
            print(f"{name:28} skipped: {error}", flush=True)
            continue
        with torch.no_grad():
            for parameter in net.parameters():
                if not parameter.any():  # a head that begins at zero hides all that is before it
                    parameter.normal_(0, 0.1)
        for what in (inference, training, exported):
            try:
                found = what(net, data)
            except Exception as error:
                traceback.print_exc()
                parts.append(f"{what.__name__} FAILED {type(error).__name__}: {str(error)[:150]}")
                bad += 1
                continue
            if isinstance(found, tuple):
                found, how = found
                parts.append(
                    f"{what.__name__} {found:.1e}, {len(how.graphs)} graphs, {how.calls} calls"
                )
                parts += [f"break: {reason} ({source})" for reason, source in how.breaks]
                bad += len(how.graphs) > 2
            else:
                parts.append(
                    f"{what.__name__} {found if isinstance(found, str) else format(found, '.1e')}"
                )
            bad += not isinstance(found, str) and found > (1e-3 if what is training else 1e-4)
        print(f"{name:28} {'; '.join(parts)}; {time.perf_counter() - begin:.0f} s", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
