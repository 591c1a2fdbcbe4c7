"""Libraries of many fields, each by a program of its own: probability, processes, graphs, images, agents."""

import numpy as np
import torch
import torch.nn.functional as F
from support import Programs, backward, fill, gradients, integers, norm, random, train
from torch import nn

programs = Programs()


@programs
def pyro_guide():
    """A variational fit whose guide has no variance to speak of, so that random numbers do not matter."""
    import pyro
    import pyro.distributions as dist
    from pyro.infer import SVI, Trace_ELBO
    from pyro.infer.autoguide import AutoDelta

    data = random(20, seed="data") + 3

    def model(data):
        loc = pyro.sample("loc", dist.Normal(0.0, 10.0))
        scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
        with pyro.plate("data", len(data)):
            pyro.sample("x", dist.Normal(loc, scale), obs=data)

    pyro.clear_param_store()
    guide = AutoDelta(model, init_loc_fn=pyro.infer.autoguide.init_to_median(num_samples=1))
    guide = AutoDelta(model, init_loc_fn=lambda site: torch.tensor(1.0))
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    losses = [float(svi.step(data)) for _ in range(20)]
    trace = pyro.poutine.trace(
        pyro.condition(model, {"loc": torch.tensor(2.0), "scale": torch.tensor(1.5)})
    )
    return {"losses": losses, "median": guide.median(), "log": trace.get_trace(data).log_prob_sum()}


@programs
def pyro_distributions():
    import pyro.distributions as dist

    values = random(3, seed="v")
    matrix = torch.eye(3) + 0.1
    return {
        "masked": dist.Normal(0.0, 1.0).expand([3]).mask(values > 0).log_prob(values),
        "event": dist.Normal(torch.zeros(3), 1.0).to_event(1).log_prob(values),
        "delta": dist.Delta(values).log_prob(values),
        "mvt": dist.MultivariateStudentT(torch.tensor(4.0), torch.zeros(3), matrix).log_prob(values),
        "lkj": dist.LKJCholesky(3, 2.0).log_prob(torch.linalg.cholesky(matrix / 1.1)),
        "zip": dist.ZeroInflatedPoisson(rate=torch.tensor(2.0), gate=torch.tensor(0.3)).log_prob(torch.arange(3.0)),
        "hmm": dist.GaussianHMM(
            dist.Normal(torch.zeros(2), 1.0).to_event(1), torch.eye(2), dist.Normal(torch.zeros(2), 1.0).to_event(1),
            torch.eye(2), dist.Normal(torch.zeros(2), 1.0).to_event(1), duration=4,
        ).log_prob(random(4, 2, seed="hmm")),
    }  # fmt: skip


@programs
def pyro_hmc():
    """One trajectory's energy and gradient; its steps are random."""
    import pyro
    import pyro.distributions as dist
    from pyro.infer.mcmc.util import initialize_model

    def model():
        x = pyro.sample("x", dist.Gamma(2.0, 1.0))
        pyro.sample("y", dist.Normal(x, 1.0), obs=torch.tensor(1.5))

    start, potential, transforms, _ = initialize_model(model, ())
    at = {"x": torch.tensor(0.3, requires_grad=True)}
    energy = potential(at)
    return {
        "energy": energy,
        "grad": torch.autograd.grad(energy, at["x"])[0],
        "x": transforms["x"].inv(at["x"]),
    }


@programs
def gpytorch_regression():
    import gpytorch

    x = torch.linspace(0, 1, 15)
    y = torch.sin(6 * x)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    said = train(model, lambda: -mll(model(x), y), torch.optim.Adam(model.parameters(), lr=0.1), 5)
    model.eval(), likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(torch.linspace(0, 1, 4) + 0.03))
    return said | {"mean": found.mean, "variance": found.variance}


@programs
def gpytorch_variational():
    import gpytorch

    x = random(30, 2, seed="x")
    y = (x[:, 0] > 0).float()

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            distribution = gpytorch.variational.CholeskyVariationalDistribution(
                inducing.size(0), mean_init_std=0.0
            )
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.RBFKernel(ard_num_dims=2)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    model, likelihood = Model(x[:8].clone()), gpytorch.likelihoods.BernoulliLikelihood()
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, 30)
    return train(model, lambda: -mll(model(x), y), torch.optim.Adam(model.parameters(), lr=0.05), 4)


