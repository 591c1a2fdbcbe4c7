"""Draws a step of DistributedDataParallel from the profiler's events: what of reducing backward hides.

``mpiexec -n 2 python benchmarks/overlap.py [picture.svg]`` writes the picture of the first process, and
prints the share of the time in which gradients were under way that the program did not wait. Of several steps
it is the one of the median share.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import sys
from pathlib import Path

import tensorplug as tp
import tensorplug.distributed as dist
from tensorplug import nn
from tensorplug.nn.parallel import DistributedDataParallel
from tensorplug.profiler import profile, record_function

STEPS, WARM = 9, 3
DEPTH, WIDTH, ROWS = 8, 512, 512
COLORS = {"forward": "#2563a8", "backward": "#2e7d4f", "under way": "#b45f06", "waiting": "#c0392b"}
INK, GRAY = "#1f2937", "#9aa4b2"
LEFT, RIGHT, TOP, ROW = 110, 850, 58, 44


def model():
    """Return a network whose gradients are large enough for a bucket each."""
    tp.manual_seed(0)
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return DistributedDataParallel(nn.Sequential(*layers))


def merged(spans):
    """Return spans of time with those that overlap joined."""
    found = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def length(spans):
    return sum(end - start for start, end in merged(spans))


def common(first, second):
    """Return the spans that are in both."""
    return [
        (max(a, c), min(b, d))
        for a, b in merged(first)
        for c, d in merged(second)
        if max(a, c) < min(b, d)
    ]


def step(ddp, x):
    """Return the spans of one step by what went on, in ms."""
    ddp.zero_grad()
    dist.barrier()
    with profile() as profiled:
        with record_function("forward"):
            loss = ddp(x).square().mean()
        with record_function("backward"):
            loss.backward()
    spans = {name: [] for name in COLORS}
    for event in profiled.events():
        span = event.start / 1000, (event.start + event.cpu_time_total) / 1000
        if event.category == "collective":
            spans["under way"].append(span)
        elif event.key.startswith("wait for"):
            spans["waiting"].append(span)
        elif event.category == "range" and event.key in spans:
            spans[event.key].append(span)
    return spans


def share(spans):
    """Return how much of the time in which gradients are under way the program does something else."""
    waited = length(common(spans["under way"], spans["waiting"]))
    return 1 - waited / length(spans["under way"])


def text(x, y, words, anchor="start", color=INK, size=13):
    place = f'x="{x:.1f}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{color}">{words}</text>'


def picture(spans):
    """Return a picture of a step."""
    begin = min(start for found in spans.values() for start, _ in found)
    end = max(stop for found in spans.values() for _, stop in found)
    scale = (RIGHT - LEFT) / (end - begin)
    height = TOP + ROW * len(COLORS) + 40
    words = (
        f"One step on {dist.get_world_size()} processes: {DEPTH} layers of {WIDTH}, {ROWS} rows each. "
        f"{share(spans):.0%} of the time in which gradients are under way is hidden."
    )
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {RIGHT + 30} {height}" role="img" '
            f'font-family="system-ui, -apple-system, Segoe UI, sans-serif" aria-label="{words}">'
        ),
        f'<rect width="{RIGHT + 30}" height="{height}" fill="white"/>',
        text(16, 26, words, size=14),
    ]
    for row, (name, color) in enumerate(COLORS.items()):
        y = TOP + ROW * row
        parts.append(text(LEFT - 10, y + 17, name, "end"))
        # Of what is under way at the same time each has a lane of its own.
        lanes = []
        for start, stop in sorted(spans[name]):
            lane = next((n for n, busy in enumerate(lanes) if busy <= start), len(lanes))
            lanes[lane : lane + 1] = [stop]
            top, thick = (y + lane % 10 * 4, 3) if name == "under way" else (y, 26)
            x, width = LEFT + (start - begin) * scale, max((stop - start) * scale, 0.8)
            place = f'x="{x:.1f}" y="{top}" width="{width:.1f}" height="{thick}"'
            parts.append(f'<rect {place} fill="{color}"/>')
    y = TOP + ROW * len(COLORS)
    parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}" stroke="{GRAY}"/>')
    tick = next(t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if (end - begin) / t <= 10)
    for number in range(int((end - begin) / tick) + 1):
        x = LEFT + number * tick * scale
        parts.append(text(x, y + 18, f"{number * tick} ms" if number else "0", "middle", GRAY, 11))
    return "\n".join([*parts, "</svg>", ""])


def main():
    """Measure, print, and draw."""
    dist.init_process_group("mpi")
    ddp, x = model(), tp.randn(ROWS, WIDTH)
    steps = [step(ddp, x) for _ in range(WARM + STEPS)][WARM:]
    steps.sort(key=share)
    middle = steps[len(steps) // 2]
    if dist.get_rank() == 0:
        under, backward = length(middle["under way"]), length(middle["backward"])
        sys.stdout.write(
            f"hidden: {share(middle):.0%} of {under:.1f} ms under way, in a backward pass of "
            f"{backward:.1f} ms; least and most of {STEPS} steps: {share(steps[0]):.0%}, "
            f"{share(steps[-1]):.0%}\n"
        )
        if len(sys.argv) > 1:
            Path(sys.argv[1]).write_text(picture(middle))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
