import re
from pathlib import Path

import pytest

from fedcoast.errors import BadFile, BadSetting, FedcoastError
from fedcoast.simulation.datasets import NAMES, available, check, fetch, load, root_folder


@pytest.mark.parametrize("use", [load, check, fetch])
def test_an_unknown_name_is_answered_with_the_known_ones(use):
    with pytest.raises(BadSetting, match=r"one of digits, cifar10, .* got 'CIFAR-10' \(did you mean cifar10\?\)"):
        use("CIFAR-10")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "digits"])
def test_a_dataset_that_is_not_there_says_what_to_do(name, tmp_path):
    with pytest.raises(BadFile, match=f"{re.escape(str(tmp_path))}: .*fedcoast data get {name}.*FEDCOAST_DATA"):
        load(name)


def test_the_folder_asked_for_goes_before_the_variable_and_the_variable_before_the_cache(monkeypatch, tmp_path):
    assert root_folder("here") == Path.cwd() / "here"
    assert root_folder() == tmp_path
    monkeypatch.delenv("FEDCOAST_DATA")
    assert root_folder().parts[-2:] == ("fedcoast", "data") or "fedcoast" in root_folder().parts


def test_a_tilde_means_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert root_folder("~/data") == tmp_path / "data"


def test_the_list_says_what_is_ready_incomplete_and_absent(write):
    write.fashion()
    folder, _ = write.cifar100()
    (folder / "meta").unlink()
    states = {line.name: (line.state, line.where) for line in available()}
    assert states == {
        "digits": ("ready", "comes with scikit-learn"),
        "cifar10": ("absent", str(write.root)),
        "cifar100": ("incomplete", str(folder)),
        "stl10": ("absent", str(write.root)),
        "fashion-mnist": ("ready", str(write.root / "fashion-mnist")),
    }


def test_a_root_that_is_a_file_is_an_empty_root(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(FedcoastError, match="got none"):
        load("cifar10", file)
