"""The observer hub: one broken upload costs nobody else anything, whatever the framework."""

import numpy as np
import pytest

from fedcoast import BadSetting, CoAst, Recorder, replay
from fedcoast.analysis.running_verdicts import CODES
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.analysis.verdicts import verdicts
from fedcoast.audit import verify
from fedcoast.integrations.observer_hub import ObserverHub
from fedcoast.integrations.round_capture import ClientUpload, RoundCapture

STEPS = {"ann": 1.0, "bob": 0.5, "cid": -0.7}


def model_at(seed, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return {"w": rng.standard_normal((6, 5)).astype(dtype), "count": np.array(3, np.int64)}


class Server:
    """Averages what its clients send, as plainly as FedAvg does."""

    def __init__(self, *observers, is_difference=False):
        self.hub, self.is_difference = ObserverHub(observers), is_difference
        self.model = model_at(0)

    def run(self, number, change=None, weights=None, average=True):
        rng = np.random.default_rng([1, number])
        sent = {}
        for client, step in STEPS.items():
            update = (0.1 * (step + rng.standard_normal((6, 5)))).astype(np.float32)
            trained = {"w": self.model["w"] + update, "count": self.model["count"] + 1}
            sent[client] = {"w": update, "count": np.array(1)} if self.is_difference else trained
            if change and client == "bob":
                sent[client] = change(sent[client])
        weights = weights or dict.fromkeys(STEPS, 10)
        start, end = self.model, None
        if average:
            mean = np.average([sent[one]["w"] for one in STEPS], axis=0, weights=[weights[one] for one in STEPS])
            end = {"w": mean + self.model["w"] if self.is_difference else mean, "count": np.array(4.0)}
            if np.isfinite(end["w"]).all():
                self.model = {"w": end["w"].astype(np.float32), "count": np.array(3)}
        uploads = {
            one: ClientUpload(lambda one=one: sent[one], weights[one], self.is_difference) for one in reversed(STEPS)
        }
        return self.hub.publish(self.hub.number(number), RoundCapture(start, uploads, end))


def test_the_metrics_of_a_round_have_the_verdicts_of_the_report():
    coast = CoAst(keep=1)
    server = Server(coast)
    for number in range(1, 31):
        metrics = server.run(number, change=lambda model: {name: np.array(a) for name, a in server.model.items()})
    answer = coast.assessment()
    expected = verdicts(answer, uncertainty(answer))
    assert expected["bob"] == "idle"  # it returned the model in every round
    for client, verdict in expected.items():
        assert metrics[f"fedcoast/coast/verdict/{client}"] == CODES[verdict]
    assert {type(value) for key, value in metrics.items() if "/verdict/" in key} == {int}


def put(value):
    def change(model):
        spoiled = np.array(model["w"])
        spoiled[2, 2] = value
        return {**model, "w": spoiled}

    return change


def test_a_healthy_federation_is_observed_whole():
    coast = CoAst(keep=1)  # the model is too small for less
    server = Server(coast)
    metrics = [server.run(number) for number in range(1, 6)]
    assert server.hub.unobserved == {}
    assert [one["fedcoast/observed"] for one in metrics] == [1] * 5
    answer = coast.assessment()
    assert answer.ranking[-1] == "cid"
    assert metrics[-1]["fedcoast/coast/score/cid"] == answer.scores["cid"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_spoils_the_average_names_its_client_and_the_next_round_is_observed(value):
    coast = CoAst(horizon=1)
    server = Server(coast)
    for number in range(1, 7):
        metrics = server.run(number, put(value) if number == 3 else None)
        assert metrics["fedcoast/observed"] == (number != 3)
    assert set(server.hub.unobserved) == {3}
    reason = server.hub.unobserved[3]["everyone"]
    assert "global model after the round: layer 'w' must be finite" in reason
    assert "bad uploads: client 'bob': layer 'w' must be finite" in reason
    assert "ann" not in reason
    assert sorted(coast.assessment().credits) == [1, 2, 4, 5]


def test_a_weight_that_spoils_the_average_names_its_client():
    server = Server(CoAst(horizon=1))
    server.run(1, weights={"ann": 1, "bob": float("nan"), "cid": 1})
    assert "client 'bob': its weight must be a number ≥ 0; got nan" in server.hub.unobserved[1]["everyone"]
    assert server.run(2)["fedcoast/observed"] == 1


@pytest.mark.parametrize("weight", [10**400, 10**5000, "x" * 10**6, 1j], ids=["huge", "endless", "text", "complex"])
def test_a_weight_that_is_no_number_costs_nobody_the_round(caplog, weight):
    coast = CoAst(horizon=1)
    hub, start = ObserverHub([coast]), model_at(0)
    uploads = {"ann": ClientUpload(lambda: start, 3), "bob": ClientUpload(lambda: start, weight)}
    assert hub.publish(1, RoundCapture(start, uploads, start))["fedcoast/observed"] == 1
    assert "round 1: the weight of bob must be a number" in caplog.text
    assert len(caplog.text) < 1000


def test_finite_numbers_that_overflow_in_the_average_name_their_client():
    hub, start = ObserverHub([CoAst(horizon=1)]), model_at(0)
    uploads = {one: ClientUpload(lambda: start, 1) for one in STEPS}
    uploads["bob"] = ClientUpload(lambda: put(3e38)(start), 10)
    with np.errstate(over="ignore"):
        end = {**start, "w": put(np.float32(3e38))(start)["w"] * np.float32(10)}
    hub.publish(1, RoundCapture(start, uploads, end))
    reason = hub.unobserved[1]["everyone"]
    assert "bad uploads: client 'bob': layer 'w' holds 3e+38, too large to be averaged" in reason
    assert "ann" not in reason
    assert hub.publish(2, RoundCapture(start, uploads, start))["fedcoast/observed"] == 1


@pytest.mark.parametrize("name", ["x" * 100_000, 10**5000, 0.5], ids=["long", "endless", "fraction"])
def test_a_name_that_is_none_costs_only_whoever_claims_it(caplog, name):
    coast = CoAst(horizon=1)
    hub, start = ObserverHub([coast]), model_at(0)
    uploads = {one: ClientUpload(lambda: start) for one in (*STEPS, name)}
    assert hub.publish(1, RoundCapture(start, uploads, start))["fedcoast/observed"] == 1
    answer = coast.assessment()
    (left_out,) = answer.quarantined[1]
    assert set(answer.clients) == {*STEPS, left_out}
    assert len(left_out) < 100
    assert len(caplog.text) < 1000


def test_a_reason_that_quotes_a_client_is_short(caplog):
    coast = CoAst(horizon=1)
    server = Server(coast)
    server.run(1, lambda model: {**model, "x" * 10**6: np.zeros(2)}, average=False)
    (reason,) = coast.assessment().quarantined[1].values()
    assert "layer 'xxx" in reason
    assert len(reason) < 1100
    assert len(caplog.text) < 3000


def test_a_bad_weight_that_spoils_nothing_is_logged_and_the_round_observed(caplog):
    coast = CoAst(horizon=1)
    server = Server(coast)
    metrics = server.run(1, weights={"ann": 1, "bob": -1.0, "cid": 2})
    assert metrics["fedcoast/observed"] == 1
    assert "round 1: the weight of bob must be a number ≥ 0; got -1.0" in caplog.text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda model: {"w": model["w"]}, "layer 'count' is missing"),
        (lambda model: {**model, "extra": np.zeros(2)}, "layer 'extra' is not in the global model"),
        (lambda model: {**model, "w": model["w"].astype(np.int8)}, "a quantised or encrypted upload"),
        (lambda model: {**model, "w": model["w"][:3]}, "must have shape (6, 5); got (3, 5)"),
        (put(np.nan), "layer 'w' must be finite"),
    ],
)
def test_a_broken_upload_that_the_server_kept_out_costs_only_its_client(change, reason):
    coast = CoAst(horizon=1)
    server = Server(coast)
    for number in range(1, 5):
        metrics = server.run(number, change if number == 2 else None, average=False)
        assert metrics["fedcoast/observed"] == 1
    quarantined = coast.assessment().quarantined
    assert list(quarantined) == [2]
    assert list(quarantined[2]) == ["bob"]
    assert reason in quarantined[2]["bob"]


