"""`check`: file by file, is the user's copy the published one?"""

import os
from dataclasses import dataclass
from pathlib import Path

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets.catalogue import find, layouts_of
from fedcoast.simulation.datasets.checksums import measure
from fedcoast.simulation.datasets.digits import SHA256, digits_sha256
from fedcoast.simulation.datasets.published import Published
from fedcoast.simulation.datasets.root import root_folder


@dataclass(frozen=True)
class Checked:
    """One file: `status` is "published", "differs", "unreadable" or "absent"; `detail` says why, in words."""

    file: str
    status: str
    detail: str


def check(name: str, root: str | os.PathLike[str] | None = None) -> list[Checked]:
    """Compare the copy that `load` would read with what was published.

    A file that differs is not refused: it may be the user's own, such as a part of the training images. Results on it
    are not results on the published dataset, and the row says so.
    """
    layouts, folder = layouts_of(name), root_folder(root)
    if not layouts:
        return [_digits()]
    copy = find(name, folder)
    if copy is None:
        first = layouts[0]
        return [_absent(str(folder / first.places[0] / file.name)) for file in first.files]
    return [
        _row(file, path, copy.path)
        for file, path in copy.parts()
        if path is not None or file.name not in copy.layout.optional
    ]


def _row(file: Published, path: Path | None, place: Path) -> Checked:
    if path is None:
        return _absent(str(place / file.name))
    try:
        size, digest = measure(path, file)
    except BadFile as error:
        return Checked(str(path), "unreadable", str(error))
    came = f"{size:,} bytes, {file.algorithm} {digest}"
    if (size, digest) == (file.size, file.digest):
        return Checked(str(path), "published", came)
    return Checked(
        str(path),
        "differs",
        f"{came}; the published file has {file.size:,} bytes, {file.algorithm} {file.digest}: "
        "this is a copy of your own, not the published file",
    )


def _absent(file: str) -> Checked:
    return Checked(file, "absent", "not there")


def _digits() -> Checked:
    came = digits_sha256()
    if came == SHA256:
        return Checked("scikit-learn: load_digits", "published", f"sha256 {came} of pixels and labels")
    return Checked(
        "scikit-learn: load_digits",
        "differs",
        f"sha256 {came} of pixels and labels, wanted {SHA256}: this scikit-learn holds other digits",
    )
