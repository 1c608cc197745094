"""Augmentation and degradation of images: pure functions on tensors of shape (batch, channels, height, width).

Every function returns a new tensor (or the input itself where nothing changes), draws random numbers per sample from
the given generator, and works on the whole batch at once: this code runs inside the training loop, where a loop over
samples would cost more than training a small network.

The last functions are the paper's degradations, by severity s: 0 is untouched, 4 the worst client.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import torch
from torch import Tensor

from fedcoast.errors import BadSetting

Degradation = Callable[[Tensor, Fraction, torch.Generator], Tensor]

ASPECTS = (0.3, 3.3)
TRIES = 10


def crop_and_flip(images: Tensor, generator: torch.Generator, *, flip: bool = True) -> Tensor:
    """Shift each image by up to an eighth of its size, filling with black, and mirror every second one.

    The usual augmentation of 32 × 32 images (pad by 4, crop at random, flip), with the padding scaled to the
    size. `flip=False` is for images whose mirror image means something else, such as digits.
    """
    batch, channels, height, width = images.shape
    tall, wide = height // 8, width // 8
    rows = _random_offsets(batch, tall, generator, images) + torch.arange(height, device=images.device)
    columns = _random_offsets(batch, wide, generator, images) + torch.arange(width, device=images.device)
    if flip:
        mirrored = torch.rand(batch, 1, generator=generator, device=images.device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    padded = torch.nn.functional.pad(images, (wide, wide, tall, tall))
    # One gather for crop and flip together: slicing sample by sample takes more than twice as long.
    pixels = (rows[:, :, None] * (width + 2 * wide) + columns[:, None, :]).view(batch, 1, height * width)
    cropped = padded.reshape(batch, channels, -1).gather(2, pixels.expand(batch, channels, height * width))
    return cropped.view(batch, channels, height, width)


def _random_offsets(batch: int, padding: int, generator: torch.Generator, like: Tensor) -> Tensor:
    return torch.randint(0, 2 * padding + 1, (batch, 1), generator=generator, device=like.device)


def add_noise(images: Tensor, mean: float, std: float, generator: torch.Generator) -> Tensor:
    """Add Gaussian noise to every pixel of every channel. Not clipped to [0, 1], as in the authors' code."""
    return torch.empty_like(images).normal_(mean, std, generator=generator).add_(images)


def blur(images: Tensor, kernel: int, sigma: float) -> Tensor:
    """Gaussian blur with a `kernel` × `kernel` window, cut off and renormalised, borders mirrored.

    w_d ∝ exp(−d² / 2σ²) for |d| ≤ (kernel − 1) / 2, applied along the rows and along the columns.
    """
    if kernel < 1 or kernel % 2 == 0:
        raise BadSetting(f"kernel must be a positive odd number of pixels; got {kernel}")
    if sigma <= 0:
        raise BadSetting(f"sigma must be positive; got {sigma}")
    if kernel == 1:
        return images
    height, width = images.shape[2:]
    across = _blur_matrix(width, kernel, sigma, images)
    down = _blur_matrix(height, kernel, sigma, images)
    # As matrix products, not convolutions: on a CPU about twenty times faster for images of up to 96 pixels.
    return down @ (images @ across.T)


def _blur_matrix(size: int, kernel: int, sigma: float, like: Tensor) -> Tensor:
    """The (size, size) matrix that blurs a line of pixels: row p holds the weights behind new pixel p."""
    reach = kernel // 2
    if reach >= size:
        raise BadSetting(f"a blur of {kernel} pixels needs images larger than {reach} pixels; got {size}")
    offsets = torch.arange(-reach, reach + 1, device=like.device)
    weights = torch.exp(-0.5 * (offsets / sigma) ** 2).to(like.dtype)
    sources = (torch.arange(size, device=like.device)[:, None] + offsets).abs()
    sources = torch.where(sources >= size, 2 * (size - 1) - sources, sources)
    matrix = torch.zeros(size, size, dtype=like.dtype, device=like.device)
    return matrix.scatter_add_(1, sources, (weights / weights.sum()).expand(size, kernel))


