"""Who holds what, and what each client sees of it."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fedcoast.errors import BadSetting
from fedcoast.simulation.degradations import blur_size, mask_range, noise_level
from fedcoast.simulation.settings import (
    SETTINGS,
    Setting,
    client_labels,
    setting_named,
    severity,
    shards,
    transform,
)

ORDERED = ("quantity", "noise", "resolution", "mask", "label-noise", "mixed")
EVEN = ("noise", "resolution", "mask", "label-noise", "even")
PLAIN = {"mean": (0.0,), "std": (1.0,), "augment": False}


def labels_of(samples: int, classes: int = 10) -> np.ndarray:
    return np.arange(samples) % classes


def split(name: str, samples: int, clients: int, seed: int = 0) -> list[np.ndarray]:
    return shards(SETTINGS[name], labels_of(samples), clients, np.random.default_rng(seed))


def chance(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def view(images: Tensor, name: str, client: int, clients: int = 5, seed: int = 0) -> Tensor:
    return transform(images, SETTINGS[name], client, clients, chance(seed), **PLAIN)


def test_severity_runs_from_zero_to_four_for_any_number_of_clients() -> None:
    assert [severity(client, 5) for client in range(5)] == [0, 1, 2, 3, 4]
    assert [severity(client, 2) for client in range(2)] == [0, 4]
    assert severity(9, 10) == 4
    assert severity(3, 10) == Fraction(4, 3)
    assert severity(0, 1) == 0


@pytest.mark.parametrize(("client", "clients"), [(5, 5), (-1, 5), (0, 0)])
def test_severity_refuses_a_client_that_does_not_exist(client: int, clients: int) -> None:
    with pytest.raises(BadSetting, match="got"):
        severity(client, clients)


@pytest.mark.parametrize("clients", [2, 5, 10])
def test_the_last_client_is_as_bad_however_many_there_are(clients: int) -> None:
    last = severity(clients - 1, clients)
    assert noise_level(last) == (0.04, 0.5)
    assert blur_size(last) == (9, 2.6)
    assert mask_range(last) == pytest.approx((0.4, 0.6))
    sizes = [len(part) for part in split("quantity", 1000 * clients, clients)]
    assert sizes[0] == 1000
    assert sizes[-1] == 600


@given(clients=st.integers(2, 60))
def test_every_client_is_degraded_more_than_the_one_before(clients: int) -> None:
    positions = [severity(client, clients) for client in range(clients)]
    blurs = [blur_size(position) for position in positions[1:]]
    assert all(kernel >= 3 and kernel % 2 == 1 for kernel, _ in blurs)
    assert all(a[0] <= b[0] and a[1] < b[1] for a, b in pairwise(blurs))
    assert positions == sorted(set(positions))


def test_quantity_for_five_clients_is_the_papers_split_of_cifar() -> None:
    assert [len(part) for part in split("quantity", 50_000, 5)] == [10_000, 9_000, 8_000, 7_000, 6_000]


@given(samples=st.integers(60, 3000), clients=st.integers(1, 12), name=st.sampled_from(sorted(SETTINGS)))
def test_shards_are_disjoint_within_the_data_and_repeatable(samples: int, clients: int, name: str) -> None:
    if name == "duplicates" and clients == 1:
        return
    parts = split(name, samples, clients, seed=3)
    again = split(name, samples, clients, seed=3)
    assert len(parts) == clients
    assert all(len(part) for part in parts)
    assert all(np.array_equal(part, other) for part, other in zip(parts, again, strict=True))
    distinct = parts[:-1] if name == "duplicates" else parts
    together = np.concatenate(distinct)
    assert len(np.unique(together)) == len(together)
    assert together.min() >= 0
    assert together.max() < samples


@given(samples=st.integers(60, 3000), clients=st.integers(1, 12))
def test_shard_sizes_are_exact(samples: int, clients: int) -> None:
    for name in ("quantity", "mixed"):
        sizes = [len(part) for part in split(name, samples, clients)]
        whole = max(1, clients - 1)
        exact = [(10 * whole - 4 * client) * samples // (10 * whole * clients) for client in range(clients)]
        assert sizes == exact
    for name in EVEN:
        assert {len(part) for part in split(name, samples, clients)} == {samples // clients}
    assert sum(map(len, split("label-skew", samples, clients))) == samples


def test_other_seeds_give_other_shards() -> None:
    for name in SETTINGS:
        first, second = split(name, 500, 5, seed=0), split(name, 500, 5, seed=1)
        assert not np.array_equal(first[0], second[0]), name


def test_shards_are_a_random_choice_and_not_a_slice() -> None:
    part = split("even", 5000, 5)[0]
    assert abs(part.mean() - 2500) < 250
    counts = np.bincount(labels_of(5000)[part], minlength=10)
    assert counts.min() > 60


def test_duplicates_give_the_last_two_clients_the_same_data() -> None:
    parts = split("duplicates", 401, 5)
    assert [len(part) for part in parts] == [100] * 5
    assert np.array_equal(parts[3], parts[4])
    assert parts[3] is not parts[4]
    assert not set(parts[0]) & set(parts[3])
    with pytest.raises(BadSetting, match="at least 2 clients; got 1"):
        split("duplicates", 100, 1)


def test_label_skew_spreads_classes_far_more_unevenly_than_chance() -> None:
    labels = labels_of(5000)
    spreads = {}
    for name in ("even", "label-skew"):
        counts = [np.bincount(labels[part], minlength=10) for part in split(name, 5000, 5)]
        spreads[name] = float(np.std(counts))
    assert spreads["label-skew"] > 5 * spreads["even"]
    # A Dirichlet(α) share over N clients has variance (N − 1) / (N²·(N·α + 1)).
    expected = 500 * math.sqrt(4 / (25 * 3.5))
    assert spreads["label-skew"] == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_too_few_samples_are_refused_with_a_way_out(name: str) -> None:
    with pytest.raises(BadSetting, match="more samples or fewer clients"):
        split(name, 3, 5)


def test_no_clients_and_unknown_settings_are_refused() -> None:
    with pytest.raises(BadSetting, match="clients must be at least 1; got 0"):
        split("even", 100, 0)
    with pytest.raises(BadSetting, match=r"one of quantity, noise, .*; got 'nois'"):
        setting_named("nois")
    assert setting_named("mask") is SETTINGS["mask"]


def test_settings_plant_an_order_exactly_where_there_is_one() -> None:
    for name, setting in SETTINGS.items():
        assert setting.name == name
        assert setting.description
        expected = (5.0, 4.0, 3.0, 2.0, 1.0) if name in ORDERED else None
        assert setting.ground_truth(5) == expected
    assert SETTINGS["noise"].ground_truth(2) == (2.0, 1.0)


@pytest.mark.parametrize(("clients", "shares"), [(5, (0, 0.2, 0.4, 0.6, 0.8)), (2, (0, 0.8)), (3, (0, 0.4, 0.8))])
def test_label_noise_replaces_the_stated_share_by_other_labels(clients: int, shares: tuple[float, ...]) -> None:
    labels = labels_of(1000 * clients)
    before = labels.copy()
    parts = split("label-noise", 1000 * clients, clients)
    believed = client_labels(SETTINGS["label-noise"], labels, parts, 10, np.random.default_rng(1))
    wrong = [int((own != labels[part]).sum()) for own, part in zip(believed, parts, strict=True)]
    assert wrong == [round(1000 * share) for share in shares]
    assert np.array_equal(labels, before)
    steps = (believed[-1] - labels[parts[-1]]) % 10
    assert np.bincount(steps, minlength=10)[1:].min() > 50, "every other label is equally likely"
    assert believed[-1].min() >= 0
    assert believed[-1].max() <= 9


def test_wrong_labels_are_fixed_by_the_seed_and_other_settings_have_none() -> None:
    labels = labels_of(500).astype(np.uint8)
    parts = split("even", 500, 5)
    first, again, other = (
        client_labels(SETTINGS["label-noise"], labels, parts, 10, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[4], other[4])
    for name in sorted(set(SETTINGS) - {"label-noise"}):
        plain = client_labels(SETTINGS[name], labels, parts, 10, np.random.default_rng(1))
        assert all(np.array_equal(own, labels[part]) for own, part in zip(plain, parts, strict=True))


def test_labels_outside_the_classes_are_refused() -> None:
    labels = labels_of(100)
    parts = split("even", 100, 5)
    with pytest.raises(BadSetting, match=r"0\.\.4; got 0\.\.9"):
        client_labels(SETTINGS["even"], labels, parts, 5, np.random.default_rng(0))
    with pytest.raises(BadSetting, match="at least 2 classes"):
        client_labels(SETTINGS["label-noise"], labels * 0, parts, 1, np.random.default_rng(0))


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_client_zero_sees_its_images_untouched(name: str) -> None:
    images = torch.rand(8, 1, 16, 16, generator=chance(5))
    assert torch.equal(view(images, name, 0), images)
    assert torch.equal(view(images, name, 0, clients=1), images)


@pytest.mark.parametrize("name", ["noise", "resolution", "mask", "mixed"])
@pytest.mark.parametrize("clients", [2, 5, 10])
def test_each_client_sees_its_images_further_from_the_truth(name: str, clients: int) -> None:
    images = torch.rand(200, 1, 32, 32, generator=chance(5))
    errors = [(view(images, name, client, clients) - images).abs().mean().item() for client in range(clients)]
    assert errors == sorted(errors)
    assert len(set(errors)) == clients


@pytest.mark.parametrize("name", ["quantity", "label-noise", "label-skew", "duplicates", "even"])
def test_other_settings_leave_the_pixels_alone(name: str) -> None:
    images = torch.rand(8, 1, 16, 16, generator=chance(5))
    assert torch.equal(view(images, name, 4), images)


@pytest.mark.parametrize("name", ["noise", "mask", "mixed"])
def test_chance_is_fresh_on_every_draw_and_repeatable_from_the_seed(name: str) -> None:
    images = torch.rand(32, 3, 32, 32, generator=chance(5))
    generator = chance(7)
    draw = {"mean": (0.5,) * 3, "std": (0.25,) * 3}
    first, second = (transform(images, SETTINGS[name], 4, 5, generator, **draw) for _ in range(2))
    assert not torch.equal(first, second)
    again = transform(images, SETTINGS[name], 4, 5, chance(7), **draw)
    assert first.numpy().tobytes() == again.numpy().tobytes()


def test_noise_comes_before_normalisation_and_the_mask_after() -> None:
    images = torch.full((400, 1, 32, 32), 0.75)
    draw = {"mean": (0.5,), "std": (0.25,), "augment": False}
    noisy = transform(images, SETTINGS["noise"], 4, 5, chance(), **draw)
    assert noisy.mean().item() == pytest.approx((0.75 + 0.04 - 0.5) / 0.25, abs=0.02)
    assert noisy.std().item() == pytest.approx(0.5 / 0.25, abs=0.02)
    masked = transform(images, SETTINGS["mask"], 4, 5, chance(), **draw)
    assert set(masked.unique().tolist()) == {0.0, 1.0}
    assert (masked == 0).float().mean().item() == pytest.approx(0.5, abs=0.02)


def test_augmentation_comes_first_so_that_the_black_border_is_blurred_too() -> None:
    images = torch.ones(64, 1, 32, 32)
    draw = {"mean": (0.0,), "std": (1.0,)}
    cropped = transform(images, SETTINGS["even"], 4, 5, chance(), **draw)
    assert set(cropped.unique().tolist()) == {0.0, 1.0}
    blurred = transform(images, SETTINGS["resolution"], 4, 5, chance(), **draw)
    assert blurred.unique().numel() > 20


def test_flip_can_be_turned_off() -> None:
    images = torch.linspace(0, 1, 32).expand(64, 1, 32, 32).contiguous()
    draw = {"mean": (0.0,), "std": (1.0,)}
    rising = transform(images, SETTINGS["even"], 0, 5, chance(), flip=False, **draw)[:, 0, 16, 4:28].diff(dim=1)
    assert (rising > 0).all()
    mixed = transform(images, SETTINGS["even"], 0, 5, chance(), **draw)[:, 0, 16, 4:28].diff(dim=1)
    assert (mixed < 0).any()


def test_images_that_are_not_a_batch_of_floats_are_refused() -> None:
    for images in (torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.zeros(1, 8, 8)):
        with pytest.raises(BadSetting, match=r"floats in \[0, 1\] of shape"):
            view(images, "even", 0)


def test_a_setting_of_ones_own_needs_no_registration() -> None:
    darker = Setting("dark", "darker and darker", before=lambda images, position, _: images * (1 - float(position) / 5))
    seen = transform(torch.ones(1, 1, 8, 8), darker, 4, 5, chance(), **PLAIN)
    assert seen.unique().tolist() == pytest.approx([0.2])
