"""How fast one client trains on one core, by micro-batch, precision, memory layout and optimiser.

    python -m benchmarks.training_options [--smoke]

Forward pass, backward pass and Adam on random images of each model's own size. The contenders of a model take turns in
one process, and the fastest turn of each counts; ratios are to the first of them, which is plain PyTorch.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from benchmarks.record import keep
from fedcoast.simulation.models import build
from fedcoast.simulation.worker_pool import one_thread


@dataclass(frozen=True)
class Work:
    """A model, its images and the size of a batch."""

    model: str
    size: int
    classes: int
    batch: int


@dataclass(frozen=True)
class Way:
    """One way to train: images that pass at once, bfloat16 or not, memory layout, fused Adam or not."""

    micro: int
    bfloat16: bool = False
    channels_last: bool = True
    fused: bool = False

    def __str__(self) -> str:
        words = [f"{self.micro} at once", "bfloat16" if self.bfloat16 else "float32"]
        words.append("channels last" if self.channels_last else "channels first")
        return ", ".join(words + ["fused Adam"] * self.fused)


WAYS: dict[Work, list[Way]] = {
    Work("tiny-resnet", 32, 10, 1024): [
        Way(1024),
        Way(256),
        Way(256, fused=True),
        Way(64),
        Way(256, channels_last=False),
        Way(1024, bfloat16=True),
        Way(256, bfloat16=True),
    ],
    Work("tiny-resnet", 32, 10, 100): [Way(100), Way(100, fused=True), Way(100, bfloat16=True)],
    Work("convnet", 32, 100, 64): [
        Way(64),
        Way(64, channels_last=False),
        Way(32, channels_last=False),
        Way(32, channels_last=False, bfloat16=True),
        Way(32, bfloat16=True),
    ],
    Work("resnet4", 96, 10, 32): [
        Way(32),
        Way(8),
        Way(32, channels_last=False),
        Way(32, bfloat16=True),
        Way(32, bfloat16=True, channels_last=False),
    ],
}
SMOKE = {Work("tiny-resnet", 32, 10, 8): [Way(8), Way(4, bfloat16=True)]}


def stepper(work: Work, way: Way) -> Callable[[], None]:
    """A function that trains one batch."""
    schema = torch.channels_last if way.channels_last else torch.contiguous_format
    model = build(work.model, 3, work.size, work.classes, seed=0).to(memory_format=schema)  # type: ignore[call-overload]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=way.fused)
    images = torch.rand(work.batch, 3, work.size, work.size).contiguous(memory_format=schema)
    labels = torch.randint(0, work.classes, (work.batch,))

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        for part, targets in zip(images.split(way.micro), labels.split(way.micro), strict=True):
            with torch.autocast("cpu", torch.bfloat16, enabled=way.bfloat16):
                answers = model(part)
            loss = functional.cross_entropy(answers.float(), targets, reduction="sum") / work.batch
            loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def fastest(steps: dict[str, Callable[[], None]], turns: int) -> dict[str, float]:
    """Seconds of each contender's fastest turn; the first turn warms up."""
    best = dict.fromkeys(steps, float("inf"))
    for turn in range(turns + 1):
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            if turn:
                best[name] = min(best[name], time.perf_counter() - began)
    return best


def run(smoke: bool) -> None:
    measured = {}
    with one_thread():
        for work, ways in (SMOKE if smoke else WAYS).items():
            seconds = fastest({str(way): stepper(work, way) for way in ways}, turns=1 if smoke else 12)
            plain = next(iter(seconds.values()))
            title = f"{work.model}, batches of {work.batch}"
            measured[title] = {
                name: {"images a second": work.batch / took, "times plain": plain / took}
                for name, took in seconds.items()
            }
            for name, numbers in measured[title].items():
                print(f"{title}; {name}: {numbers['images a second']:,.0f} images/s, {numbers['times plain']:.2f} ×")
    if not smoke:
        keep("training-options", "python -m benchmarks.training_options", {"measured": measured})


if __name__ == "__main__":
    run("--smoke" in sys.argv)