@programs
def botorch_acquisition():
    from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
    from botorch.models import SingleTaskGP

    x = random(8, 2, seed="x").double().sigmoid()
    y = (x * x).sum(-1, keepdim=True).sin()
    model = SingleTaskGP(x, y)
    model.eval()
    at = random(3, 1, 2, seed="at").double().sigmoid().requires_grad_()
    ei = LogExpectedImprovement(model, best_f=y.max())(at)
    return {
        "posterior": model.posterior(at.detach()).mean,
        "ei": ei,
        "grad": torch.autograd.grad(ei.sum(), at)[0],
        "ucb": UpperConfidenceBound(model, beta=0.2)(at.detach()),
    }


@programs
def geometric_layers():
    from torch_geometric import nn as layers
    from torch_geometric.data import Batch, Data

    edges = integers(2, 40, high=12, seed="edges")
    x = random(12, 8, seed="x")
    said = {}
    for layer in (
        layers.GCNConv(8, 6), layers.GATConv(8, 3, heads=2), layers.SAGEConv(8, 6), layers.GraphConv(8, 6),
        layers.GINConv(nn.Linear(8, 6)), layers.TransformerConv(8, 6), layers.ChebConv(8, 6, 3),
    ):  # fmt: skip
        layer = fill(layer)
        said[type(layer).__name__] = backward((layer(x, edges) ** 2).mean(), layer)
    batch = Batch.from_data_list(
        [Data(x=x, edge_index=edges), Data(x=x[:5] * 2, edge_index=edges[:, :2] % 5)]
    )
    return said | {
        "pool": layers.global_mean_pool(batch.x, batch.batch),
        "max": layers.global_max_pool(batch.x, batch.batch),
        "batch": batch.edge_index,
    }


@programs
def geometric_training():
    from torch_geometric.nn import GCN

    edges, x, y = (
        integers(2, 40, high=12, seed="edges"),
        random(12, 8, seed="x"),
        integers(12, high=3),
    )
    model = fill(GCN(8, 16, num_layers=2, out_channels=3))
    return train(
        model,
        lambda: F.cross_entropy(model(x, edges), y),
        torch.optim.Adam(model.parameters(), lr=0.01),
    )


@programs
def kornia_images():
    import kornia as K

    image = random(2, 3, 24, 24, seed="image").sigmoid()
    points = torch.tensor([[[0.0, 0.0], [23, 0], [23, 23], [0, 23]]]).repeat(2, 1, 1)
    moved = points + random(2, 4, 2, seed="moved")
    homography = K.geometry.get_perspective_transform(points, moved)
    blurred = K.filters.gaussian_blur2d(image.requires_grad_(), (5, 5), (1.2, 1.2))
    return {
        "blur": blurred,
        "grad": torch.autograd.grad((blurred**2).sum(), image)[0],
        "sobel": K.filters.sobel(image),
        "canny": K.filters.canny(image)[0],
        "hsv": K.color.rgb_to_hsv(image),
        "lab": K.color.rgb_to_lab(image),
        "warp": K.geometry.warp_perspective(image, homography, (24, 24)),
        "rotate": K.geometry.rotate(image, torch.tensor([30.0, 45.0])),
        "ssim": K.losses.ssim_loss(image, image.flip(-1), 5),
        "harris": K.feature.harris_response(image),
    }


@programs
def diffusers_unet():
    from diffusers import (
        AutoencoderKL,
        DDIMScheduler,
        DDPMScheduler,
        UNet2DConditionModel,
        UNet2DModel,
    )

    net = fill(UNet2DModel(sample_size=16, block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
                           down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                           up_block_types=("AttnUpBlock2D", "UpBlock2D")))  # fmt: skip
    image, noise = random(2, 3, 16, 16, seed="i"), random(2, 3, 16, 16, seed="n")
    steps = torch.tensor([10, 500])
    noisy = DDPMScheduler().add_noise(image, noise, steps)
    said = backward(F.mse_loss(net(noisy, steps).sample, noise), net)
    guided = fill(UNet2DConditionModel(sample_size=8, block_out_channels=(32, 64), layers_per_block=1,
                                       cross_attention_dim=16, norm_num_groups=8, attention_head_dim=8,
                                       down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                       up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))).eval()  # fmt: skip
    scheduler = DDIMScheduler()
    scheduler.set_timesteps(3)
    latents = random(1, 4, 8, 8, seed="latents")
    coder = fill(AutoencoderKL(block_out_channels=(32,), norm_num_groups=8, sample_size=16)).eval()
    with torch.no_grad():
        for step in scheduler.timesteps:
            predicted = guided(
                latents, step, encoder_hidden_states=random(1, 5, 16, seed="text")
            ).sample
            latents = scheduler.step(predicted, step, latents).prev_sample
        return said | {"latents": latents, "image": coder.decode(latents).sample}


