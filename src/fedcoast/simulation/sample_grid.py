"""Sample images as each client sees them: one row per client, the same source images in every row."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedcoast.errors import BadSetting, require
from fedcoast.simulation.degradations import blur_size, blurred, mask_range, masked, noise_level, noisy
from fedcoast.simulation.settings import Setting, severity, transform

Pixels = NDArray[np.uint8]

TILE = 64
GAP = 4
MARGIN = 12
FONT = 15
LINE = 20
INK, FAINT, PAPER = (24, 24, 24), (96, 96, 96), (255, 255, 255)
COLUMNS = 10
DRAWN = 110_000
BYTES = 150_000
PALETTES = (256, 128, 64, 32, 16)


def sample_grid(images: Pixels, setting: Setting, clients: int, seed: int = 0) -> Any:
    """Draw some of the images as each client would see them; returns a `PIL.Image.Image`.

    `images` are uint8 of shape (n, height, width, channels), as a dataset stores them. They pass through the
    transform of training without crop and flip, and back through the normalisation; a mask, which is 0 after
    normalisation, therefore shows in the mean colour of the images.
    """
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[3] not in (1, 3) or len(images) == 0:
        raise BadSetting(
            "images must be uint8 of shape (n, height, width, 1 or 3), with n at least 1; "
            f"got {images.dtype} of shape {images.shape}"
        )
    chosen = _choose(images, clients, seed)
    rows = _views(chosen, setting, clients, seed)
    return _draw(rows, [_caption(setting, client, clients) for client in range(clients)], setting)


def save(picture: Any, path: Path) -> None:
    """Write a sample grid as PNG, with fewer colours if it exceeds 150 kB: noise does not compress."""
    image = require("PIL.Image", extra="lab")
    picture.save(path)
    for colours in PALETTES:
        if path.stat().st_size <= BYTES:
            return
        # No dithering: it would break up the enlarged pixels and make the file larger again.
        picture.quantize(colours, dither=image.Dither.NONE).save(path)


def _choose(images: Pixels, clients: int, seed: int) -> Pixels:
    """As many images as fit the grid, different ones for different seeds."""
    if clients < 1:
        raise BadSetting(f"clients must be at least 1; got {clients}")
    # The size of the file follows from the distinct pixels: those of the source, or of the tile where it is smaller.
    height, width = np.minimum(images.shape[1:3], _tile(*images.shape[1:3]))
    fitting = DRAWN // (clients * int(height * width))
    columns = min(COLUMNS, max(3, fitting), len(images))
    chosen: Pixels = images[np.random.default_rng(seed).choice(len(images), columns, replace=False)]
    return chosen


def _views(chosen: Pixels, setting: Setting, clients: int, seed: int) -> list[Pixels]:
    """The chosen images as each client sees them; fewer where it holds fewer samples."""
    clean = torch.from_numpy(chosen).permute(0, 3, 1, 2).float() / 255
    mean = clean.mean((0, 2, 3))
    std = clean.std((0, 2, 3)).clamp(min=1e-3)
    generator = torch.Generator().manual_seed(seed)
    look = partial(transform, mean=mean.tolist(), std=std.tolist(), augment=False)
    rows = []
    for client in range(clients):
        own_count = max(1, round(setting.share(client, clients) * len(chosen)))
        view = look(clean[:own_count], setting, client, clients, generator)
        back = view * std.view(1, -1, 1, 1) + mean.view(1, -1, 1, 1)
        rows.append((back.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy())
    return rows


def _caption(setting: Setting, client: int, clients: int) -> tuple[str, str]:
    """The label of a row: the client, and how degraded its data are."""
    position = severity(client, clients)
    notes = []
    if setting.share_lost:
        notes.append(f"{float(setting.share(client, clients)):.0%} of a share")
    if setting.before is noisy:
        notes.append(f"noise std {noise_level(position)[1]:.3g}")
    if setting.before is blurred and position:
        kernel, sigma = blur_size(position)
        notes.append(f"blur {kernel} px, sigma {sigma:.1f}")
    if setting.after is masked and position:
        low, high = mask_range(position)
        notes.append(f"mask {low:.0%} to {high:.0%}")
    if setting.wrong_labels:
        notes.append(f"{float(setting.wrong_labels * position):.0%} wrong labels")
    best = " (best)" if client == 0 and setting.ordered else ""
    return f"client {client}{best}", ", ".join(notes)


def _tile(height: int, width: int) -> tuple[int, int]:
    """The size of a drawn sample: whole multiples of the pixels of a small image, a large one shrunk."""
    larger = max(height, width)
    zoom = TILE // larger if larger <= TILE else TILE / larger
    return max(1, round(height * zoom)), max(1, round(width * zoom))


def _draw(rows: list[Pixels], captions: list[tuple[str, str]], setting: Setting) -> Any:
    image = require("PIL.Image", extra="lab")
    pen_of = require("PIL.ImageDraw", extra="lab").Draw
    font = require("PIL.ImageFont", extra="lab").load_default(FONT)
    height, width = _tile(*rows[0].shape[1:3])
    step = max(height, 2 * LINE) + GAP
    left = 2 * MARGIN + int(max(font.getlength(text) for caption in captions for text in caption))
    title = f"{setting.name}: {setting.description}"
    right = max(left + len(rows[0]) * (width + GAP), MARGIN + int(font.getlength(title))) + MARGIN
    picture = image.new("RGB", (right, MARGIN + LINE + len(rows) * step + MARGIN), PAPER)
    pen = pen_of(picture)
    pen.text((MARGIN, MARGIN // 2), title, INK, font)
    for number, (row, (name, note)) in enumerate(zip(rows, captions, strict=True)):
        top = MARGIN + LINE + number * step
        middle = top + height // 2
        pen.text((MARGIN, middle - (LINE if note else LINE // 2)), name, INK, font)
        pen.text((MARGIN, middle), note, FAINT, font)
        for column, sample in enumerate(row):
            tile = image.fromarray(sample.repeat(3 // sample.shape[2], axis=2))
            # Nearest neighbour: smoothing would hide the noise that the grid shows.
            tile = tile.resize((width, height), image.Resampling.NEAREST)
            picture.paste(tile, (left + column * (width + GAP), top))
    return picture
