"""torchvision: models, ops, transforms, datasets, files of images."""

import gzip
import struct
import tempfile
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
import torchvision
from support import Programs, backward, fill, integers, norm, random
from torchvision import models, ops, tv_tensors
from torchvision.transforms import v2
from torchvision.transforms import functional as F

programs = Programs()


def model(name, build, size=64, batch=2, output=lambda out: out):
    """Add a program: a model forward in eval mode, then forward and backward in train mode."""

    def run():
        net = fill(build())
        images = random(batch, 3, size, size, seed=name)
        net.eval()
        with torch.no_grad():
            said = {"eval": output(net(images))}
        net.train().double()  # gradients of many layers agree to few digits in float32
        for module in net.modules():
            if isinstance(
                module,
                (torch.nn.Dropout, torch.nn.Dropout2d, torch.nn.Dropout3d, ops.StochasticDepth),
            ):
                module.p = 0.0
        out = net(images.double())
        outs = (
            list(out)
            if isinstance(out, tuple)
            else list(out.values())
            if isinstance(out, dict)
            else [out]
        )
        return said | backward(sum((o**2).mean() for o in outs), net)

    programs.add(name, run)


def first(out):
    return out["out"]


def small_vit():
    return models.VisionTransformer(
        image_size=64,
        patch_size=16,
        num_layers=2,
        num_heads=4,
        hidden_dim=64,
        mlp_dim=128,
        num_classes=10,
    )


def small_swin():
    return models.SwinTransformer(
        [4, 4], 24, [2, 2], [2, 4], [7, 7], stochastic_depth_prob=0.0, num_classes=10
    )


def small_maxvit():
    return models.MaxVit(
        input_size=(64, 64), stem_channels=16, partition_size=2, block_channels=[16, 32], block_layers=[1, 1],
        head_dim=8, stochastic_depth_prob=0.0, num_classes=10,
    )  # fmt: skip


for name in (
    "resnet18", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "densenet121", "squeezenet1_1",
    "shufflenet_v2_x0_5", "mnasnet0_5", "regnet_y_400mf",
):  # fmt: skip
    model(name, lambda name=name: getattr(models, name)(num_classes=10))
model(
    "vgg11_bn",
    lambda: torch.nn.Sequential(
        models.vgg11_bn(num_classes=10, init_weights=False).features, torch.nn.Flatten()
    ),
)
model("convnext", lambda: models.ConvNeXt([models.convnext.CNBlockConfig(16, 32, 1), models.convnext.CNBlockConfig(32, None, 1)], num_classes=10))  # fmt: skip
model("swin", small_swin)
model("vit", small_vit)
model("maxvit", small_maxvit)
model("googlenet", lambda: models.googlenet(num_classes=10, init_weights=False, aux_logits=False))
model(
    "fcn_resnet50",
    lambda: models.segmentation.fcn_resnet50(weights_backbone=None, num_classes=5),
    output=first,
)
model(
    "deeplabv3_mobilenet",
    lambda: models.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=5),
    output=first,
)
model(
    "lraspp_mobilenet",
    lambda: models.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=5),
    output=first,
)


@programs
def r3d_18():
    net = fill(models.video.r3d_18(num_classes=5)).double()
    out = net(random(1, 3, 4, 32, 32).double())
    return {"out": out} | backward((out**2).mean(), net)


@programs
def raft_small():
    net = fill(models.optical_flow.raft_small(), 0.5).eval()
    with torch.no_grad():
        flows = net(
            random(1, 3, 128, 128, seed=1), random(1, 3, 128, 128, seed=2), num_flow_updates=2
        )
    return {"flow": flows[-1]}


