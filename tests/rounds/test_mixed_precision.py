"""Servers and clients mix float types: all models are read in the precision of the first global model."""

import numpy as np
import pytest

from fedcoast import BFloat16, CoAst, Recorder, Round, replay
from fedcoast.rounds.arrays import as_float
from fedcoast.rounds.round_view import RoundView


def rounds(server, client, count=4):
    """Three clients; the server averages in `server`, the clients train and send in `client`."""
    rng = np.random.default_rng(1)
    model = {"w": rng.standard_normal((20, 10)).astype(client)}
    for number in range(1, count + 1):
        steps = {name: sign + rng.standard_normal((20, 10)) for name, sign in (("a", 1), ("b", 0.5), ("c", -1))}
        local = {name: {"w": (model["w"] + 0.25 * step).astype(client)} for name, step in steps.items()}
        end = {"w": np.mean([one["w"] for one in local.values()], axis=0, dtype=server)}
        yield Round(number, start=model, local=local, end=end)
        model = end


@pytest.mark.parametrize(
    ("server", "client"), [(np.float64, np.float32), (np.float32, np.float16), (np.float64, np.float16)]
)
def test_averages_wider_than_the_uploads_quarantine_nobody(server, client, tmp_path):
    coast = CoAst(horizon=1)
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in rounds(server, client):
            coast.observe(fl_round)
            recorder.observe(fl_round)
    answer = coast.assessment()
    assert not answer.quarantined
    assert answer.ranking[-1] == "c"
    again = CoAst(horizon=1)
    for fl_round in replay(tmp_path / "run"):
        again.observe(fl_round)
    assert again.assessment() == answer


def test_narrow_uploads_to_a_wide_model_are_widened_exactly():
    start, end = {"w": np.zeros(4)}, {"w": np.float64([1, 0, 0, 0])}
    local = {"a": {"w": np.float16([0.5, 0, 0, 0])}, "b": {"w": np.float32([0, -0.25, 0, 0])}}
    fl_round = Round(1, start=start, local=local, end=end)
    view = RoundView(fl_round, fl_round.schema(), "quarantine")
    uploads = dict(view.uploads())
    assert view.quarantined == {}
    assert {array.dtype for model in uploads.values() for array in model.values()} == {np.dtype(np.float64)}
    assert uploads["a"]["w"].tolist() == [0.5, 0, 0, 0]


def test_a_number_beyond_the_precision_of_the_model_costs_only_its_client():
    model = {"w": np.zeros(4, np.float32)}
    fl_round = Round(1, start=model, local={"a": model, "b": {"w": np.full(4, 1e300)}}, end=model)
    view = RoundView(fl_round, fl_round.schema(), "quarantine")
    assert [client for client, _ in view.uploads()] == ["a"]
    assert "layer 'w' must be finite; got inf" in view.quarantined["b"]


def test_rounding_to_bfloat16_agrees_with_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    values = np.float32(
        [*rng.standard_normal(5000) * 10.0 ** rng.integers(-30, 30, 5000), 0, -0.0, np.inf, np.nan, 3e38]
    )
    wanted = torch.from_numpy(values).bfloat16().float().numpy()
    np.testing.assert_array_equal(as_float(values, "float32", "bfloat16"), wanted)
    model = {"w": BFloat16(np.zeros(5, np.float32))}
    fl_round = Round(1, start=model, local={"a": {"w": np.full(5, 1 + 2**-9)}}, end=model)
    ((_, upload),) = RoundView(fl_round, fl_round.schema(), "raise").uploads()
    assert upload["w"].tolist() == [1] * 5
