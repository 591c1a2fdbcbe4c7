"""
A GPT that writes characters
============================

Attention, blocks, a training loop and sampling, in about a hundred lines. The text is the beginning
of Milton's *Paradise Lost*; ``examples/gpt`` has a longer training, checkpoints and GPT-2's layout
of weights.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn

tp.manual_seed(0)

# %%
# A text as numbers
# -----------------
# One number per character. A sample is a piece of the text, and its target the same piece one
# character on.

POEM = Path("..", "..", "examples", "gpt", "paradise_lost.txt")
text = POEM.read_text("utf-8")
alphabet = sorted(set(text))
numbers = {character: number for number, character in enumerate(alphabet)}
tokens = tp.tensor([numbers[character] for character in text])
print(len(tokens), "characters,", len(alphabet), "different ones")
print(text[:160])

CONTEXT, WIDTH, HEADS, LAYERS = 32, 64, 4, 2


def draw(count):
    """Cut pieces from random places."""
    places = tp.randint(0, len(tokens) - CONTEXT, (count, 1))
    pieces = tokens[places + tp.arange(CONTEXT + 1)]
    return pieces[:, :-1], pieces[:, 1:]


# %%
# The model
# ---------
# Each block lets every position look at the ones before it, and then thinks about what it saw.


class Block(nn.Module):
    """Attention to earlier positions, then two linear layers; both add to what comes in."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        count, length, _ = x.shape
        parts = self.project(self.norm1(x)).view(count, length, 3, HEADS, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(count, length, WIDTH))
        return x + self.think(self.norm2(x))


class GPT(nn.Module):
    """Characters and places as vectors, the blocks, and a score for each character."""

    def __init__(self):
        super().__init__()
        self.characters = nn.Embedding(len(alphabet), WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, len(alphabet))

    def forward(self, tokens):
        x = self.characters(tokens) + self.places(tp.arange(tokens.shape[1]))
        return self.scores(self.norm(self.blocks(x)))


model = GPT()
print(f"{sum(p.numel() for p in model.parameters()):,} weights")

# %%
# Training
# --------
# So few steps are enough for words and lines to appear, not for sense.

STEPS = 160
optimizer = tp.optim.AdamW(model.parameters(), lr=3e-3)
schedule = tp.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=STEPS)
losses = []
for step in range(STEPS):
    inputs, targets = draw(16)
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if step % 40 == 39:
        print(f"step {step + 1}   loss {loss.item():.3f}")

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(losses)
axes.axhline(tp.tensor(len(alphabet)).log().item(), color="gray", linestyle=":")
axes.set(xlabel="step", ylabel="nats per character", title="dotted: guessing")

# %%
# Writing
# -------
# Draw a character from the predicted distribution, append it, and ask again.


@tp.no_grad()
def write(prompt, count, temperature=0.7):
    """Continue a prompt."""
    told = tp.tensor([[numbers[character] for character in prompt]])
    for _ in range(count):
        scores = model(told[:, -CONTEXT:])[:, -1] / temperature
        told = tp.cat([told, tp.multinomial(F.softmax(scores, dim=-1), 1)], dim=1)
    return "".join(alphabet[number] for number in told[0].tolist())


print(write("Of Man's first", 160))

# %%
# What a head looks at
# --------------------
# The weights of attention in the first block. Above the diagonal, the future, all are zero.

line = "Of Man's first disobedience"
with tp.no_grad():
    block = model.blocks[0]
    ids = tp.tensor([[numbers[character] for character in line]])
    x = model.characters(ids) + model.places(tp.arange(len(line)))
    parts = block.project(block.norm1(x)).view(1, len(line), 3, HEADS, -1)
    query, key, _ = parts.permute(2, 0, 3, 1, 4)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    future = tp.ones(len(line), len(line), dtype=tp.bool).triu(1)
    weights = scores.masked_fill(future, -tp.inf).softmax(-1)[0]

figure, axes = plt.subplots(1, HEADS, figsize=(10, 2.8), layout="constrained")
for head, cell in enumerate(axes):
    cell.imshow(weights[head].numpy(), cmap="magma")
    cell.set(title=f"head {head}", xticks=range(len(line)), xticklabels=line, yticks=[])
    cell.tick_params(axis="x", labelsize=5)
