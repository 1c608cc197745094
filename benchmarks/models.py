"""Models to measure on: the layers of a ResNet-18 stretched to any size, and updates that look like training's."""

import numpy as np
from numpy.typing import NDArray

Layer = NDArray[np.float32]

_WIDTHS = [(64, 64), (64, 128), (128, 256), (256, 512)]


def sizes(parameters: int) -> list[int]:
    """The 62 tensors of a ResNet-18 for CIFAR, stretched to this many parameters in all."""
    convolutions = [64 * 3 * 9]
    for inputs, width in _WIDTHS:
        convolutions += [width * inputs * 9, *[width * width * 9] * 3]
        convolutions += [] if inputs == width else [width * inputs]
    norms = [64, *[width for inputs, width in _WIDTHS for _ in range(4 if inputs == width else 5)]]
    layers = [size for kernel, norm in zip(convolutions, norms, strict=True) for size in (kernel, norm, norm)]
    layers += [512 * 10, 10]
    stretched = [max(1, round(size * parameters / sum(layers))) for size in layers]
    stretched[layers.index(max(layers))] += parameters - sum(stretched)
    return stretched


def draw(parameters: int, seed: int) -> list[Layer]:
    """A model: Gaussian layers."""
    rng = np.random.default_rng(seed)
    return [np.float32(0.05) * rng.standard_normal(size, np.float32) for size in sizes(parameters)]


def moved(start: list[Layer], seed: int) -> list[Layer]:
    """The model after local training: Gaussian updates whose size differs from neighbourhood to neighbourhood."""
    rng = np.random.default_rng(seed)
    after = []
    for layer in start:
        scale = np.repeat(np.exp(rng.standard_normal(layer.size // 64 + 1, np.float32)), 64)[: layer.size]
        update = rng.standard_normal(layer.size, np.float32)
        update *= scale
        update *= np.float32(0.002)
        update += layer
        after.append(update)
    return after


def named(layers: list[Layer]) -> dict[str, Layer]:
    """As a round has them: every third is a kernel or the head's matrix, and has two dimensions to say so."""
    return {f"layer{place:02d}": layer if place % 3 else layer[np.newaxis] for place, layer in enumerate(layers)}


BAD = ("gaussian", "sorted", "all equal", "all zero", "95 % zero", "bf16 grid")


def bad(kind: str, size: int) -> tuple[Layer, Layer]:
    """One layer before and after an update that a selection may find hard."""
    rng = np.random.default_rng(7)
    update = rng.standard_normal(size, np.float32) * np.float32(0.01)
    start = np.zeros(size, np.float32)
    if kind == "sorted":
        update.sort()
    elif kind == "all equal":
        update = np.sign(update) * np.float32(0.01)
    elif kind == "all zero":
        update[:] = 0
    elif kind == "95 % zero":
        update[rng.random(size) < 0.95] = 0
    elif kind == "bf16 grid":  # both models as bfloat16 has them: updates are multiples of a few spacings
        start = rng.standard_normal(size, np.float32) * np.float32(0.05)
        both = [(model.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32) for model in (start, start + update)]
        return both[0], both[1]
    return start, start + update