def test_a_server_that_fails_on_an_upload_learns_whose_it_was(caplog):
    server = Server(CoAst())
    start = model_at(0)
    uploads = {"ann": ClientUpload(lambda: start), "bob": ClientUpload(lambda: {"w": start["w"]})}
    server.hub.explain_failure(1, RoundCapture(start, uploads, None), KeyError("count"))
    reason = server.hub.unobserved[1]["everyone"]
    assert "the aggregation failed (KeyError: 'count'); bad uploads: client 'bob': layer 'count' is missing" in reason
    assert reason in caplog.text


def test_differences_that_are_declared_score_as_the_models_they_stand_for():
    models, differences = CoAst(horizon=1), CoAst(horizon=1)
    server, other = Server(models), Server(differences, is_difference=True)
    for number in range(1, 6):
        server.run(number)
        other.run(number)
    assert differences.assessment().ranking == models.assessment().ranking
    assert not differences.assessment().quarantined


def test_differences_that_are_not_declared_are_refused_by_name():
    coast = CoAst(horizon=1)
    hub = ObserverHub([coast])
    start = model_at(0)
    step = {"w": np.full((6, 5), 0.01, np.float32), "count": np.array(1)}
    uploads = {"ann": ClientUpload(lambda: start), "bob": ClientUpload(lambda: step)}
    hub.publish(1, RoundCapture(start, uploads, start))
    ((client, reason),) = coast.assessment().quarantined[1].items()
    assert client == "bob"
    assert "it looks like a difference or a gradient" in reason
    assert "uploads='differences'" in reason