def detector(name, build, masks=False, keypoints=False, digits=3):
    """Add a program: a detector's losses and gradients, and what it detects."""

    def run():
        # Which anchors are sampled must not depend on a stream of random numbers.
        randperm, torch.randperm = torch.randperm, lambda n, **kwargs: torch.arange(n, **kwargs)
        try:
            net = fill(build()).double()  # which boxes are kept must not hang on the last digits
            images = [
                random(3, 96, 128, seed=1).double().sigmoid(),
                random(3, 120, 96, seed=2).double().sigmoid(),
            ]
            targets = []
            for image, boxes in zip(
                images,
                ([[10.0, 20.0, 60.0, 80.0]], [[5.0, 5.0, 40.0, 50.0], [30.0, 40.0, 90.0, 110.0]]),
            ):
                target = {
                    "boxes": torch.tensor(boxes, dtype=torch.float64),
                    "labels": torch.ones(len(boxes), dtype=torch.int64),
                }
                if masks:
                    target["masks"] = torch.zeros(len(boxes), *image.shape[1:], dtype=torch.uint8)
                    target["masks"][:, 20:60, 15:50] = 1
                if keypoints:
                    target["keypoints"] = torch.tensor(
                        [[[20.5, 30.5, 1.0], [40.5, 45.5, 1.0]]] * len(boxes)
                    )
                targets.append(target)
            net.train()
            losses = net(images, targets)
            said = {"losses": {key: float(value) for key, value in losses.items()}}
            said |= backward(sum(losses.values()), net)
            net.eval()
            with torch.no_grad():
                found = net(images)
            return said | {"found": [{key: len(v) for key, v in image.items()} for image in found],
                           "boxes": [norm([image["boxes"]]) for image in found],
                           "scores": [image["scores"][:8] for image in found]}  # fmt: skip
        finally:
            torch.randperm = randperm

    programs.add(name, run)


detection = models.detection
_small = {
    "weights": None,
    "weights_backbone": None,
    "num_classes": 3,
    "min_size": 96,
    "max_size": 128,
}


def keypoint_rcnn():
    from torchvision.models.detection.backbone_utils import mobilenet_backbone

    backbone = mobilenet_backbone(
        backbone_name="mobilenet_v3_large", weights=None, fpn=True, trainable_layers=6
    )
    return detection.KeypointRCNN(
        backbone, 2, 96, 128,
        rpn_anchor_generator=detection.rpn.AnchorGenerator(((32, 64, 128),) * 3, ((0.5, 1.0, 2.0),) * 3),
        keypoint_head=detection.keypoint_rcnn.KeypointRCNNHeads(256, (32, 32)),
        keypoint_predictor=detection.keypoint_rcnn.KeypointRCNNPredictor(32, 2),
    )  # fmt: skip


detector("fasterrcnn_mobilenet", lambda: detection.fasterrcnn_mobilenet_v3_large_320_fpn(**_small))
detector("maskrcnn_resnet50", lambda: detection.maskrcnn_resnet50_fpn(**_small), masks=True)
detector("keypointrcnn_mobilenet", keypoint_rcnn, keypoints=True)
detector("retinanet_resnet50", lambda: detection.retinanet_resnet50_fpn(**_small))
detector("fcos_resnet50", lambda: detection.fcos_resnet50_fpn(**_small))
detector(
    "ssdlite_mobilenet",
    lambda: detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=3
    ),
)


# --- ops -----------------------------------------------------------------------------------------


def boxes(count, seed=0, extent=40.0):
    rng = np.random.default_rng(seed)
    corners = rng.random((count, 4)).astype("float32") * extent
    corners[:, 2:] += corners[:, :2]
    return torch.from_numpy(corners)


@programs
def nms():
    scores = random(200, seed="scores")
    groups = integers(200, high=5, seed="groups")
    return {
        "nms": [ops.nms(boxes(200), scores, threshold) for threshold in (0.1, 0.3, 0.5, 0.7)],
        "many": ops.nms(boxes(3000), random(3000, seed="many"), 0.5),
        "ties": ops.nms(boxes(200).round(), scores.round(), 0.4),
        "none": ops.nms(torch.zeros(0, 4), torch.zeros(0), 0.5),
        "batched": ops.batched_nms(boxes(200), scores, groups, 0.5),
    }