@programs
def segmentation_models():
    import segmentation_models_pytorch as smp

    said = {}
    for kind in ("Unet", "FPN", "DeepLabV3Plus"):
        net = fill(getattr(smp, kind)("resnet18", encoder_weights=None, classes=3)).double()
        for module in net.modules():
            if isinstance(module, (nn.Dropout, nn.Dropout2d)):
                module.p = 0.0
        image, target = random(2, 3, 64, 64).double(), integers(2, 64, 64, high=3)
        loss = smp.losses.DiceLoss("multiclass")(net(image), target)
        said[kind] = backward(loss, net)
    return said


@programs
def open_clip_model():
    import open_clip

    net = fill(open_clip.CLIP(
        16, {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 16},
        {"context_length": 12, "vocab_size": 50, "width": 32, "heads": 2, "layers": 2},
    ))  # fmt: skip
    text = integers(3, 12, high=50, seed="text")
    image, words, scale = net(random(3, 3, 32, 32), text)
    logits = scale * image @ words.T
    return backward(F.cross_entropy(logits, torch.arange(3)), net)


@programs
def skorch_classifier():
    from skorch import NeuralNetClassifier

    x, y = random(40, 5, seed="x").numpy(), integers(40, high=2, seed="y").numpy()
    net = NeuralNetClassifier(
        lambda: fill(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(-1))),
        max_epochs=3, lr=0.1, train_split=None, verbose=0, iterator_train__shuffle=False,
    )  # fmt: skip
    net.fit(x, y)
    return {
        "losses": net.history[:, "train_loss"],
        "probabilities": net.predict_proba(x)[:3].tolist(),
    }


@programs
def tabnet():
    from pytorch_tabnet.tab_network import TabNet

    net = fill(
        TabNet(6, 2, n_d=4, n_a=4, n_steps=2, group_attention_matrix=torch.eye(6).double())
    ).double()
    out, sparse = net(random(32, 6).double())
    return backward((out**2).mean() + sparse, net)


@programs
def torchinfo_summary():
    import torchinfo

    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)
    )
    found = torchinfo.summary(net, (1, 3, 8, 8), verbose=0)
    return {"text": str(found), "parameters": found.total_params, "adds": found.total_mult_adds}


@programs
def torchdiffeq_adjoint():
    from torchdiffeq import odeint, odeint_adjoint

    net = fill(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))).double()

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, t, y):
            return self.net(y)

    times, start = torch.linspace(0, 1, 5).double(), random(3, 2).double()
    said = {}
    for solve in (odeint, odeint_adjoint):
        net.zero_grad()
        said[solve.__name__] = backward((solve(Field(), start, times) ** 2).sum(), net)
    return said


@programs
def stable_baselines():
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    import gymnasium

    agent = PPO(
        "MlpPolicy", DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]), n_steps=32, device="cpu"
    )
    policy = fill(agent.policy)
    seen, actions = random(16, 4, seed="seen"), integers(16, high=2, seed="actions")
    values, logs, entropy = policy.evaluate_actions(seen, actions)
    said = backward((values**2).mean() - logs.mean() - 0.01 * entropy.mean(), policy)
    chosen = policy.predict(seen.numpy(), deterministic=True)[0].tolist()
    agent.learn(64)  # with random actions: that it runs
    return said | {"action": chosen, "steps": agent.num_timesteps}


@programs
def captum_attributions():
    from captum.attr import (
        DeepLift,
        GradientShap,
        IntegratedGradients,
        LayerGradCam,
        Occlusion,
        Saliency,
    )

    net = fill(
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    ).eval()
    x = random(2, 1, 8, 8).requires_grad_()
    return {
        "saliency": Saliency(net).attribute(x, target=1),
        "integrated": IntegratedGradients(net).attribute(x, target=1, n_steps=8),
        "deep": DeepLift(net).attribute(x, target=1),
        "cam": LayerGradCam(net, net[0]).attribute(x, target=1),
        "occlusion": Occlusion(net).attribute(x, (1, 3, 3), target=1),
        "shap": list(
            GradientShap(net).attribute(x, torch.zeros_like(x), target=1, n_samples=2).shape
        ),
    }


