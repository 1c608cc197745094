"""The names of the lab's datasets, models and settings, known without loading PyTorch."""

from collections.abc import Iterable

from fedcoast.errors import BadSetting, unknown_word

SIDES = {"digits": 8, "cifar10": 32, "cifar100": 32, "stl10": 96, "fashion-mnist": 28}  # pixels of an image
MODELS = ("mlp", "deep-mlp", "tiny-resnet", "convnet", "resnet4", "resnet18")
SETTINGS = ("quantity", "noise", "resolution", "mask", "label-noise", "mixed", "label-skew", "duplicates", "even")

SMALLEST_SIDE = 8
SMALLEST = {"tiny-resnet": 11, "resnet4": 11}  # pixels a side; below, the stem leaves nothing


def check_names(dataset: str, setting: str, model: str | None = None) -> None:
    """Refuse every name that means nothing, all in one message, and a model that is too large for the images."""
    wrong = [*_unknown("dataset", dataset, SIDES), *_unknown("setting", setting, SETTINGS)]
    if model is not None:
        wrong[1:1] = _unknown("model", model, MODELS)
    if wrong:
        raise BadSetting("; ".join(wrong))
    if model is not None:
        check_side(model, SIDES[dataset])


def check_side(model: str, side: int) -> None:
    """Refuse a model whose stem leaves nothing of images with so many pixels a side."""
    smallest = SMALLEST.get(model, SMALLEST_SIDE)
    if side < smallest:
        fitting = [other for other in MODELS if SMALLEST.get(other, SMALLEST_SIDE) <= side]
        raise BadSetting(
            f"{model} needs images of at least {smallest} × {smallest} pixels; got {side} × {side}"
            + (f"; use another model: {', '.join(fitting)}" if fitting else "")
        )


def _unknown(option: str, name: str, words: Iterable[str]) -> list[str]:
    return [] if name in words else [str(unknown_word(option, name, words))]