def regions():
    rois = torch.cat([integers(12, 1, high=2, seed="image").float(), boxes(12, 1, 30.0)], 1)
    rois[0, 1:] = torch.tensor([5.0, 5.0, 5.0, 5.0])
    rois[1, 1:] = torch.tensor([-8.0, -9.0, 60.0, 70.0])
    return rois


def roi(name, call):
    """Add a program: an op on regions, forward and backward."""

    def run():
        said = {}
        for dtype in ("float32", "float64"):
            image = random(2, 12, 16, 20, seed=name, dtype=dtype).requires_grad_()
            for number, out in enumerate(call(image, regions().to(image.dtype))):
                (grad,) = torch.autograd.grad((out * out.detach().cos()).sum(), image)
                said[f"{dtype} {number}"] = {"out": out, "grad": grad}
        return said

    programs.add(name, run)


roi("roi_align", lambda x, r: [
    ops.roi_align(x, r, (3, 2), 0.5, ratio, aligned) for ratio in (-1, 1, 2) for aligned in (False, True)
])  # fmt: skip
roi("roi_pool", lambda x, r: [ops.roi_pool(x, r, 3, 0.5), ops.roi_pool(x, r, (2, 5), 1.0)])
# A region without extent is 0 / 0 in ps_roi_align, so it is left out.
roi(
    "ps_roi_align",
    lambda x, r: [ops.ps_roi_align(x, r[1:], (3, 2), 0.5, ratio) for ratio in (-1, 2)],
)
roi("list_of_regions", lambda x, r: [ops.RoIAlign(2, 0.5, 2)(x, [r[:5, 1:], r[5:, 1:]])])


@programs
def ps_roi_pool():
    # Its gradient in torchvision takes in a row and a column that forward leaves out, so regions end before them.
    image = random(2, 12, 16, 20).requires_grad_()
    rois = torch.cat([integers(12, 1, high=2, seed="image").float(), boxes(12, 1, 14.0)], 1)
    out = ops.ps_roi_pool(image, rois, (3, 2), 0.5)
    out.square().sum().backward()
    return {"out": out, "grad": image.grad, "wide": ops.ps_roi_pool(image, regions(), (2, 2), 0.5)}


