"""Small programs, differentiated once and twice: views, writes, hooks, ties and edges; against torch."""

# ruff: noqa: C408, PLC3002 - programs of one line

import math
import warnings

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch says what the gradients are")

#: What a program may raise, there and here.
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


def functional(m):
    return m.nn.functional


ONCE = dict(
    view=lambda m, x: (x * 1).view(2, 2) * 2,
    inplace=lambda m, x: (x * 1).mul_(3),
    viewin=lambda m, x: (lambda y: (y[:2].mul_(5), y)[1])(x * 1),
    viewin2=lambda m, x: (lambda y,: (y.view(2, 2)[0].fill_(0), y)[1])(x * 1),
    chain=lambda m, x: (lambda y: (y[1:].view(-1)[0:2].add_(1).mul_(2), y**2)[1])(x * 1),
    splitin=lambda m, x: (lambda y: (y.split(2)[0].mul_(2), y)[1])(x * 1),
    unbindin=lambda m, x: (lambda y: (y.unbind(0)[0].mul_(2), y)[1])(x * 1),
    chunkin=lambda m, x: (lambda y: (y.chunk(2)[0].mul_(2), y)[1])(x * 1),
    leafin=lambda m, x: x.mul_(2),
    leafview=lambda m, x: x[:2].mul_(2),
    detachin=lambda m, x: (lambda y: (y.detach().mul_(5), y * y)[1])(x * 1),
    datain=lambda m, x: (lambda y: (y.data.mul_(5), y * y)[1])(x * 1),
    saved=lambda m, x: (lambda y,: (lambda z: (y.mul_(2), z)[1])(y * y))(x * 1),
    savedres=lambda m, x: (lambda y: (y.mul_(2), y)[1])(x.exp()),
    savedres2=lambda m, x: (lambda y: (y.add_(1), y)[1])((x * 1).sigmoid()),
    setitem=lambda m, x: (lambda y: (y.__setitem__(0, x[1] * 2), y)[1])(x * 1),
    setitem2=lambda m, x: (lambda y: (y.__setitem__(slice(0, 2), x[2:]), y * y)[1])(m.zeros(4)),
    masked=lambda m, x: (lambda y: (y.__setitem__(x > 2, 0.0), y * y)[1])(x * 1),
    copy=lambda m, x: m.zeros(4).copy_(x) * x,
    fill=lambda m, x: (x * 1).fill_(x[0]),
    expand=lambda m, x: x[:1].expand(3) * 2,
    transin=lambda m, x: (lambda y: (y.t()[0].mul_(2), y)[1])((x * 1).view(2, 2)),
    asst=lambda m, x: (x * 1).as_strided((3, 2), (1, 1)),
    asst2=lambda m, x: (lambda y: (y.as_strided((2,), (2,)).mul_(3), y)[1])(x * 1),
    diag=lambda m, x: (lambda y: (y.diagonal().mul_(3), y)[1])((x * 1).view(2, 2)),
    unfold=lambda m, x: (x * 1).unfold(0, 2, 1),
    squeeze=lambda m, x: (x * 1).unsqueeze_(0).squeeze_(0) * 2,
    tin=lambda m, x: (x * 1).view(2, 2).t_() * m.tensor([[1.0, 2], [3, 4]]),
    reluin=lambda m, x: functional(m).relu((x - 2), inplace=True),
    scat=lambda m, x: m.zeros(4).scatter(0, m.tensor([0, 0, 1, 1]), x),
    scatr=lambda m, x: m.ones(4).scatter_reduce(0, m.tensor([0, 0, 1, 1]), x, "amax"),
    gather=lambda m, x: x.gather(0, m.tensor([0, 0, 1])),
    idxadd=lambda m, x: m.zeros(2).index_add(0, m.tensor([0, 0, 1, 1]), x),
    sort=lambda m, x: x.sort(descending=True)[0] * m.arange(4.0),
    topk=lambda m, x: x.topk(2)[0],
    cummax=lambda m, x: x.cummax(0)[0],
    prod0=lambda m, x: (x - 1).prod(),
    norm0=lambda m, x: (x * 0).norm(),
    max_=lambda m, x: m.ones(4).max() * x.max(),
    maxt=lambda m, x: m.tensor([1.0, 1.0]).maximum((x * 0 + 1)[:2]),
    amaxt=lambda m, x: (x * 0).amax(),
    maxties=lambda m, x: (x * 0).max(),
    mint=lambda m, x: (x * 0).min(0)[0],
    median=lambda m, x: x.median(),
    clamp=lambda m, x: x.clamp(1, 3),
    clampt=lambda m, x: x.clamp(min=m.tensor(2.0)),
    abs0=lambda m, x: (x - 1).abs(),
    sqrt0=lambda m, x: (x - 1).sqrt(),
    pow0=lambda m, x: (x - 1) ** 0,
    powx=lambda m, x: (x - 1) ** x,
    xpow=lambda m, x: 2**x,
    where=lambda m, x: m.where(x > 2, x, x * x),
    std=lambda m, x: x.std(),
    std1=lambda m, x: x[:1].std(),
    var0=lambda m, x: (x * 0).std(),
    cumprod=lambda m, x: (x - 2).cumprod(0),
    logsumexp=lambda m, x: x.logsumexp(0),
    softinf=lambda m, x: m.softmax(m.where(x > 2, x, m.tensor(-float("inf"))), 0) * m.arange(4.0),
    det=lambda m, x: x.view(2, 2).det(),
    inv=lambda m, x: x.view(2, 2).inverse(),
    svd=lambda m, x: m.linalg.svdvals(x.view(2, 2)),
    tri=lambda m, x: x.view(2, 2).triu(),
    flip=lambda m, x: x.flip(0) * m.arange(4.0),
    roll=lambda m, x: x.roll(1) * m.arange(4.0),
    rep=lambda m, x: x.repeat(2, 2),
    ri=lambda m, x: x.repeat_interleave(2),
    dist=lambda m, x: m.dist(x, x),
    cdist=lambda m, x: m.cdist(x.view(2, 2), x.view(2, 2)),
    atan2=lambda m, x: m.atan2(x * 0, x * 0),
    angle=lambda m, x: m.angle(x * m.tensor([1.0, -1.0, 0.0, math.nan])),
    sinc=lambda m, x: m.sinc(x * 0),
    xlogy=lambda m, x: m.xlogy(x * 0, x * 0),
    lerp=lambda m, x: m.lerp(x, x * 2, 0.3),
    complex=lambda m, x: m.complex(x, x).abs(),
    vac=lambda m, x: m.view_as_complex(x.view(2, 2)).angle(),
    fft=lambda m, x: m.fft.fft(x).abs(),
    ctype=lambda m, x: x.to(m.float64) * 2,
    half=lambda m, x: (x.half() * 2).float(),
    intm=lambda m, x: x * m.tensor([1, 2, 3, 4]),
    tolist=lambda m, x: m.tensor(2.0) * x.sum().item(),
    nonreq=lambda m, x: m.ones(2),
    hooknone=lambda m, x: (lambda y: (y.register_hook(lambda g: None), y)[1])(x * 2),
    hookmod=lambda m, x: (lambda y: (y.register_hook(lambda g: g * 3), y)[1])(x * 2),
    retain=lambda m, x: (lambda y: (y.retain_grad(), (y * 2).sum().backward(), y.grad * x)[2])(
        x * 2
    ),
    twice=lambda m, x: (lambda y: (y.backward(), y)[1])((x * x).sum()),
    none=lambda m, x: (x * 2).backward(),
    int_=lambda m, x: m.tensor([1, 2]).requires_grad_(),
    nd=lambda m, x: (x > 2).float(),
    rg=lambda m, x: (x * 2).requires_grad_(False),
    det_=lambda m, x: (x * 2).detach_() * x,
    detview=lambda m, x: (x * 2)[:2].detach_(),
    gradmode=lambda m, x: (
        lambda: (m.set_grad_enabled(False), x * 2, m.set_grad_enabled(True))[1]
    )(),
    nanred=lambda m, x: m.nansum(m.where(x > 2, x, m.tensor(float("nan")))),
    embed=lambda m, x: functional(m).embedding(m.tensor([0, 0, 1]), x.view(2, 2), padding_idx=0),
    hards=lambda m, x: functional(m).hardswish(x * 1.5 - 3),
    huber=lambda m, x: functional(m).huber_loss(x, m.ones(4)),
    smooth0=lambda m, x: functional(m).smooth_l1_loss(x, m.ones(4), beta=0.0),
    logsig=lambda m, x: functional(m).logsigmoid(x - 1),
    elu=lambda m, x: functional(m).elu(x - 2),
    prelu=lambda m, x: functional(m).prelu(x - 2, m.tensor([0.1])),
    softplus=lambda m, x: functional(m).softplus(x * 10),
    gelu=lambda m, x: functional(m).gelu(x),
    cosim=lambda m, x: functional(m).cosine_similarity(x[None] * 0, x[None]),
    normalize=lambda m, x: functional(m).normalize(x * 0, dim=0),
    kthv=lambda m, x: x.kthvalue(2)[0],
    quant=lambda m, x: x.quantile(0.3),
    renorm=lambda m, x: x.view(2, 2).renorm(2, 0, 1.0),
    trace=lambda m, x: x.view(2, 2).trace(),
    kron=lambda m, x: m.kron(x, x),
    einsum=lambda m, x: m.einsum("i,j->ij", x, x),
    put=lambda m, x: m.zeros(4).put(m.tensor([0, 0]), x[:2], accumulate=True),
    take=lambda m, x: x.take(m.tensor([0, 0])),
    tile=lambda m, x: x.tile(2),
    mse=lambda m, x: functional(m).mse_loss(x, x * 2),
    triplet=lambda m, x: functional(m).triplet_margin_loss(x[None], x[None], x[None] * 0),
)

