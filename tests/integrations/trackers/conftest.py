import pytest


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Whatever a tracker leaves lying about."""
    monkeypatch.chdir(tmp_path)