def erase(images: Tensor, low: float, high: float, generator: torch.Generator) -> Tensor:
    """Set one random rectangle of each image to 0; its share of the area is uniform in [low, high].

    The rules of torchvision's RandomErasing: aspect ratio log-uniform in [0.3, 3.3], up to ten tries until
    the rectangle is smaller than the image both ways; if none is, about one image in 10,000 at 40–60 %, the
    image is left alone. Unlike there, a rectangle covers at least one pixel, so that a mild mask on a tiny
    image still masks something.
    """
    if not 0 < low <= high < 1:
        raise BadSetting(f"the erased share must satisfy 0 < low <= high < 1; got {low} and {high}")
    batch, _, height, width = images.shape
    chance = torch.rand(2, batch, TRIES, generator=generator, device=images.device)
    areas = (low + (high - low) * chance[0]) * (height * width)
    shortest, longest = math.log(ASPECTS[0]), math.log(ASPECTS[1])
    aspects = torch.exp(shortest + (longest - shortest) * chance[1])
    talls = (areas * aspects).sqrt().round().clamp(min=1)
    wides = (areas / aspects).sqrt().round().clamp(min=1)
    fits = (talls < height) & (wides < width)
    first = fits.to(torch.uint8).argmax(1, keepdim=True)
    tall, wide = (talls * fits).gather(1, first), (wides * fits).gather(1, first)
    corner = torch.rand(2, batch, 1, generator=generator, device=images.device)
    rows = _stretch(height, tall, corner[0], images)
    columns = _stretch(width, wide, corner[1], images)
    return images.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0.0)


def _stretch(size: int, length: Tensor, chance: Tensor, like: Tensor) -> Tensor:
    """For each sample, which of the `size` lines lie in a stretch of `length` lines placed uniformly."""
    start = (chance * (size - length + 1)).floor()
    lines = torch.arange(size, device=like.device)
    return (lines >= start) & (lines < start + length)


def normalise(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Bring each channel to (x − mean) / std."""
    if len(mean) != images.shape[1] or len(std) != images.shape[1]:
        raise BadSetting(
            f"normalising needs one mean and one std per channel; got {len(mean)} means and {len(std)} stds "
            f"for images of {images.shape[1]} channels"
        )
    if min(std) <= 0:
        raise BadSetting(f"every std must be positive; got {tuple(std)}")
    shape = (1, len(mean), 1, 1)
    centre = images.new_tensor(tuple(mean)).view(shape)
    return images.sub(centre).div_(images.new_tensor(tuple(std)).view(shape))


def noise_level(severity: Fraction) -> tuple[float, float]:
    """Mean and standard deviation of the noise: 0.01·s and s / 8."""
    return 0.01 * float(severity), float(severity) / 8


def blur_size(severity: Fraction) -> tuple[int, float]:
    """Kernel and σ of the blur: 2·max(1, round(s)) + 1 and 1 + 0.4·s.

    Rounding alone would leave client 1 of ten unblurred and tied with client 0, hence the max.
    """
    return 2 * max(1, math.floor(severity + Fraction(1, 2))) + 1, 1 + 0.4 * float(severity)


def mask_range(severity: Fraction) -> tuple[float, float]:
    """Least and largest share of the image that the mask covers: 0.1·s and 0.15·s."""
    return 0.1 * float(severity), 0.15 * float(severity)


def untouched(images: Tensor, severity: Fraction, generator: torch.Generator) -> Tensor:
    return images


def noisy(images: Tensor, severity: Fraction, generator: torch.Generator) -> Tensor:
    return add_noise(images, *noise_level(severity), generator) if severity else images


def blurred(images: Tensor, severity: Fraction, generator: torch.Generator) -> Tensor:
    return blur(images, *blur_size(severity)) if severity else images


def masked(images: Tensor, severity: Fraction, generator: torch.Generator) -> Tensor:
    return erase(images, *mask_range(severity), generator) if severity else images
