"""Train a small GPT on Milton's Paradise Lost, character by character, and let it write.

::

    python examples/gpt/train.py
    python examples/gpt/train.py --layers 6 --width 384 --heads 6 --context 256 --steps 5000
    python examples/gpt/train.py --resume out/gpt/gpt.pt --steps 1200
    python examples/gpt/train.py --resume out/gpt/gpt.pt --write 500 --temperature 0.7

A run writes a checkpoint and a picture of the losses. One that was interrupted and resumed gives the
weights of one that was not, bit by bit.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

try:
    from matplotlib.figure import Figure
    from tqdm import tqdm

    import tensorplug as tp
    from model import GPT, Config
    from tensorplug import nn
    from text import POEM, Text, draw
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(f"error: {error}; the example needs: pip install '.[examples]'") from None

QUICK = {"layers": 2, "heads": 2, "width": 32, "context": 32, "steps": 60, "write": 40}
VALIDATION_BATCHES = 8


def make_optimizer(model: GPT, learning_rate: float) -> Any:
    """Return AdamW, which pulls at the matrices and leaves biases and norms alone."""
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": 0.1},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return tp.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.99))


def make_schedule(optimizer: Any, steps: int, warmup: int) -> Any:
    """Let the learning rate rise over `warmup` steps, and fall in a half cosine to a tenth."""

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        return 0.55 + 0.45 * math.cos(math.pi * done)

    return tp.optim.lr_scheduler.LambdaLR(optimizer, factor)


def step(model: GPT, optimizer: Any, tokens, targets, clip: float = 1.0) -> float:
    """Take one step, with the norm of the gradient clipped, and return the loss before it."""
    model.train()
    optimizer.zero_grad()
    loss = model.loss(tokens, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item()


@tp.no_grad()
def validate(model: GPT, text: Text, batch: int, device: str) -> float:
    """Return the mean loss on pieces of the held-out text, the same ones each time."""
    model.eval()
    generator = tp.Generator().manual_seed(0)
    length = min(model.config.context, len(text.validation) - 1)
    total = 0.0
    for _ in range(VALIDATION_BATCHES):
        tokens, targets = draw(text.validation, batch, length, generator)
        total += model.loss(tokens.to(device), targets.to(device)).item()
    return total / VALIDATION_BATCHES


class Run:
    """A training with all that its continuation depends on."""

    def __init__(self, options: argparse.Namespace, text: Text) -> None:
        self.options, self.text = options, text
        tp.manual_seed(options.seed)
        self.generator = tp.Generator().manual_seed(options.seed)
        self.model = GPT(
            Config(
                vocabulary=len(text.alphabet),
                context=options.context,
                layers=options.layers,
                heads=options.heads,
                width=options.width,
                dropout=options.dropout,
            )
        ).to(options.device)
        self.optimizer = make_optimizer(self.model, options.lr)
        self.schedule = make_schedule(self.optimizer, options.steps, options.warmup)
        self.losses: list[float] = []
        self.validations: list[tuple[int, float]] = []

    def train(self, until: int) -> None:
        """Go on to step `until`."""
        options = self.options
        bar = tqdm(range(len(self.losses), until), desc="training", unit="step", disable=None)
        for done in bar:
            tokens, targets = draw(
                self.text.training, options.batch, options.context, self.generator
            )
            device = options.device
            loss = step(self.model, self.optimizer, tokens.to(device), targets.to(device))
            self.schedule.step()
            self.losses.append(loss)
            if (done + 1) % options.every == 0 or done + 1 == until:
                held_out = validate(self.model, self.text, options.batch, device)
                self.validations.append((done + 1, held_out))
                bar.write(f"step {done + 1:5}   loss {loss:.4f}   on held-out text {held_out:.4f}")
                self.save()

    def save(self) -> None:
        checkpoint = {
            "config": asdict(self.model.config),
            "alphabet": self.text.alphabet,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "pieces": self.generator.get_state(),
            "dropout": tp.get_rng_state(),
            "losses": self.losses,
            "validations": self.validations,
        }
        tp.save(checkpoint, self.options.out / "gpt.pt")

    def restore(self, checkpoint: dict[str, Any]) -> None:
        if checkpoint["alphabet"] != self.text.alphabet:
            raise ValueError("the checkpoint is of another text")
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.schedule.load_state_dict(checkpoint["schedule"])
        self.generator.set_state(checkpoint["pieces"])
        tp.set_rng_state(checkpoint["dropout"])
        self.losses = list(checkpoint["losses"])
        self.validations = [tuple(pair) for pair in checkpoint["validations"]]


def write(model: GPT, text: Text, options: argparse.Namespace) -> str:
    """Let the model continue the prompt."""
    tokens = text.encode(options.prompt)[None].to(options.device)
    generator = tp.Generator(device=options.device).manual_seed(options.seed)
    told = model.sample(tokens, options.write, options.temperature, options.top_k, generator)
    return text.decode(told[0])


def draw_losses(run: Run, path: Path) -> None:
    """Write the curves of a run as a PNG file."""
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(run.losses) + 1), run.losses, alpha=0.5, label="training, each batch")
    axes.plot(*zip(*run.validations, strict=True), marker=".", label="held-out text")
    axes.set(xlabel="step", ylabel="loss, nats per character", title="GPT on Paradise Lost")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; what cannot work ends the program with a message and status 2."""
    parser = argparse.ArgumentParser(
        description="Train a small GPT on Paradise Lost.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--layers", type=int, default=3)
    add("--heads", type=int, default=4)
    add("--width", type=int, default=96)
    add("--context", type=int, default=64, help="how many characters the model sees")
    add("--batch", type=int, default=16)
    add("--steps", type=int, default=400)
    add("--lr", type=float, default=2e-3, help="the highest learning rate")
    add("--warmup", type=int, default=50, help="steps until it is reached")
    add("--dropout", type=float, default=0.0)
    add("--every", type=int, default=100, help="steps between validations and checkpoints")
    add("--text", type=Path, default=POEM, help="a text to learn, in UTF-8")
    add("--write", type=int, default=300, help="characters to write at the end")
    add("--prompt", default="Of Man's first", help="what they continue")
    add("--temperature", type=float, default=0.8, help="0 takes the likeliest character")
    add("--top-k", type=int, default=None, help="choose among so many; all by default")
    add("--seed", type=int, default=0)
    add("--device", default="cpu")
    add("--out", type=Path, default=Path("out/gpt"), help="folder to write")
    add("--resume", type=Path, metavar="CHECKPOINT", help="go on from there, with its size")
    add("--quick", action="store_true", help="a tiny model and few steps, to try things out")
    if "--quick" in (arguments if arguments is not None else sys.argv):
        parser.set_defaults(**QUICK)
    options = parser.parse_args(arguments)
    for name in ("layers", "heads", "width", "context", "batch", "steps", "warmup", "every"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    if options.width % options.heads:
        parser.error(f"--width {options.width} is no multiple of --heads {options.heads}")
    if not 0 <= options.dropout < 1:
        parser.error(f"--dropout must be from 0 to below 1, got {options.dropout}")
    if options.temperature < 0 or options.write < 0 or not options.prompt:
        parser.error("--temperature and --write must be at least 0, and --prompt not empty")
    if options.top_k is not None and options.top_k < 1:
        parser.error(f"--top-k must be at least 1, got {options.top_k}")
    try:
        tp.ones(1).to(options.device).sum().item()
        options.out.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, OSError) as error:
        parser.error(str(error))
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    try:
        text = Text(options.text)
        text.encode(options.prompt)
        checkpoint = None
        if options.resume:
            checkpoint = tp.load(options.resume, map_location=options.device)
            for name in ("layers", "heads", "width", "context", "dropout"):
                setattr(options, name, checkpoint["config"][name])
        run = Run(options, text)
        if checkpoint:
            run.restore(checkpoint)
    except (OSError, RuntimeError, LookupError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    before, start = len(run.losses), time.perf_counter()
    run.train(options.steps)
    seconds, steps = time.perf_counter() - start, len(run.losses) - before
    weights = sum(weight.numel() for weight in run.model.parameters())
    print(f"\n{weights:,} weights on {options.device}, {steps} steps in {seconds:.1f} s")
    if run.validations:
        picture = options.out / "gpt.png"
        draw_losses(run, picture)
        held_out = run.validations[-1][1]
        print(f"loss {run.losses[0]:.3f} at first, {held_out:.3f} on held-out text at last")
        print(f"checkpoint {options.out / 'gpt.pt'}, picture {picture}")
    if options.write:
        print(f"\n{write(run.model, text, options)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
