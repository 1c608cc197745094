import os

import pytest
from hypothesis import settings

import fixture_a
import paper.research_code  # noqa: F401  its methods keep the contract too
from fedcoast import Recorder

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("WANDB_ERROR_REPORTING", "false")

settings.register_profile("fedcoast", deadline=None)  # a busy machine is no failure
settings.load_profile("fedcoast")


@pytest.fixture
def run(tmp_path):
    """A small recorded run: fixture A of the test vectors."""
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in fixture_a.rounds("observer"):
            recorder.observe(fl_round)
    return tmp_path / "run"
