"""timm: a model of each of 20 families, and what goes with them."""

import tempfile
from pathlib import Path

import timm
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch
from support import Programs, backward, fill, integers, norm, random, train

programs = Programs()

#: Families: a small variant of each, options that make it smaller, and the size of its images.
MODELS = {
    "vit_tiny_patch16_224": ({"img_size": 64, "depth": 2}, 64),
    "deit_tiny_patch16_224": ({"img_size": 64, "depth": 2}, 64),
    "swin_tiny_patch4_window7_224": (
        {"img_size": 56, "depths": (1, 1), "embed_dim": 24, "num_heads": (2, 4)},
        56,
    ),
    "mixer_s32_224": ({"img_size": 64}, 64),
    "resnet18": ({}, 64),
    "resnetv2_50": ({"layers": (1, 1, 1, 1)}, 64),
    "resnext26ts": ({}, 64),
    "convnext_atto": ({}, 64),
    "efficientnet_lite0": ({}, 64),
    "mobilenetv3_small_050": ({}, 64),
    "mobilevit_xxs": ({}, 64),
    "regnetx_002": ({}, 64),
    "densenet121": ({"block_config": (2, 2, 2, 2)}, 64),
    "ghostnet_050": ({}, 64),
    "levit_128s": ({"img_size": 64, "depth": (1, 1, 1)}, 64),
    "poolformer_s12": ({}, 64),
    "edgenext_xx_small": ({}, 64),
    "xcit_nano_12_p16_224": ({"img_size": 64, "depth": 2}, 64),
    "beit_base_patch16_224": ({"img_size": 64, "depth": 2, "embed_dim": 48, "num_heads": 4}, 64),
    "eva02_tiny_patch14_224": ({"img_size": 56, "depth": 2}, 56),
    "hrnet_w18_small": ({}, 64),
    "nfnet_l0": ({}, 64),
    "repvgg_a0": ({}, 64),
    "coatnet_nano_rw_224": ({"img_size": 64}, 64),
    "maxvit_pico_rw_256": ({"img_size": 64}, 64),
}


def model(name, options, size):
    """Add a program: features and classes in eval mode, gradients in train mode."""

    def run():
        net = fill(timm.create_model(name, num_classes=10, drop_rate=0.0, **options))
        images = random(2, 3, size, size, seed=name)
        net.eval()
        with torch.no_grad():
            said = {"eval": net(images), "features": net.forward_features(images)}
        net.train().double()  # gradients of many layers agree to few digits in float32
        out = net(images.double())
        return said | backward(torch.nn.functional.cross_entropy(out, integers(2, high=10)), net)

    programs.add(name, run)


for name, (options, size) in MODELS.items():
    model(name, options, size)


@programs
def features():
    net = fill(timm.create_model("resnet18", features_only=True, out_indices=(1, 3))).eval()
    return {"features": net(random(1, 3, 64, 64)), "channels": net.feature_info.channels()}


@programs
def checkpoints():
    net = fill(timm.create_model("mobilenetv3_small_050", num_classes=4)).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pth")
        torch.save(net.state_dict(), path)
        again = timm.create_model(
            "mobilenetv3_small_050", num_classes=4, checkpoint_path=str(path)
        ).eval()
        images = random(1, 3, 64, 64)
        return {"out": again(images), "equal": torch.equal(again(images), net(images))}


@programs
def optimizers():
    said = {}
    for name in (
        "sgd",
        "adamw",
        "lamb",
        "lion",
        "adafactor",
        "nadamw",
        "radam",
        "rmsproptf",
        "adabelief",
        "madgrad",
        "lars",
        "adan",
    ):
        net = fill(
            torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        )
        optimizer = timm.optim.create_optimizer_v2(net, opt=name, lr=1e-2, weight_decay=0.01)
        said[name] = train(net, lambda: net(random(8, 8)).square().mean(), optimizer)
    return said


@programs
def training():
    net = fill(timm.create_model("resnet10t", num_classes=4))
    average = timm.utils.ModelEmaV3(net, decay=0.5)
    optimizer = timm.optim.create_optimizer_v2(net, opt="sgd", lr=0.01)
    schedule, _ = timm.scheduler.create_scheduler_v2(
        optimizer, sched="cosine", num_epochs=5, warmup_epochs=1
    )
    loss = timm.loss.LabelSmoothingCrossEntropy(0.1)
    losses, rates = [], []
    for epoch in range(3):
        optimizer.zero_grad()
        value = loss(net(random(4, 3, 64, 64)), integers(4, high=4))
        value.backward()
        timm.utils.dispatch_clip_grad(net.parameters(), 1.0)
        optimizer.step()
        average.update(net)
        schedule.step(epoch + 1)
        losses.append(float(value.detach()))
        rates.append(optimizer.param_groups[0]["lr"])
    targets = timm.data.mixup.mixup_target(integers(4, high=4), 4, lam=0.7, smoothing=0.1)
    accuracy = timm.utils.accuracy(random(8, 4), integers(8, high=4), topk=(1, 2))
    return {"losses": losses, "rates": rates, "average": norm(average.parameters()), "mixup": targets,
            "accuracy": [float(a) for a in accuracy], "soft": timm.loss.SoftTargetCrossEntropy()(random(4, 4), targets)}  # fmt: skip


@programs
def data():
    from PIL import Image

    config = timm.data.resolve_data_config({}, model=timm.create_model("resnet18"))
    image = Image.new("RGB", (300, 260), (10, 200, 30))
    return {
        "eval": timm.data.create_transform(**config)(image),
        "config": [list(config["input_size"]), config["interpolation"]],
    }
