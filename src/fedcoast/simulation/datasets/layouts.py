"""The forms a dataset takes on disk, and the copies of it that are really there."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedcoast.simulation.datasets.dataset import Dataset
from fedcoast.simulation.datasets.published import Published
from fedcoast.simulation.datasets.source_files import Files, locate, read_archive, read_folder


@dataclass(frozen=True)
class Layout:
    """One form: a folder of files, or an archive that holds that folder."""

    places: tuple[str, ...]  # under the root, or absolute
    files: tuple[Published, ...]
    decode: Callable[[Files], Dataset]
    optional: tuple[str, ...] = ()
    archive: Published | None = None
    inside: str = ""  # the folder in the archive
    slow: bool = False  # worth keeping decoded

    @property
    def needed(self) -> tuple[str, ...]:
        return tuple(file.name for file in self.files if file.name not in self.optional)

    def found(self, root: Path) -> list["Copy"]:
        """The copies in this form, whole or not."""
        copies = []
        for place in self.places:
            path = root / place
            if self.archive is not None:
                here = expected = int(path.is_file())
            else:
                here, expected = sum(locate(path, name) is not None for name in self.needed), len(self.needed)
            if here:
                copies.append(Copy(self, path, complete=here == expected))
        return copies


@dataclass(frozen=True)
class Copy:
    """A dataset's files in one place."""

    layout: Layout
    path: Path
    complete: bool

    def read(self) -> Dataset:
        """Read and check the files, each refused by name if it is not what it should be."""
        layout = self.layout
        if layout.archive is not None:
            files = read_archive(self.path, layout.inside, layout.needed, layout.optional)
        else:
            files = read_folder(self.path, layout.needed, layout.optional)
        return layout.decode(files)

    def parts(self) -> list[tuple[Published, Path | None]]:
        """Each published file beside the file that stands for it here."""
        if self.layout.archive is not None:
            return [(self.layout.archive, self.path)]
        return [(file, locate(self.path, file.name)) for file in self.layout.files]

    def stamp(self) -> str:
        """A text that changes whenever a file is replaced, so that a cache of other files is not used."""
        states = [(str(path), path.stat()) for _, path in self.parts() if path is not None]
        return json.dumps([[path, state.st_size, state.st_mtime_ns] for path, state in states])