@programs
def deform_conv2d():
    said = {}
    for groups, offset_groups, masked in ((1, 1, False), (2, 1, True), (1, 2, True), (2, 2, False)):
        args = [random(2, 4, 9, 10), random(2, 2 * offset_groups * 6, 5, 10, seed=1) * 2, random(6, 4 // groups, 3, 2, seed=2),
                random(6, seed=3)]  # fmt: skip
        mask = random(2, offset_groups * 6, 5, 10, seed=4) if masked else None
        args = [a.requires_grad_() for a in args]
        out = ops.deform_conv2d(*args, stride=(2, 1), padding=(1, 1), dilation=(1, 2), mask=mask)
        grads = torch.autograd.grad(out.square().sum(), args)
        said[f"{groups} {offset_groups} {masked}"] = {"out": out, "grads": grads}
    layer = fill(ops.DeformConv2d(4, 6, 3, padding=1))
    said["layer"] = layer(args[0], random(2, 18, 9, 10, seed=5))
    return said


@programs
def box_ops():
    one, other = boxes(6), boxes(6, 1)
    return {
        "iou": ops.box_iou(one, other),
        "giou": ops.generalized_box_iou(one, other),
        "diou": ops.distance_box_iou(one, other),
        "ciou": ops.complete_box_iou(one, other),
        "area": ops.box_area(one),
        "clip": ops.clip_boxes_to_image(one, (30, 30)),
        "small": ops.remove_small_boxes(one, 10.0),
        "convert": [ops.box_convert(one, "xyxy", to) for to in ("xywh", "cxcywh")],
        "masks": ops.masks_to_boxes(random(3, 20, 20) > 1.5),
    }


@programs
def losses():
    one, other = boxes(6).requires_grad_(), boxes(6, 1)
    said = {}
    for name in ("generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss"):
        loss = getattr(ops, name)(one, other, reduction="mean")
        said[name] = {"loss": loss, "grad": torch.autograd.grad(loss, one)[0]}
    logits = random(4, 5).requires_grad_()
    loss = ops.sigmoid_focal_loss(logits, (random(4, 5, seed=1) > 0).float(), reduction="sum")
    said["focal"] = {"loss": loss, "grad": torch.autograd.grad(loss, logits)[0]}
    return said


@programs
def layers():
    pyramid = fill(ops.FeaturePyramidNetwork([4, 8], 6))
    levels = pyramid({"a": random(1, 4, 16, 16), "b": random(1, 8, 8, 8)})
    pool = ops.MultiScaleRoIAlign(["a", "b"], 3, 2)
    return {
        "pyramid": dict(levels),
        "pool": pool(dict(levels), [boxes(5)], [(64, 64)]),
        "excitation": fill(ops.SqueezeExcitation(4, 2))(random(1, 4, 5, 5)),
        "mlp": fill(ops.MLP(4, [8, 2]))(random(3, 4)),
        "frozen": ops.FrozenBatchNorm2d(4)(random(1, 4, 5, 5)),
        "depth": ops.stochastic_depth(random(3, 4), 0.5, "row", training=False),
        "permute": ops.Permute([1, 0])(random(3, 4)),
    }


@programs
def feature_extraction():
    from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

    net = fill(models.resnet18(num_classes=10)).eval()
    extractor = create_feature_extractor(net, {"layer1": "low", "layer3.0.relu": "high"})
    names, _ = get_graph_node_names(net)
    copied = deepcopy(extractor).train()  # it has a graph for training, too
    return {
        "names": names,
        "features": dict(extractor(random(1, 3, 64, 64))),
        "training": dict(copied(random(2, 3, 64, 64))),
        "assertions": get_graph_node_names(small_vit())[0],
    }


# --- transforms ----------------------------------------------------------------------------------


def picture(height=37, width=45):
    rows, columns = np.mgrid[:height, :width]
    channels = [(rows * 5 + columns * 3) % 256, (rows * columns) % 256, (columns * 7) % 256]
    return torch.from_numpy(np.stack(channels).astype("uint8"))


def all_transforms(f, image):
    yield "resize", f.resize(image, [20, 31], antialias=True)
    yield "resize larger", f.resize(image, [50, 61], antialias=True)
    yield "resize nearest", f.resize(image, [20, 31], interpolation=F.InterpolationMode.NEAREST)
    yield (
        "resize bicubic",
        f.resize(image, [20, 31], interpolation=F.InterpolationMode.BICUBIC, antialias=True),
    )
    yield "hflip", f.hflip(image)
    yield "vflip", f.vflip(image)
    yield "crop", f.crop(image, 3, 4, 60, 20)
    yield "center_crop", f.center_crop(image, [20, 60])
    yield "pad", f.pad(image, [2, 3, 4, 5], fill=7)
    yield "pad reflect", f.pad(image, [2, 3, 4, 5], padding_mode="reflect")
    yield "rotate", f.rotate(image, 30.0)
    yield (
        "rotate expand",
        f.rotate(image, 30.0, expand=True, interpolation=F.InterpolationMode.BILINEAR),
    )
    yield "affine", f.affine(image, 10.0, [3, 4], 1.2, [5.0, 6.0])
    yield (
        "perspective",
        f.perspective(
            image, [[0, 0], [44, 0], [44, 36], [0, 36]], [[2, 3], [40, 1], [42, 33], [1, 30]]
        ),
    )
    yield "brightness", f.adjust_brightness(image, 1.3)
    yield "contrast", f.adjust_contrast(image, 1.3)
    yield "saturation", f.adjust_saturation(image, 1.3)
    yield "hue", f.adjust_hue(image, 0.2)
    yield "gamma", f.adjust_gamma(image, 1.3)
    yield "sharpness", f.adjust_sharpness(image, 1.3)
    yield "blur", f.gaussian_blur(image, [5, 3])
    yield "autocontrast", f.autocontrast(image / 255.0)
    yield "equalize", f.equalize(image)
    yield "invert", f.invert(image)
    yield "posterize", f.posterize(image, 3)
    yield "solarize", f.solarize(image, 100)
    yield "grayscale", f.rgb_to_grayscale(image, 3)
    yield "erase", f.erase(image, 3, 4, 5, 6, torch.tensor(9, dtype=torch.uint8))
    yield "five_crop", f.five_crop(image, [10, 10])


@programs
def transforms_v1():
    from torchvision import transforms as T

    image = picture()
    said = dict(all_transforms(F, image))
    pipeline = T.Compose(
        [
            T.ToPILImage(),
            T.Resize(24),
            T.CenterCrop(20),
            T.ToTensor(),
            T.Normalize((0.5,) * 3, (0.2,) * 3),
        ]
    )
    return said | {"pipeline": pipeline(image), "float": F.resize(image / 255.0, [20, 31])}


@programs
def transforms_v2():
    image = picture()
    said = dict(all_transforms(v2.functional, image))
    said["elastic"] = v2.functional.elastic(image, random(1, 37, 45, 2) * 0.05)
    pipeline = v2.Compose([
        v2.ToImage(), v2.Resize(24, antialias=True), v2.CenterCrop(20), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize((0.5,) * 3, (0.2,) * 3),
    ])  # fmt: skip
    return said | {"pipeline": pipeline(image)}


@programs
def tv_tensors_of_detection():
    image = tv_tensors.Image(picture())
    found = tv_tensors.BoundingBoxes(
        [[5, 6, 20, 30], [1, 2, 10, 12]], format="XYXY", canvas_size=(37, 45)
    )
    mask = tv_tensors.Mask(picture()[:1] > 100)
    pipeline = v2.Compose([
        v2.RandomHorizontalFlip(p=1.0), v2.Resize((20, 30), antialias=True), v2.Pad(2), v2.ConvertBoundingBoxFormat("CXCYWH"),
        v2.SanitizeBoundingBoxes(),
    ])  # fmt: skip
    out = pipeline(
        {
            "image": image,
            "boxes": found,
            "mask": mask,
            "labels": torch.tensor([1, 2]),
            "other": "text",
        }
    )
    kinds = {key: type(value).__name__ for key, value in out.items()}
    sums = [type(image + 1).__name__, type(tv_tensors.wrap(image + 1, like=image)).__name__]
    with tv_tensors.set_return_type("TVTensor"):
        sums.append(type(image + 1).__name__)
    return {"kinds": kinds, "sums": sums, "out": {k: torch.Tensor(v.float()) if k in ("image", "boxes", "mask") else v for k, v in out.items()},
            "canvas": list(out["boxes"].canvas_size), "format": out["boxes"].format.name}  # fmt: skip


@programs
def random_transforms():
    """Run the random ones; the numbers are the library's own, so shapes and types are compared."""
    torch.manual_seed(0)
    image = picture()
    said = {}
    for transform in (
        v2.RandomResizedCrop(20, antialias=True), v2.RandomCrop(20), v2.RandomRotation(20), v2.RandomAffine(10, (0.1, 0.1)),
        v2.ColorJitter(0.2, 0.2, 0.2, 0.1), v2.RandomErasing(1.0), v2.RandomPerspective(p=1.0), v2.GaussianBlur(3), v2.AutoAugment(),
        v2.RandAugment(), v2.TrivialAugmentWide(), v2.AugMix(), v2.RandomPhotometricDistort(), v2.RandomZoomOut(p=0.0),
        v2.RandomGrayscale(1.0), v2.RandomInvert(1.0), v2.RandomAdjustSharpness(2.0), v2.RandomShortestSize(20),
    ):  # fmt: skip
        out = transform(image)
        size = list(out.shape) if not isinstance(transform, v2.RandomZoomOut) else 0
        said[type(transform).__name__] = [size, str(out.dtype)]
    mixed, labels = v2.MixUp(num_classes=3)(random(4, 3, 8, 8), torch.tensor([0, 1, 2, 1]))
    said["MixUp"] = [list(mixed.shape), list(labels.shape)]
    return said


@programs
def datasets():
    from torchvision import datasets as sets
    from torchvision.transforms import ToTensor

    said = {}
    fake = sets.FakeData(5, (3, 8, 8), 4, ToTensor())
    said["fake"] = [len(fake), list(fake[0][0].shape)]
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, "MNIST", "raw")
        raw.mkdir(parents=True)
        images = integers(6, 28, 28, high=256).to(torch.uint8).numpy()
        for name in ("train", "t10k"):
            head = struct.pack(">IIII", 2051, 6, 28, 28)
            Path(raw, f"{name}-images-idx3-ubyte").write_bytes(head + images.tobytes())
            Path(raw, f"{name}-labels-idx1-ubyte").write_bytes(
                struct.pack(">II", 2049, 6) + bytes(range(6))
            )
        Path(raw, "some.gz").write_bytes(gzip.compress(b"x"))
        mnist = sets.MNIST(folder, train=True, transform=ToTensor())
        loader = torch.utils.data.DataLoader(mnist, batch_size=4)
        said["mnist"] = [[x, y] for x, y in loader]
        for kind in ("cat", "dog"):
            Path(folder, "pictures", kind).mkdir(parents=True)
            F.to_pil_image(picture()).save(Path(folder, "pictures", kind, "0.png"))
        folders = sets.ImageFolder(str(Path(folder, "pictures")), ToTensor())
        said["folder"] = [folders.classes, len(folders), folders[1][0], folders[1][1]]
    return said


