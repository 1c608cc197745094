"""Writes small datasets in the published layouts, so that the tests need neither the network nor large files."""

import gzip
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fedcoast.simulation.datasets import catalogue

Arrays = dict[str, Any]


class Writer:
    """Each method writes one layout under `root` and returns the folder; the images are kept to compare with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._random = np.random.default_rng(7)

    def images(self, count: int, side: int, channels: int) -> Any:
        return self._random.integers(0, 256, (count, side, side, channels), dtype=np.uint8)

    def folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def cifar10(self, count: int = 3) -> tuple[Path, Arrays]:
        folder, truth = self.folder("cifar-10-batches-py"), {}
        for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
            truth[name] = self.images(count, 32, 3)
            batch(folder / name, truth[name], labels=list(range(count)))
        dump(folder / "batches.meta", {"label_names": [f"kind {n}" for n in range(10)]})
        return folder, truth

    def cifar100(self, count: int = 3) -> tuple[Path, Arrays]:
        folder, truth = self.folder("cifar-100-python"), {}
        for name in ("train", "test"):
            truth[name] = self.images(count, 32, 3)
            batch(folder / name, truth[name], fine_labels=[99 - n for n in range(count)])
        dump(folder / "meta", {"fine_label_names": [f"fine {n}" for n in range(100)]})
        return folder, truth

    def sprites(self, count: int = 3, name: str = "package") -> tuple[Path, Arrays]:
        folder, truth = self.folder(name), {}
        for batch_name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
            truth[batch_name] = self.images(count, 32, 3)
            Image.fromarray(truth[batch_name].reshape(count, 1024, 3)).save(folder / f"{batch_name}.png")
        truth["labels"] = [n % 10 for n in range(5 * count)]
        (folder / "train_lables.json").write_text(json.dumps(truth["labels"]))
        (folder / "test_lables.json").write_text(json.dumps(list(range(count))))
        return folder, truth

    def stl(self, count: int = 3) -> tuple[Path, Arrays]:
        folder, truth = self.folder("stl10_binary"), {}
        for part in ("train", "test"):
            truth[part] = self.images(count, 96, 3)
            (folder / f"{part}_X.bin").write_bytes(truth[part].transpose(0, 3, 2, 1).tobytes())
            (folder / f"{part}_y.bin").write_bytes(bytes(range(1, count + 1)))
        return folder, truth

    def fashion(self, count: int = 3, name: str = "fashion-mnist", *, zipped: bool = True) -> tuple[Path, Arrays]:
        folder, truth = self.folder(name), {}
        for part in ("train", "t10k"):
            truth[part] = self.images(count, 28, 1)
            for kind, array in (
                ("images-idx3", truth[part][..., 0]),
                ("labels-idx1", np.arange(count, dtype=np.uint8)),
            ):
                path = folder / f"{part}-{kind}-ubyte"
                if zipped:
                    path.with_name(path.name + ".gz").write_bytes(gzip.compress(idx(array)))
                else:
                    path.write_bytes(idx(array))
        return folder, truth

    def archive(self, folder: Path, name: str, inside: str | None = None) -> Path:
        """Pack a folder as it was published, and take the folder away."""
        path = self.root / name
        with tarfile.open(path, "w:gz", compresslevel=1) as tar:
            for file in sorted(folder.iterdir()):
                tar.add(file, f"{inside or folder.name}/{file.name}")
                file.unlink()
        folder.rmdir()
        return path


def dump(path: Path, content: object, protocol: int = 2) -> None:
    path.write_bytes(pickle.dumps(content, protocol=protocol))


def batch(path: Path, images: Any, **entries: object) -> None:
    dump(path, {"data": images.transpose(0, 3, 1, 2).reshape(len(images), -1), **entries})


def idx(array: Any) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


@pytest.fixture(autouse=True)
def only_what_the_test_wrote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the user's own data nor the system's may make a test pass."""
    monkeypatch.setenv("FEDCOAST_DATA", str(tmp_path))
    fashion = catalogue.LAYOUTS["fashion-mnist"][0]
    here = type(fashion)(fashion.places[:2], fashion.files, fashion.decode)
    monkeypatch.setitem(catalogue.LAYOUTS, "fashion-mnist", (here,))
