"""Learn to balance a pole on a cart by trial and error.

::

    python examples/reinforce/train.py
    python examples/reinforce/train.py --updates 300 --seed 7

The policy is learned with REINFORCE and a learned baseline (Williams, "Simple statistical
gradient-following algorithms for connectionist reinforcement learning", 1992). An episode returns the
number of steps for which the pole stayed up, 500 at most.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

try:
    from matplotlib.figure import Figure
    from tqdm import tqdm

    import tensorplug as tp
    import tensorplug.nn.functional as F
    from cartpole import LONGEST, advance, reset
    from tensorplug import nn
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(f"error: {error}; the example needs: pip install '.[examples]'") from None

EPISODES = 16  # in each update
DISCOUNT = 0.99
SCALE = (2.4, 2.0, 0.21, 2.0)  # makes the four numbers of a state about 1 at most
GOAL = 475  # the mean return at which the task counts as solved


class Agent(nn.Module):
    """The policy, and the baseline: the return that it expects from a state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", tp.tensor(SCALE))
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        self.baseline = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, states):
        """Return scores of the two actions ``(N, 2)``, and expected returns ``(N,)``."""
        states = states / self.scale
        return self.policy(states), self.baseline(states).squeeze(1)


class Episodes(NamedTuple):
    """What happened, over steps T and episodes N; `alive` says until when each one lasted."""

    states: Any  # (T, N, 4)
    actions: Any  # (T, N)
    alive: Any  # (T, N), float: 1 where the step was taken

    def lengths(self):
        return self.alive.sum(0)


@tp.no_grad()
def play(agent: Agent, count: int, generator, best: bool = False) -> Episodes:
    """Let the agent play episodes side by side, until the last one ends.

    Parameters
    ----------
    agent : Agent
        Its policy draws the actions, or takes the likelier one if `best`.
    count : int
        How many episodes.
    generator : Generator
        Draws the first states and the actions.
    best : bool
        Whether to leave out chance.
    """
    device = str(agent.scale.device)
    states = reset(count, generator, device)
    alive = tp.ones(count, device=device)
    steps = []
    for _ in range(LONGEST):
        scores, _ = agent(states)
        if best:
            actions = scores.argmax(dim=1)
        else:
            right = F.softmax(scores, dim=1)[:, 1]
            actions = (tp.rand(count, generator=generator).to(device) < right).long()
        steps.append((states, actions, alive))
        states, up = advance(states, actions)
        alive = alive * up
        if not alive.any():
            break
    return Episodes(*(tp.stack(column) for column in zip(*steps, strict=True)))


def discounted(alive):
    """Return what each step ``(T, N)`` still earns: 1 for each step survived, less the later."""
    rows, later = [], tp.zeros_like(alive[0])
    for row in reversed(alive.unbind(0)):
        later = row * (1 + DISCOUNT * later)
        rows.append(later)
    return tp.stack(rows[::-1])


def loss(agent: Agent, episodes: Episodes):
    """Return what gradient descent lowers: the policy's part, and the baseline's."""
    taken = episodes.alive.flatten() > 0
    states, actions = episodes.states.flatten(0, 1)[taken], episodes.actions.flatten()[taken]
    returns = discounted(episodes.alive).flatten()[taken] * (1 - DISCOUNT)  # from 0 to 1
    scores, expected = agent(states)
    advantages = returns - expected.detach()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    chosen = F.log_softmax(scores, dim=1).gather(1, actions[:, None]).squeeze(1)
    return -(chosen * advantages).mean() + F.mse_loss(expected, returns)


def train(updates: int, seed: int, device: str = "cpu") -> tuple[Agent, list[float]]:
    """Return an agent, and the mean return of its episodes before each update."""
    tp.manual_seed(seed)
    generator = tp.Generator().manual_seed(seed)
    agent = Agent().to(device)
    optimizer = tp.optim.Adam(agent.parameters(), lr=1e-2)
    returns: list[float] = []
    bar = tqdm(range(updates), desc="training", unit="update", disable=None)
    for _ in bar:
        episodes = play(agent, EPISODES, generator)
        optimizer.zero_grad()
        loss(agent, episodes).backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        returns.append(episodes.lengths().mean().item())
        bar.set_postfix(steps=f"{returns[-1]:.0f}")
        if len(returns) >= 5 and min(returns[-5:]) >= GOAL:
            break
    return agent, returns


def draw(path: Path, returns: Sequence[float]) -> None:
    """Write the returns as a PNG file."""
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(returns) + 1), returns, marker=".")
    axes.axhline(GOAL, color="gray", linestyle="--", label=f"solved: {GOAL}")
    axes.set(xlabel="update", ylabel=f"mean return of {EPISODES} episodes")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Learn to balance a pole on a cart.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--updates", type=int, default=200, help="at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/reinforce"), help="folder to write")
    parser.add_argument("--quick", action="store_true", help="30 updates")
    options = parser.parse_args(arguments)
    if options.quick:
        options.updates = 30
    if options.updates < 1:
        parser.error(f"--updates must be at least 1, got {options.updates}")
    try:
        tp.ones(1).to(options.device).sum().item()
        options.out.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, OSError) as error:
        parser.error(str(error))
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(arguments)
    start = time.perf_counter()
    agent, returns = train(options.updates, options.seed, options.device)
    seconds = time.perf_counter() - start
    test = play(agent, 100, tp.Generator().manual_seed(options.seed + 1), best=True)
    picture = options.out / "reinforce.png"
    draw(picture, returns)
    print(f"{len(returns)} updates in {seconds:.1f} s on {options.device}, picture {picture}")
    print(
        f"mean return {returns[0]:.0f} at first, {test.lengths().mean().item():.0f} "
        "in 100 new episodes at last"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
