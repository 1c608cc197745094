"""The sample grid: every client drawn, legible and small."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedcoast.errors import BadSetting
from fedcoast.simulation.sample_grid import BYTES, GAP, TILE, _caption, sample_grid, save
from fedcoast.simulation.settings import SETTINGS


def smooth_images(number: int = 12, size: int = 32, channels: int = 3) -> np.ndarray:
    rows, columns = np.mgrid[0:size, 0:size] / size
    waves = np.random.default_rng(0).uniform(1, 6, (number, 1, 1, channels, 2))
    shades = np.sin(waves[..., 0] * rows[None, :, :, None] + waves[..., 1] * columns[None, :, :, None])
    return ((shades + 1) * 127).astype(np.uint8)


def tiles(picture: Image.Image, row: int, rows: int, columns: int) -> np.ndarray:
    """The drawn samples of one row: tiles end one gap and one margin before the right edge."""
    pixels = np.asarray(picture)
    step = TILE + GAP
    top = pixels.shape[0] - 12 - (rows - row) * step
    left = pixels.shape[1] - 12 - columns * step
    starts = [left + column * step for column in range(columns)]
    return np.stack([pixels[top : top + TILE, start : start + TILE] for start in starts])


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_setting_makes_a_small_png(name: str, tmp_path: Path) -> None:
    path = tmp_path / "samples.png"
    save(sample_grid(smooth_images(), SETTINGS[name], 5), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size <= BYTES
    with Image.open(path) as picture:
        assert picture.height > 5 * TILE
        assert picture.width > 10 * TILE


def test_the_first_row_shows_the_source_images_enlarged_pixel_by_pixel() -> None:
    images = smooth_images(10)
    picture = sample_grid(images, SETTINGS["noise"], 5)
    shown = tiles(picture, 0, 5, 10)[:, ::2, ::2].astype(int)
    assert np.array_equal(tiles(picture, 0, 5, 10)[:, ::2], tiles(picture, 0, 5, 10)[:, 1::2])
    nearest = [np.abs(images.astype(int) - one).max((1, 2, 3)).argmin() for one in shown]
    assert sorted(nearest) == list(range(10)), "each source image appears once"
    assert np.abs(shown - images[nearest]).max() <= 1


@pytest.mark.parametrize("name", ["noise", "resolution", "mask"])
def test_each_row_shows_the_same_images_degraded_further(name: str) -> None:
    picture = sample_grid(smooth_images(), SETTINGS[name], 5)
    rows = [tiles(picture, row, 5, 10).astype(int) for row in range(5)]
    distances = [np.abs(row - rows[0]).mean() for row in rows]
    assert distances == sorted(distances)
    assert len(set(distances)) == 5


def test_who_holds_fewer_samples_is_drawn_with_fewer() -> None:
    picture = sample_grid(smooth_images(), SETTINGS["quantity"], 5)
    blank = [[bool((tile == 255).all()) for tile in tiles(picture, row, 5, 10)] for row in range(5)]
    assert [row.count(False) for row in blank] == [10, 9, 8, 7, 6]


def test_rows_are_labelled_and_only_a_true_order_names_a_best_client() -> None:
    ordered = np.asarray(sample_grid(smooth_images(), SETTINGS["noise"], 5))
    left = ordered[:, : ordered.shape[1] - 12 - 10 * (TILE + GAP)]
    step = TILE + GAP
    for row in range(5):
        top = ordered.shape[0] - 12 - (5 - row) * step
        assert (left[top : top + TILE] < 60).any(), f"row {row} has a label"
    assert _caption(SETTINGS["noise"], 0, 5) == ("client 0 (best)", "noise std 0")
    assert _caption(SETTINGS["mixed"], 3, 5) == ("client 3", "70% of a share, noise std 0.375")
    assert _caption(SETTINGS["resolution"], 9, 10) == ("client 9", "blur 9 px, sigma 2.6")
    assert _caption(SETTINGS["mask"], 1, 5) == ("client 1", "mask 10% to 15%")
    assert _caption(SETTINGS["label-noise"], 4, 5) == ("client 4", "80% wrong labels")
    assert _caption(SETTINGS["even"], 0, 5) == ("client 0", "")


def test_large_noisy_images_still_make_a_small_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (12, 96, 96, 3), dtype=np.uint8)
    path = tmp_path / "samples.png"
    save(sample_grid(noise, SETTINGS["noise"], 10), path)
    assert path.stat().st_size <= BYTES


def test_the_seed_chooses_the_samples_and_fixes_the_picture() -> None:
    images = smooth_images(40)
    first, again, other = (sample_grid(images, SETTINGS["mask"], 5, seed).tobytes() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_grey_digits_single_clients_and_few_images_are_drawn_too() -> None:
    picture = sample_grid(smooth_images(3, 8, 1), SETTINGS["mask"], 1)
    assert (np.ptp(tiles(picture, 0, 1, 3), axis=3) == 0).all(), "grey stays grey"


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((2, 8, 8), np.uint8),
        np.zeros((2, 8, 8, 3)),
        np.zeros((2, 3, 8, 8), np.uint8),
        np.zeros((0, 8, 8, 3), np.uint8),
    ],
)
def test_images_of_another_shape_are_refused(images: np.ndarray) -> None:
    with pytest.raises(BadSetting, match="uint8 of shape"):
        sample_grid(images, SETTINGS["even"], 5)


def test_no_clients_are_refused() -> None:
    with pytest.raises(BadSetting, match="clients must be at least 1; got 0"):
        sample_grid(smooth_images(), SETTINGS["even"], 0)
