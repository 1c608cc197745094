"""How data are split over the clients, and how each client's samples are degraded.

Client 0 is the best and its data are untouched. The formulas are those of the paper's dataset settings (Wu et
al., CoAst, ACM MM 2024) as its code reads them for five clients, i = 0..4. For N clients the end points stay:
client i has severity s = 4·i / (N − 1), so the last client of ten is as bad as the last of five.

| setting | client at severity s |
|---|---|
| quantity | holds ⌊(1 − 0.1·s)·n / N⌋ of the n samples; the rest is not used |
| noise | Gaussian noise of mean 0.01·s and standard deviation s / 8, on the scale [0, 1] |
| resolution | Gaussian blur, kernel 2·max(1, round(s)) + 1, σ = 1 + 0.4·s |
| mask | one rectangle erased, area uniform in [0.1·s, 0.15·s], value 0 after normalisation |
| label-noise | a share 0.2·s of the labels replaced by another one, drawn once for the run |
| mixed | fewer samples (quantity) and noisier ones (noise) at once |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedcoast.errors import BadSetting, unknown_word
from fedcoast.simulation.degradations import (
    Degradation,
    blurred,
    crop_and_flip,
    masked,
    noisy,
    normalise,
    untouched,
)

Indices = NDArray[np.int64]
Labels = NDArray[np.integer[Any]]
Split = Callable[[Labels, Sequence[Fraction], np.random.Generator], list[Indices]]

WORST = 4
SKEW = 0.5
REDRAWS = 100


def severity(client: int, clients: int) -> Fraction:
    """The severity of client i of N, from untouched (0) to the last client (4): s = 4·i / (N − 1).

    A fraction, so that shares of samples are exact.

    >>> [str(severity(client, 4)) for client in range(4)]
    ['0', '4/3', '8/3', '4']
    """
    if clients < 1:
        raise BadSetting(f"clients must be at least 1; got {clients}")
    if not 0 <= client < clients:
        raise BadSetting(f"client must lie in 0..{clients - 1}, for {clients} clients; got {client}")
    return Fraction(WORST * client, max(1, clients - 1))


def by_share(labels: Labels, shares: Sequence[Fraction], rng: np.random.Generator) -> list[Indices]:
    """Shuffle, then give client i the next ⌊share_i·n / N⌋ samples."""
    order = rng.permutation(len(labels))
    sizes = [share * len(labels) // len(shares) for share in shares]
    ends = np.cumsum(sizes)
    return [order[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def by_class(labels: Labels, shares: Sequence[Fraction], rng: np.random.Generator) -> list[Indices]:
    """Spread each class over the clients in proportions drawn from a Dirichlet distribution, α = 0.5.

    Draws again while a client has no samples; gives up after a hundred draws.
    """
    for _ in range(REDRAWS if len(labels) >= len(shares) else 0):
        pieces: list[list[Indices]] = [[] for _ in shares]
        for label in np.unique(labels):
            members = rng.permutation(np.flatnonzero(labels == label))
            proportions = rng.dirichlet(np.full(len(shares), SKEW))
            cuts = (np.cumsum(proportions)[:-1] * len(members)).astype(np.int64)
            for own, piece in zip(pieces, np.split(members, cuts), strict=True):
                own.append(piece)
        parts = [np.concatenate(own) for own in pieces]
        if min(map(len, parts)) > 0:
            return parts
    raise BadSetting(
        f"{len(labels)} samples are too few to spread by class over {len(shares)} clients; "
        "use more samples or fewer clients"
    )


def with_duplicates(labels: Labels, shares: Sequence[Fraction], rng: np.random.Generator) -> list[Indices]:
    """Split evenly over all clients but the last, which gets the same data as the one before it."""
    if len(shares) < 2:
        raise BadSetting(f"the setting 'duplicates' needs at least 2 clients; got {len(shares)}")
    parts = by_share(labels, shares[:-1], rng)
    return [*parts, parts[-1].copy()]


@dataclass(frozen=True)
class Setting:
    """A way to make clients differ, and the true order that follows from it.

    `share_lost` (of an even share of the samples) and `wrong_labels` (of the client's own) are per unit of
    severity. `before` and `after` degrade images before and after normalisation.
    `ordered` says whether each client is better than the next by construction.
    """

    name: str
    description: str
    split: Split = by_share
    share_lost: Fraction = Fraction(0)
    wrong_labels: Fraction = Fraction(0)
    before: Degradation = untouched
    after: Degradation = untouched
    ordered: bool = True

    def ground_truth(self, clients: int) -> tuple[float, ...] | None:
        """The true scores, higher is better: N − i for client i; None where the setting has no order.

        >>> SETTINGS["noise"].ground_truth(3)
        (3.0, 2.0, 1.0)
        """
        return tuple(float(clients - client) for client in range(clients)) if self.ordered else None

    def share(self, client: int, clients: int) -> Fraction:
        """The client's fraction of an even share of the samples."""
        return 1 - self.share_lost * severity(client, clients)


_TENTH = Fraction(1, 10)
SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("quantity", "each client holds fewer samples than the one before", share_lost=_TENTH),
        Setting("noise", "each client's images are noisier than the one before's", before=noisy),
        Setting("resolution", "each client's images are blurrier than the one before's", before=blurred),
        Setting("mask", "each client's images are covered more than the one before's", after=masked),
        Setting("label-noise", "each client has more wrong labels", wrong_labels=Fraction(1, 5)),
        # Quantity and quality fall together, so the order needs no exchange rate between them.
        Setting("mixed", "each client holds fewer and noisier samples", share_lost=_TENTH, before=noisy),
        Setting("label-skew", "each class is spread unevenly (Dirichlet 0.5)", split=by_class, ordered=False),
        Setting("duplicates", "the last two hold the same data and tie", split=with_duplicates, ordered=False),
        Setting("even", "all clients have equally random samples and tie", ordered=False),
    )
}


