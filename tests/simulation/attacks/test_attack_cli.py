from typer.testing import CliRunner

from fedcoast.cli.lab import app
from fedcoast.errors import BadSetting
from fedcoast.simulation.attacks import ATTACKS
from fedcoast.storage import read_about


def test_the_list_names_every_attack():
    result = CliRunner().invoke(app, ["attack", "list"])
    assert result.exit_code == 0, result.output
    assert all(name in result.output for name in ATTACKS)


def test_an_attacked_federation_is_trained_into_a_run_folder(tmp_path):
    command = ["attack", "zero", "--rounds", "4", "--client", "1", "--workers", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("digits-deep-mlp-noise-fedavg-zero-seed0-")
    assert read_about(folder)["attack"] == {"name": "zero", "clients": [{"name": "1", "type": "int"}]}
    assert "by client 1" in result.output
    assert "Flagged: 1, idle. The upload equals the model it was sent in 4 of 4 rounds." in result.output


def test_an_unknown_attack_is_refused():
    assert isinstance(CliRunner().invoke(app, ["attack", "theft"]).exception, BadSetting)
