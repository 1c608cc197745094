import pytest

from little_tables import little_table, reproduce
from paper.reproduction import Places


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "runs", tmp_path / "results")


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory):
    """The little table, trained and asked once for all tests that only look or copy."""
    folder = tmp_path_factory.mktemp("little")
    places = Places(folder / "runs", folder / "results")
    outcomes = reproduce([little_table()], places)
    assert not any(outcome.errors for outcome in outcomes)
    return places
