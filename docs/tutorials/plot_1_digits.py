"""
Handwritten digits
==================

A small convolutional network learns to read 1,797 scans of handwritten digits: data, model,
training loop, evaluation, and a look at what it gets wrong. ``examples/digits`` has the same as a
program with options, checkpoints and a longer training.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn

tp.manual_seed(0)

# %%
# The data
# --------
# scikit-learn carries the images as arrays; :func:`tensorplug.from_numpy` makes tensors of them
# without a copy. A fifth is put aside for testing.

pixels, labels = load_digits(return_X_y=True)
pixels = (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8)
images = tp.from_numpy(pixels)
labels = tp.from_numpy(labels.astype(np.int64))

order = tp.randperm(len(labels))
test, train = order[:360], order[360:]
train_set = tp.data.TensorDataset(images[train], labels[train])
loader = tp.data.DataLoader(train_set, batch_size=64, shuffle=True)

figure, axes = plt.subplots(2, 10, figsize=(9, 2.2), layout="constrained")
for cell, image, label in zip(axes.flat, images, labels, strict=False):
    cell.imshow(image[0].numpy(), cmap="gray_r")
    cell.set_title(int(label))
    cell.set_axis_off()

# %%
# The network
# -----------
# Two convolutions, one pooling, one linear layer.

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(32 * 4 * 4, 10),
)
print(sum(p.numel() for p in model.parameters()), "weights")

# %%
# Training
# --------
# The loop is torch's: gradients to zero, forward, loss, backward, step.

EPOCHS = 4
optimizer = tp.optim.AdamW(model.parameters(), lr=3e-3)
schedule = tp.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)


def accuracy():
    model.eval()
    with tp.no_grad():
        right = model(images[test]).argmax(1) == labels[test]
    return right.float().mean().item()


losses, accuracies = [], []
for epoch in range(EPOCHS):
    model.train()
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    accuracies.append(accuracy())
    print(f"epoch {epoch + 1}   loss {losses[-1]:.3f}   test accuracy {accuracies[-1]:.1%}")

# %%
# Each point is a batch; the loss falls quickly and then slowly, as the learning rate does.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(losses)
left.set(xlabel="batch", ylabel="training loss", yscale="log")
right.plot(range(1, EPOCHS + 1), accuracies, marker="o", color="C2")
right.set(xlabel="epoch", ylabel="test accuracy")

# %%
# What it gets wrong
# ------------------
# The test digits that the network is least sure about, with its two best guesses.

with tp.no_grad():
    probabilities = F.softmax(model(images[test]), dim=1)
sure, guesses = probabilities.topk(2, dim=1)
doubtful = sure[:, 0].argsort()[:10]

figure, axes = plt.subplots(1, 10, figsize=(9, 1.6), layout="constrained")
for cell, which in zip(axes, doubtful.tolist(), strict=True):
    first, second = guesses[which].tolist()
    actual = int(labels[test[which]])
    cell.imshow(images[test[which], 0].numpy(), cmap="gray_r")
    cell.set_title(f"{first} or {second}?", color="black" if first == actual else "red")
    cell.set_axis_off()

# %%
# Keeping it
# ----------
# torch reads this file, too; see :doc:`/files`.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "digits.pt")
    tp.save(model.state_dict(), path)
    copy = tp.load(path)
assert all(tp.equal(copy[name], weight) for name, weight in model.state_dict().items())