TWICE = dict(
    exp=lambda m, x: x.exp(),
    pow=lambda m, x: x**3.5,
    mm=lambda m, x: x[:, None] @ x[None],
    softmax=lambda m, x: x.softmax(0) * m.arange(3.0),
    ls=lambda m, x: x.log_softmax(0) * m.arange(3.0),
    ln=lambda m, x: functional(m).layer_norm(x, (3,)) ** 2,
    norm=lambda m, x: x.norm(),
    prod=lambda m, x: x.prod(),
    cumprod=lambda m, x: x.cumprod(0),
    std=lambda m, x: x.std(),
    sig=lambda m, x: functional(m).logsigmoid(x - 0.5),
    gelu=lambda m, x: functional(m).gelu(x),
    ce=lambda m, x: functional(m).cross_entropy(x[None], m.tensor([1])),
    bce=lambda m, x: functional(m).binary_cross_entropy_with_logits(x, m.ones(3) * 0.3),
    mish=lambda m, x: functional(m).mish(x),
    conv=lambda m, x: functional(m).conv1d(x[None, None], x[None, None, :2]) ** 2,
    max=lambda m, x: x.max() ** 2,
    sort=lambda m, x: x.sort()[0] ** 2 * m.arange(3.0),
    det=lambda m, x: (x[:, None] * x[None] + m.eye(3)).det(),
    inv=lambda m, x: (x[:, None] * x[None] + m.eye(3)).inverse(),
    where=lambda m, x: m.where(x > 1, x**3, x**2),
    clamp=lambda m, x: x.clamp(1, 2) ** 2,
    lse=lambda m, x: x.logsumexp(0),
    atan2=lambda m, x: m.atan2(x, x * 2 + 1),
    lgamma=lambda m, x: x.lgamma(),
    erf=lambda m, x: x.erf(),
    silu=lambda m, x: functional(m).silu(x),
    cos=lambda m, x: functional(m).cosine_similarity(x[None], x[None] ** 2),
    view=lambda m, x: (lambda y: (y[:2].mul_(x[:2]), y * y)[1])(x * 1),
)


def once(m, program):
    x = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    result = program(m, x)
    if result is not None:
        result.sum().backward()
    return x.grad


def twice(m, program):
    x = m.tensor([0.5, 1.5, 2.5], dtype=m.float64, requires_grad=True)
    (first,) = m.autograd.grad(program(m, x).sum(), x, create_graph=True)
    (second,) = m.autograd.grad((first * first).sum(), x, allow_unused=True)
    return first.detach(), second


def outcome(m, how, program):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return how(m, program)
    except ERRORS as error:
        return error


def check(how, program):
    expected, found = outcome(torch, how, program), outcome(tp, how, program)
    if isinstance(expected, Exception):
        assert isinstance(found, Exception), found
        return
    if isinstance(found, Exception):
        raise found
    pairs = zip(expected, found, strict=True) if how is twice else [(expected, found)]
    for theirs, ours in pairs:
        assert (theirs is None) == (ours is None)
        if theirs is not None:
            made = tp.tensor(theirs.tolist(), dtype=ours.dtype)
            tp.testing.assert_close(ours, made, equal_nan=True)


@pytest.mark.parametrize("name", ONCE)
def test_first_derivatives(name):
    check(once, ONCE[name])


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives(name):
    check(twice, TWICE[name])