@programs
def e3nn_equivariance():
    from e3nn import o3

    product = fill(o3.FullyConnectedTensorProduct("4x0e + 2x1o", "1x0e + 1x1o", "3x0e + 2x1o"))
    a, b = random(5, 10, seed="a"), random(5, 4, seed="b")
    harmonics = o3.spherical_harmonics([0, 1, 2], random(5, 3, seed="r"), normalize=True)
    out = product(a, b)
    return {"out": out, "harmonics": harmonics, "wigner": o3.wigner_3j(1, 1, 2)} | backward(
        (out**2).sum(), product
    )


@programs
def x_transformer():
    from x_transformers import Decoder, TransformerWrapper

    net = fill(TransformerWrapper(num_tokens=50, max_seq_len=16,
                                  attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)))  # fmt: skip
    tokens = integers(2, 12, high=50)
    return backward(F.cross_entropy(net(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:]), net)


@programs
def small_layers():
    import entmax
    import pytorch_msssim
    import torchcrf
    from lion_pytorch import Lion
    from rotary_embedding_torch import RotaryEmbedding
    from vit_pytorch import SimpleViT

    x = random(3, 6).requires_grad_()
    sparse = entmax.entmax15(x, -1)
    crf = fill(torchcrf.CRF(4, batch_first=True))
    scores, tags = random(2, 5, 4), integers(2, 5, high=4)
    vit = fill(
        SimpleViT(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64)
    )
    image = random(2, 3, 32, 32, seed="image")
    return {
        "entmax": sparse,
        "sparsemax": entmax.sparsemax(x, -1),
        "grad": torch.autograd.grad((sparse**2).sum(), x)[0],
        "crf": crf(scores, tags),
        "decoded": crf.decode(scores),
        "ssim": pytorch_msssim.ssim(image.sigmoid(), image.flip(0).sigmoid(), 1.0),
        "rotary": RotaryEmbedding(8).rotate_queries_or_keys(random(1, 2, 5, 8)),
        "lion": train(vit, lambda: (vit(image) ** 2).mean(), Lion(vit.parameters(), lr=1e-3)),
    }


@programs
def spiking():
    import snntorch
    from snntorch import surrogate

    layer, neuron = (
        fill(nn.Linear(6, 4)),
        snntorch.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid()),
    )
    state, spikes = neuron.init_leaky(), []
    for step in range(5):
        spike, state = neuron(layer(random(3, 6, seed=step)), state)
        spikes.append(spike)
    return {"spikes": torch.stack(spikes)} | backward(
        (torch.stack(spikes).sum(0) ** 2).sum() + state.sum(), layer
    )


@programs
def yolo():
    from ultralytics.nn.tasks import DetectionModel

    net = fill(DetectionModel("yolo11n.yaml", nc=3, verbose=False)).double()
    out = net(random(2, 3, 64, 64).double())
    feats = out["feats"] if isinstance(out, dict) else out
    said = backward(sum((f**2).mean() for f in feats), net)
    net.eval()
    with torch.no_grad():
        return said | {"eval": net(random(1, 3, 64, 64).double())[0]}


@programs
def metric_learning():
    from pytorch_metric_learning import losses, miners

    x, labels = random(12, 6), integers(12, high=3)
    said = {}
    for loss in (
        losses.TripletMarginLoss(),
        losses.ContrastiveLoss(),
        losses.NTXentLoss(),
        losses.MultiSimilarityLoss(),
    ):
        leaf = x.clone().requires_grad_()
        value = loss(leaf, labels)
        said[type(loss).__name__] = {"loss": value, "grad": torch.autograd.grad(value, leaf)[0]}
    mined = miners.MultiSimilarityMiner()(x, labels)
    return said | {"mined": [list(m.shape) for m in mined]}


@programs
def second_order():
    import higher
    import torchsde

    net = fill(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)))
    x, y = random(10, 3, seed="x"), random(10, 1, seed="y")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with higher.innerloop_ctx(net, optimizer, copy_initial_weights=False) as (fast, steps):
        for _ in range(2):
            steps.step(F.mse_loss(fast(x), y))
        F.mse_loss(fast(x * 2), y).backward()
    assert torchsde.sdeint
    return {
        "gradients": gradients(net),
        "norm": norm([p.grad for p in net.parameters()]),
        "np": float(np.float32(1)),
    }
