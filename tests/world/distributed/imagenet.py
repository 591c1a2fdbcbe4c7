"""Trains a small residual network on random pictures, as pytorch/examples' imagenet/main.py with --dummy."""

import argparse
import os
import time
from enum import Enum

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.data.distributed import DistributedSampler

CLASSES = 6


class FakeData(Dataset):
    def __init__(self, size, shape):
        self.size, self.shape = size, shape

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        target = index % CLASSES
        picture = torch.from_numpy(np.random.RandomState(index).standard_normal(self.shape)).float()
        picture[0, target] += 2
        return picture, target


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(x + self.bn2(self.conv2(out)))


def drawn(model, scale=0.1):
    """Give parameters values that any library draws alike."""
    rng = np.random.RandomState(0)
    with torch.no_grad():
        for parameter in model.parameters():
            values = scale * rng.standard_normal(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(values))
    return model


def network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), Residual(8),
        nn.MaxPool2d(2), Residual(8), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, CLASSES),
    )  # fmt: skip


class Summary(Enum):
    NONE = 0
    AVERAGE = 1


class AverageMeter:
    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name, self.fmt, self.summary_type = name, fmt, summary_type
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def all_reduce(self):
        total = torch.tensor([self.sum, self.count], dtype=torch.float32)
        dist.all_reduce(total, dist.ReduceOp.SUM, async_op=False)
        self.sum, self.count = total.tolist()
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0).mul_(100.0 / target.size(0)) for k in topk]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=16, type=int)
    parser.add_argument("--workers", default=0, type=int)
    parser.add_argument("--dist-url", default="env://")
    parser.add_argument("--dist-backend", default="gloo")
    parser.add_argument("--world-size", default=-1, type=int)
    parser.add_argument("--rank", default=-1, type=int)
    parser.add_argument("--multiprocessing-distributed", action="store_true")
    args = parser.parse_args()
    if args.dist_url == "env://" and args.world_size == -1:
        args.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if args.multiprocessing_distributed:
        args.per_node, args.world_size = 2, 2 * args.world_size
        mp.spawn(main_worker, nprocs=2, args=(args,))
    else:
        main_worker(0, args)


def main_worker(number, args):
    distributed = args.world_size > 1
    if distributed:
        if args.dist_url == "env://" and args.rank == -1:
            args.rank = int(os.environ["RANK"])
        if args.multiprocessing_distributed:
            args.rank = args.rank * args.per_node + number
        dist.init_process_group(
            backend=args.dist_backend,
            init_method=args.dist_url,
            world_size=args.world_size,
            rank=args.rank,
        )
    model = drawn(network(), 0.3)
    if distributed:
        model = nn.parallel.DistributedDataParallel(model)
        args.batch_size //= args.world_size
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.1)
    train_dataset, val_dataset = FakeData(48, (3, 8, 8)), FakeData(27, (3, 8, 8))
    train_sampler = DistributedSampler(train_dataset, shuffle=False) if distributed else None
    val_sampler = (
        DistributedSampler(val_dataset, shuffle=False, drop_last=True) if distributed else None
    )
    options = {"batch_size": args.batch_size, "num_workers": args.workers}
    train_loader = DataLoader(train_dataset, shuffle=False, sampler=train_sampler, **options)
    val_loader = DataLoader(val_dataset, shuffle=False, sampler=val_sampler, **options)
    first = not distributed or dist.get_rank() == 0
    for epoch in range(args.epochs):
        if distributed:
            train_sampler.set_epoch(epoch)
        losses = train(train_loader, model, criterion, optimizer)
        acc1, loss = validate(val_loader, model, criterion, args, distributed)
        scheduler.step()
        if first:
            print(f"epoch {epoch}: train loss {losses.avg:.4f}, Acc@1 {acc1:.3f}, loss {loss:.4f}")
    weights = sum(p.detach().double().abs().sum() for p in model.parameters())
    if first:
        print(f"weights {weights.item():.3f}, lr {scheduler.get_last_lr()[0]:.4f}")
    if distributed:
        dist.destroy_process_group()


def train(loader, model, criterion, optimizer):
    losses, batch_time = AverageMeter("Loss", ":.4e"), AverageMeter("Time", ":6.3f", Summary.NONE)
    model.train()
    end = time.time()
    for images, target in loader:
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch_time.update(time.time() - end)
        end = time.time()
    return losses


def validate(loader, model, criterion, args, distributed):
    losses, top1 = AverageMeter("Loss"), AverageMeter("Acc@1")

    def run_validate(loader):
        with torch.no_grad():
            for images, target in loader:
                output = model(images)
                losses.update(criterion(output, target).item(), images.size(0))
                top1.update(accuracy(output, target, topk=(1, 5))[0].item(), images.size(0))

    model.eval()
    run_validate(loader)
    if distributed:
        top1.all_reduce()
        losses.all_reduce()
        done = len(loader.sampler) * args.world_size
        if done < len(loader.dataset):
            rest = Subset(loader.dataset, range(done, len(loader.dataset)))
            run_validate(DataLoader(rest, batch_size=args.batch_size, num_workers=args.workers))
    return top1.avg, losses.avg


if __name__ == "__main__":
    main()
