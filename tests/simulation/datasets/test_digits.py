import numpy as np
from sklearn.datasets import load_digits

from fedcoast.simulation.datasets import check, fetch, load


def test_the_split_is_1437_and_360_and_each_class_gives_a_fifth():
    digits = load("digits")
    train, test = np.bincount(digits.train_labels), np.bincount(digits.test_labels)
    assert (len(digits.train_images), len(digits.test_images)) == (1437, 360)
    assert np.all(np.abs(test - (train + test) / 5) < 1)


def test_everyone_gets_the_same_split():
    one, two = load("digits"), load("digits")
    assert np.array_equal(one.test_images, two.test_images)
    assert one.test_labels[:10].tolist() == [0, 2, 4, 7, 1, 6, 8, 9, 5, 3]


def test_brightness_is_scaled_by_an_exact_rule():
    raw = load_digits()
    digits = load("digits")
    scaled = np.array([value * 255 // 16 for value in range(17)], np.uint8)[raw.images.astype(int)]
    ours = np.concatenate([digits.train_images, digits.test_images])[..., 0]
    assert ours.dtype == np.uint8
    assert sorted(image.tobytes() for image in ours) == sorted(image.tobytes() for image in scaled)
    assert (ours.min(), ours.max()) == (0, 255)


def test_every_digit_keeps_its_label():
    raw = load_digits()
    truth = {image.tobytes(): label for image, label in zip(raw.images.astype(int), raw.target, strict=True)}
    digits = load("digits")
    for image, label in zip(digits.test_images[..., 0], digits.test_labels, strict=True):
        assert truth[((image.astype(int) * 16 + 254) // 255).tobytes()] == label


def test_digits_need_no_fetching_and_can_be_checked():
    assert fetch("digits") is None
    assert [row.status for row in check("digits")] == ["published"]