def setting_named(name: str) -> Setting:
    """Look up a setting by name."""
    if name not in SETTINGS:
        raise unknown_word("setting", name, SETTINGS)
    return SETTINGS[name]


def shards(setting: Setting, labels: Labels, clients: int, rng: np.random.Generator) -> list[Indices]:
    """Which samples each client holds: one array of indices per client, disjoint except for duplicates."""
    if clients < 1:
        raise BadSetting(f"clients must be at least 1; got {clients}")
    parts = setting.split(labels, [setting.share(client, clients) for client in range(clients)], rng)
    for client, part in enumerate(parts):
        if len(part) == 0:
            raise BadSetting(
                f"every client needs at least one sample; {len(labels)} samples over {clients} clients in "
                f"the setting {setting.name!r} leave client {client} without any: use more samples or fewer clients"
            )
    return parts


def client_labels(
    setting: Setting, labels: Labels, parts: Sequence[Indices], classes: int, rng: np.random.Generator
) -> list[Labels]:
    """The labels that each client trains with, in the order of its shard; drawn once, before training."""
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise BadSetting(f"labels must lie in 0..{classes - 1}; got {labels.min()}..{labels.max()}")
    if setting.wrong_labels and classes < 2:
        raise BadSetting(f"wrong labels need at least 2 classes; got {classes}")
    labels_by_client = []
    for client, part in enumerate(parts):
        own = labels[part]
        wrong = round(setting.wrong_labels * severity(client, len(parts)) * len(own))
        if wrong:
            hit = rng.choice(len(own), wrong, replace=False)
            # A step of 1..classes−1 around the circle reaches every other label and never the true one.
            own[hit] = (own[hit] + rng.integers(1, classes, wrong)) % classes
        labels_by_client.append(own)
    return labels_by_client


def transform(
    images: Tensor,
    setting: Setting,
    client: int,
    clients: int,
    generator: torch.Generator,
    *,
    mean: Sequence[float],
    std: Sequence[float],
    augment: bool = True,
    flip: bool = True,
) -> Tensor:
    """A batch as this client sees it: augmented, degraded, normalised, masked; drawn anew on every call.

    `images` are floats in [0, 1] of shape (batch, channels, height, width); they are not changed.
    """
    if images.ndim != 4 or not images.is_floating_point():
        raise BadSetting(
            "images must be floats in [0, 1] of shape (batch, channels, height, width); "
            f"got {images.dtype} of shape {tuple(images.shape)}"
        )
    position = severity(client, clients)
    if augment:
        images = crop_and_flip(images, generator, flip=flip)
    images = setting.before(images, position, generator)
    images = normalise(images, mean, std)
    return setting.after(images, position, generator)