def test_a_model_that_starts_at_zero_is_no_difference():
    coast = CoAst(horizon=1)
    hub = ObserverHub([coast])
    start = {"w": np.zeros((6, 5), np.float32)}
    uploads = {one: ClientUpload(lambda one=one: {"w": start["w"] + one}) for one in (1, 2)}
    uploads[3] = ClientUpload(lambda: start)
    hub.publish(1, RoundCapture(start, uploads, {"w": start["w"] + 1}))
    assert not coast.assessment().quarantined


def test_metrics_grow_with_the_clients_of_a_round_not_with_all_ever_seen():
    coast = CoAst(horizon=1)
    hub = ObserverHub([coast])
    start, sizes = model_at(0), []
    for number in range(1, 20):
        uploads = {f"{number}-{one}": ClientUpload(lambda: start) for one in range(3)}
        sizes.append(len(hub.publish(number, RoundCapture(start, uploads, start))))
    assert len(set(sizes)) == 1
    assert len(coast.assessment().clients) == 57


def test_a_model_that_grows_begins_a_segment_and_keeps_its_credits():
    coast = CoAst(horizon=1)
    server = Server(coast)
    for number in range(1, 4):
        server.run(number)
    before = coast.assessment().credits
    start = {**server.model, "new": np.zeros(4, np.float32)}
    for number in range(4, 8):
        models = {one: {**start, "new": start["new"] + step} for one, step in STEPS.items()}
        uploads = {one: ClientUpload(lambda one=one, models=models: models[one]) for one in STEPS}
        end = {**start, "new": start["new"] + 1}
        server.hub.publish(server.hub.number(number), RoundCapture(start, uploads, end))
        start = end
    credits = coast.assessment().credits
    assert server.hub.unobserved == {}
    assert {number: credits[number] for number in before} == before
    assert sorted(credits) == [1, 2, 4, 5, 6]


def test_a_recording_of_a_model_that_grew_keeps_what_was_finished_and_says_what_to_do(tmp_path):
    coast = CoAst(horizon=1)
    server = Server(coast, Recorder(tmp_path / "run"))
    for number in range(1, 4):
        server.run(number)
    start = {**server.model, "new": np.zeros(4, np.float32)}
    uploads = {one: ClientUpload(lambda: start) for one in STEPS}
    server.hub.publish(server.hub.number(4), RoundCapture(start, uploads, start))
    assert coast.last_round == 4
    assert "layer 'new' was absent" in server.hub.unobserved[4]["recorder"]
    assert "use a new folder" in server.hub.unobserved[4]["recorder"]
    assert [fl_round.number for fl_round in replay(tmp_path / "run")] == [1, 2, 3]
    assert verify(tmp_path / "run").agrees


def test_an_observer_that_raises_costs_only_itself():
    class Broken:
        def observe(self, fl_round, /):
            raise RuntimeError("no")

    coast = CoAst(horizon=1)
    server = Server(Broken(), coast)
    assert server.run(1)["fedcoast/observed"] == 0
    assert server.hub.unobserved == {1: {"broken": "no"}}
    assert coast.last_round == 1


def test_a_recording_is_continued_after_a_restart(tmp_path):
    coast, whole = CoAst(horizon=1), CoAst(horizon=1)
    server, other = Server(coast, Recorder(tmp_path / "run")), Server(whole)
    for number in (1, 2, 3):
        server.run(number)
        other.run(number)
    server.hub.observers["recorder"].close()
    again = CoAst(horizon=1)
    resumed = Server(again, Recorder(tmp_path / "run"))
    resumed.model = server.model
    assert resumed.hub.last_round == 3
    assert resumed.hub.number(1) == 4
    assert again.assessment() == coast.assessment() == whole.assessment()


def test_a_hub_without_observers_is_refused():
    with pytest.raises(BadSetting, match="at least one observer is wanted"):
        ObserverHub([])


def test_every_log_line_says_that_it_is_fedcoasts(caplog):
    model = {"w": np.zeros(10, np.float32)}
    hub = ObserverHub([CoAst()])
    hub.publish(1, RoundCapture(model, {}, model, rejections={"oslo": "100% broken"}))
    assert caplog.messages
    assert all(message.startswith("fedcoast: ") for message in caplog.messages)
    assert "100% broken" in caplog.text