@programs
def io():
    from torchvision import io as files

    said = {}
    image = picture()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "image.png"))
        files.write_png(image, path)
        said["read_image"] = files.read_image(path)
        said["gray"] = files.read_image(path, files.ImageReadMode.GRAY)
        said["decode"] = files.decode_png(files.encode_png(image))
        said["decode_image"] = files.decode_image(path, mode="RGB_ALPHA")
        files.write_jpeg(image, str(Path(folder, "image.jpg")), quality=90)
        said["jpeg"] = list(files.read_image(str(Path(folder, "image.jpg"))).shape)
        files.write_file(path, torch.arange(10, dtype=torch.uint8))
        said["file"] = files.read_file(
            path
        ).clone()  # torch shows the file itself, written to below
        from PIL import Image

        F.to_pil_image(image).save(path)
        said["pil"] = F.pil_to_tensor(Image.open(path))
    return said


@programs
def utils():
    from torchvision import utils as tools

    said = {"grid": tools.make_grid(random(5, 3, 8, 8), nrow=3, normalize=True)}
    image = picture()
    said["boxes"] = tools.draw_bounding_boxes(image, torch.tensor([[5, 6, 20, 30]]), colors="red")
    said["masks"] = tools.draw_segmentation_masks(
        image, picture()[:1] > 100, colors="blue", alpha=0.5
    )
    said["keypoints"] = tools.draw_keypoints(
        image, torch.tensor([[[5.0, 6.0], [20.0, 30.0]]]), colors="blue"
    )
    said["flow"] = tools.flow_to_image(random(2, 8, 8))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "grid.png"))
        tools.save_image(said["grid"], path)
        said["saved"] = torchvision.io.read_image(path)
    return said
