"""Libraries of many fields that came later, each by a program of its own; see others.py."""

import torch
import torch.nn.functional as F
from support import Programs, backward, fill, integers, random, train
from torch import nn

programs = Programs()


@programs
def monai_unet():
    from monai.losses import DiceCELoss
    from monai.networks.nets import UNet

    net = fill(
        UNet(3, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1, act=("LEAKYRELU", {}))
    )
    out = net(random(1, 1, 16, 16, 16))
    return backward(
        DiceCELoss(to_onehot_y=True, softmax=True)(out, integers(1, 1, 16, 16, 16, high=2)), net
    ) | {"out": out}


@programs
def monai_transforms():
    from monai.inferers import sliding_window_inference
    from monai.metrics import DiceMetric
    from monai.transforms import Compose, Resize, ScaleIntensity, Spacing

    image = random(1, 12, 12, 12)
    done = Compose(
        [ScaleIntensity(), Resize((8, 8, 8), mode="trilinear"), Spacing((2.0, 2.0, 2.0))]
    )(image)
    net = fill(nn.Conv3d(1, 2, 3, padding=1))
    window = sliding_window_inference(image[None], (8, 8, 8), 1, net, overlap=0.5)
    dice = DiceMetric()(integers(1, 2, 6, 6, high=2), integers(1, 2, 6, 6, high=2, seed="y"))
    return {"done": torch.as_tensor(done), "window": window, "dice": dice}


@programs
def sentence_transformer():
    from sentence_transformers import util
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    token = random(2, 5, 8).requires_grad_()
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    features = {"token_embeddings": token, "attention_mask": mask}
    said = {}
    for mode in ("mean", "max", "cls", "weightedmean", "lasttoken"):
        said[mode] = Pooling(8, pooling_mode=mode)(dict(features))["sentence_embedding"]
    embedded = Normalize()({"sentence_embedding": said["mean"]})["sentence_embedding"]
    score = util.cos_sim(embedded, embedded)
    score.sum().backward()
    hits = util.semantic_search(random(1, 8), random(6, 8, seed="corpus"), top_k=3)
    assert CosineSimilarityLoss
    return said | {
        "score": score,
        "grad": token.grad,
        "hits": [[hit["corpus_id"], hit["score"]] for hit in hits[0]],
    }


@programs
def ignite():
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss

    x, y = random(16, 3, seed="x"), integers(16, high=3)
    batches = list(zip(x.split(8), y.split(8), strict=True))
    net = fill(nn.Linear(3, 3))
    trainer = create_supervised_trainer(
        net, torch.optim.SGD(net.parameters(), lr=0.5), F.cross_entropy
    )
    losses = []
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED, lambda engine: losses.append(engine.state.output)
    )
    trainer.run(batches, max_epochs=2)
    evaluator = create_supervised_evaluator(
        net, metrics={"accuracy": Accuracy(), "loss": Loss(F.cross_entropy)}
    )
    return {"losses": losses} | dict(evaluator.run(batches).metrics)


@programs
def flows():
    import zuko

    flow = fill(zuko.flows.NSF(3, 2, transforms=2, hidden_features=(8, 8)), 0.3)
    x, c = random(4, 3), random(4, 2, seed="c")
    loss = -flow(c).log_prob(x).mean()
    return backward(loss, flow) | {"inverse": flow(c).transform.inv(flow(c).transform(x))}


@programs
def quantized_vectors():
    from local_attention import LocalAttention
    from vector_quantize_pytorch import FSQ, LFQ

    x = random(2, 8, 4).requires_grad_()
    codes, indices = FSQ([8, 5, 5, 3])(x)
    codes.square().sum().backward()
    q = random(1, 2, 8, 4, seed="q")
    binary = LFQ(dim=4, codebook_size=16).eval()(random(2, 8, 4))
    return {"codes": codes, "indices": indices, "grad": x.grad, "binary": binary.quantized,
            "local": LocalAttention(dim=4, window_size=4, causal=True)(q, q, q)}  # fmt: skip


@programs
def optimizers():
    import torch_optimizer

    said = {}
    for name in ("Lamb", "RAdam", "DiffGrad", "Yogi", "NovoGrad", "AdaBound", "Shampoo"):
        net = fill(nn.Linear(3, 1))
        optimizer = getattr(torch_optimizer, name)(net.parameters(), lr=0.01)
        said[name] = train(
            net, lambda n=net: F.mse_loss(n(random(8, 3)), random(8, 1, seed="y")), optimizer
        )
    return said


@programs
def counts():
    import thop
    from torch.utils.flop_counter import FlopCounterMode

    net = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 4),
    )
    with FlopCounterMode(display=False) as counter:
        net(random(1, 3, 9, 9)).sum().backward()
    return {
        "macs": list(thop.profile(net, (random(1, 3, 9, 9),), verbose=False)),
        "flops": counter.get_total_flops(),
    }


@programs
def edges():
    from torch_geometric import EdgeIndex, Index
    from torch_geometric.nn import GCNConv

    edge = EdgeIndex([[0, 1, 1, 2, 3], [1, 0, 2, 1, 0]], sparse_size=(4, 4), sort_order="row")
    (row, col), _ = edge.get_csr()
    net = fill(GCNConv(3, 2))
    out = net(random(4, 3), edge.as_tensor())
    index = Index([0, 1, 1, 2], dim_size=3, is_sorted=True)
    return {
        "flip": edge.flip(0).as_tensor(), "row": row, "col": col, "sorted": edge.sort_by("col").values.as_tensor(),
        "kept": type(edge[:, 1:3]).__name__, "out": out, "indptr": index.get_indptr(), "sum": int(index.sum()),
    }  # fmt: skip
