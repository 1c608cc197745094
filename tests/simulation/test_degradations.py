"""The image functions, against SciPy, against direct computation and against statistics."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import Tensor

from fedcoast.errors import BadSetting
from fedcoast.simulation.degradations import (
    add_noise,
    blur,
    blur_size,
    blurred,
    crop_and_flip,
    erase,
    mask_range,
    masked,
    noise_level,
    noisy,
    normalise,
)


def chance(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_images(batch: int = 4, channels: int = 3, height: int = 32, width: int = 32) -> Tensor:
    return torch.rand(batch, channels, height, width, generator=chance(99))


def gaussian(kernel: int, sigma: float) -> np.ndarray:
    offsets = np.arange(kernel) - (kernel - 1) / 2
    weights = np.exp(-(offsets**2) / (2 * sigma**2))
    return weights / weights.sum()


@pytest.mark.parametrize(("kernel", "sigma"), [(3, 1.4), (5, 1.8), (7, 2.2), (9, 2.6)])
@pytest.mark.parametrize(("height", "width"), [(32, 32), (8, 8), (12, 20)])
def test_blur_agrees_with_scipy(kernel: int, sigma: float, height: int, width: int) -> None:
    images = random_images(2, 3, height, width)
    weights = gaussian(kernel, sigma)
    expected = images.numpy().astype(np.float64)
    for axis in (2, 3):
        # SciPy's "mirror" is what PyTorch calls "reflect": the border pixel is not repeated.
        expected = ndimage.correlate1d(expected, weights, axis=axis, mode="mirror")
    np.testing.assert_allclose(blur(images, kernel, sigma).numpy(), expected, atol=1e-6)


def test_blur_agrees_with_a_direct_two_dimensional_convolution() -> None:
    images = random_images(2, 3, 16, 16)
    window = torch.tensor(np.outer(gaussian(5, 1.8), gaussian(5, 1.8)), dtype=torch.float32)
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2), mode="reflect")
    expected = torch.nn.functional.conv2d(padded, window.expand(3, 1, 5, 5), groups=3)
    torch.testing.assert_close(blur(images, 5, 1.8), expected)


def test_blur_leaves_a_flat_image_flat_and_a_kernel_of_one_pixel_changes_nothing() -> None:
    flat = torch.full((1, 1, 9, 9), 0.3)
    torch.testing.assert_close(blur(flat, 9, 2.6), flat)
    images = random_images()
    assert torch.equal(blur(images, 1, 1.0), images)


@pytest.mark.parametrize(
    ("kernel", "sigma", "words"),
    [(4, 1.0, "odd number of pixels; got 4"), (3, 0.0, "sigma must be positive; got 0"), (17, 1.0, "larger than 8")],
)
def test_blur_refuses_what_it_cannot_do(kernel: int, sigma: float, words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        blur(random_images(1, 1, 8, 8), kernel, sigma)


def test_noise_has_the_mean_and_spread_asked_for_and_is_not_clipped() -> None:
    images = random_images(64)
    added = add_noise(images, 0.04, 0.5, chance()) - images
    count = added.numel()
    assert abs(added.mean().item() - 0.04) < 5 * 0.5 / count**0.5
    assert abs(added.std().item() - 0.5) < 5 * 0.5 / (2 * count) ** 0.5
    shares = [(added - 0.04).abs().lt(0.5 * width).float().mean().item() for width in (1, 2)]
    assert shares == pytest.approx([0.6827, 0.9545], abs=0.01)
    result = images + added
    assert result.min() < 0
    assert result.max() > 1


def test_noise_differs_between_samples_channels_and_pixels() -> None:
    added = add_noise(torch.zeros(8, 3, 16, 16), 0.0, 1.0, chance())
    assert added.unique().numel() > 0.99 * added.numel()


def covered(batch: int, low: float, high: float, size: int, seed: int = 0) -> Tensor:
    return erase(torch.ones(batch, 3, size, size), low, high, chance(seed)) == 0


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.15), (0.2, 0.3), (0.3, 0.45), (0.4, 0.6)])
def test_a_mask_is_one_rectangle_whose_area_lies_in_the_range(low: float, high: float) -> None:
    holes = covered(1000, low, high, 96)
    assert torch.equal(holes[:, 0], holes[:, 1])
    assert torch.equal(holes[:, 0], holes[:, 2])
    talls = holes[:, 0].any(2).sum(1)
    wides = holes[:, 0].any(1).sum(1)
    areas = holes[:, 0].sum((1, 2))
    assert torch.equal(areas, talls * wides), "the erased pixels fill their bounding box"
    placed = areas > 0
    assert placed.float().mean() > 0.998
    shares = areas[placed] / 96**2
    # A side is rounded to whole pixels: half a pixel either way on sides of at least 96·√(low·0.3) pixels.
    slack = 0.5 / (96 * (low * 0.3) ** 0.5) * 1.1 * high
    assert low - slack <= shares.min()
    assert shares.max() <= high + slack
    assert shares.mean().item() == pytest.approx((low + high) / 2, rel=0.03)


def test_mask_aspect_ratios_are_log_uniform_and_positions_cover_the_image() -> None:
    holes = covered(2500, 0.1, 0.15, 96)[:, 0]
    logs = torch.log(holes.any(2).sum(1) / holes.any(1).sum(1))
    assert logs.min() > np.log(0.3) - 0.08
    assert logs.max() < np.log(3.3) + 0.08
    assert logs.mean().item() == pytest.approx(np.log(0.3 * 3.3) / 2, abs=0.05)
    assert logs.std().item() == pytest.approx(np.log(3.3 / 0.3) / 12**0.5, abs=0.03)
    often = holes.float().mean(0)
    assert often[0].max() > 0, "the top row can be covered"
    assert often[-1].max() > 0, "the bottom row can be covered"
    torch.testing.assert_close(often, often.flip(0), atol=0.04, rtol=0)
    torch.testing.assert_close(often, often.flip(1), atol=0.04, rtol=0)


def test_even_the_mildest_mask_covers_a_pixel_of_a_tiny_image() -> None:
    assert (covered(500, 0.001, 0.002, 8)[:, 0].sum((1, 2)) == 1).all()


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (0.5, 0.4), (0.5, 1.0)])
def test_erasing_refuses_a_meaningless_range(low: float, high: float) -> None:
    with pytest.raises(BadSetting, match="0 < low <= high < 1"):
        covered(1, low, high, 8)


def shifts(image: Tensor, padding: int) -> list[Tensor]:
    size = image.shape[-1]
    padded = torch.nn.functional.pad(image, (padding,) * 4)
    steps = range(2 * padding + 1)
    return [padded[:, row : row + size, column : column + size] for row in steps for column in steps]


@pytest.mark.parametrize(("size", "padding"), [(32, 4), (8, 1)])
def test_every_augmented_image_is_a_shift_or_the_mirror_of_one(size: int, padding: int) -> None:
    image = random_images(1, 3, size, size)[0]
    candidates = shifts(image, padding)
    candidates += [candidate.flip(2) for candidate in candidates]
    seen = [
        [torch.equal(result, candidate) for candidate in candidates].index(True)
        for result in crop_and_flip(image.expand(400, -1, -1, -1), chance())
    ]
    half = len(candidates) // 2
    assert len(set(seen)) > min(half, 100), "samples of one batch are moved differently"
    assert 140 < sum(index >= half for index in seen) < 260, "about half are mirrored"


def test_without_flip_no_image_is_mirrored() -> None:
    image = random_images(1, 1, 8, 8)[0]
    candidates = shifts(image, 1)
    results = crop_and_flip(image.expand(100, -1, -1, -1), chance(), flip=False)
    assert all(any(torch.equal(result, candidate) for candidate in candidates) for result in results)


def test_augmentation_takes_images_in_any_memory_order() -> None:
    images = random_images()
    other = images.to(memory_format=torch.channels_last)
    assert torch.equal(crop_and_flip(other, chance()), crop_and_flip(images, chance()))


def test_normalising_brings_each_channel_to_mean_zero_and_spread_one() -> None:
    images = random_images(16) * torch.tensor([0.5, 1.0, 2.0]).view(1, 3, 1, 1)
    result = normalise(images, images.mean((0, 2, 3)).tolist(), images.std((0, 2, 3)).tolist())
    torch.testing.assert_close(result.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(result.std((0, 2, 3)), torch.ones(3))


@pytest.mark.parametrize(
    ("mean", "std", "words"),
    [((0.5,), (0.5,), "1 means and 1 stds for images of 3 channels"), ((0.5,) * 3, (0.5, 0.0, 0.5), "positive")],
)
def test_normalising_refuses_what_does_not_fit(mean: tuple[float, ...], std: tuple[float, ...], words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        normalise(random_images(), mean, std)


def test_the_formulas_are_those_of_the_paper_for_whole_severities() -> None:
    steps = [Fraction(step) for step in range(5)]
    assert [noise_level(step) for step in steps] == [
        pytest.approx(level) for level in ((0, 0), (0.01, 0.125), (0.02, 0.25), (0.03, 0.375), (0.04, 0.5))
    ]
    assert [blur_size(step) for step in steps[1:]] == [(3, 1.4), (5, 1.8), (7, pytest.approx(2.2)), (9, 2.6)]
    assert [mask_range(step) for step in steps[1:]] == [
        pytest.approx(share) for share in ((0.1, 0.15), (0.2, 0.3), (0.3, 0.45), (0.4, 0.6))
    ]


@pytest.mark.parametrize("degrade", [noisy, blurred, masked])
def test_severity_zero_touches_nothing_and_no_degradation_changes_its_input(degrade: object) -> None:
    assert callable(degrade)
    images = random_images()
    before = images.clone()
    assert degrade(images, Fraction(0), chance()) is images
    assert not torch.equal(degrade(images, Fraction(1), chance()), before)
    crop_and_flip(images, chance())
    normalise(images, (0.5,) * 3, (0.5,) * 3)
    assert torch.equal(images, before)
