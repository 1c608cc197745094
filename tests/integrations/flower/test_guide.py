"""The code of docs/flower.md runs as it is printed, each piece with what a server app has at that place."""

import re
from functools import partial
from pathlib import Path

import pytest
from flwr.clientapp import ClientApp
from flwr.server.strategy import FedAvg as OldFedAvg
from flwr.serverapp.strategy import FedAvg

import fedcoast
from fedcoast import CoAst
from fedcoast.integrations import flower
from integrations.flower.handmade import federation, record, small_model

GUIDE = Path(__file__).parents[3] / "docs" / "flower.md"
PIECES = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
ANSWERED = [piece for piece in PIECES if "print(" in piece]


class Net:
    def state_dict(self):
        return small_model()


def run(piece, folder, rounds=4):
    """The names of the piece after it ran; rounds are fewer, and the run is recorded where tests may write."""
    plain = partial(FedAvg, fraction_evaluate=0.0)
    names = {name: getattr(flower, name) for name in flower.__all__}
    names |= {"CoAst": CoAst, "Recorder": fedcoast.Recorder, "coast": CoAst(), "ClientApp": ClientApp, "model": Net()}
    names |= {"grid": federation(), "arrays": record(small_model()), "strategy": plain(), "FedAvg": plain}
    if ".legacy import" in piece:
        names["FedAvg"] = OldFedAvg
    code = piece.replace("/runs/today", str(folder / "run")).replace("num_rounds=20", f"num_rounds={rounds}")
    exec(compile(code, GUIDE.name, "exec"), names)
    return names


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.splitlines()[0][:40])
def test_every_piece_of_code_in_the_guide_runs(piece, tmp_path):
    run(piece, tmp_path)


@pytest.mark.parametrize("piece", ANSWERED, ids=["wrapped", "watched"])
def test_the_pieces_that_print_an_answer_have_one(piece, tmp_path, capsys):
    answer = run(piece, tmp_path)["coast"].assessment()
    assert answer.ranking[-1] == "partition-3"
    assert "partition-3" in capsys.readouterr().out


def test_the_recorded_run_of_the_guide_goes_on_where_it_stopped(tmp_path):
    (piece,) = [piece for piece in PIECES if "resumed(" in piece]
    run(piece, tmp_path, rounds=2)
    run(piece, tmp_path, rounds=5)
    assert [fl_round.number for fl_round in fedcoast.replay(tmp_path / "run")] == [1, 2, 3, 4, 5]
