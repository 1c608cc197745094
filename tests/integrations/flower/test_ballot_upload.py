"""Pruned aggregation, and clients that upload votes: the same model and scores as pruning on the server, in 2 bits."""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.serverapp.strategy import FedAvg

from fedcoast import BadSetting, CoAst, Recorder, replay
from fedcoast.integrations.flower import BallotUpload, Observed, TernaryFedAvg, watch
from fedcoast.integrations.flower.ballot_upload import RESIDUAL
from fedcoast.integrations.flower.ternary_fedavg import moved
from fedcoast.kernels.aggregation import pruned_mean
from fedcoast.kernels.ballots import ballot, pack
from integrations.flower.handmade import answer, ask, drifting, federation, model_in, record, small_model

KEEP = 0.3


def context(node=1):
    return Context(1, node, {}, RecordDict(), {})


def voting(grid, mod=None):
    """The same federation, whose clients upload votes."""
    for node_id, node in grid.nodes.items():
        node.mods, node.context = (mod or BallotUpload(),), context(node_id)
    return grid


def normalised():
    return small_model() | {
        "bn.running_mean": np.ones(3, np.float32),
        "bn.num_batches_tracked": np.array(5, np.int64),
    }


def train(grid, model=None, rounds=4, keep=KEEP, **options):
    coast = CoAst(keep=keep, horizon=1)
    strategy = Observed(TernaryFedAvg(keep=keep, **options), coast)
    result = strategy.start(grid, record(model or small_model()), num_rounds=rounds)
    assert strategy.unobserved == {}
    return result, coast.assessment()


def message_bytes(message):
    """What goes over the wire: a message and all objects in it, as Flower deflates them."""

    def size(thing, seen):
        children = thing.children or {}
        new = {name: child for name, child in children.items() if name not in seen}
        seen.update(new)
        return len(thing.deflate()) + sum(size(child, seen) for child in new.values())

    return size(message, {})


@pytest.mark.parametrize("step", [0.02, "avg"])
@pytest.mark.parametrize("model", [small_model, normalised])
def test_votes_give_the_same_model_and_scores_as_pruning_on_the_server(step, model):
    whole, scores = train(federation(), model(), step=step)
    voted, voted_scores = train(voting(federation()), model(), step=step)
    assert voted.arrays == whole.arrays  # every byte
    assert voted_scores.scores == scores.scores
    assert voted_scores.credits == scores.credits
    assert any(scores.scores.values())


@pytest.mark.parametrize("step", [0.02, "avg"])
def test_the_model_is_the_formula(step):
    grid, start = federation(), small_model()
    result, _ = train(grid, rounds=1, step=step)
    for name, before in start.items():
        updates = [node.train(start, 1)[name] - before for node in grid.nodes.values()]
        np.testing.assert_array_equal(result.arrays[name].numpy(), pruned_mean(before, updates, KEEP, step))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moved_is_pruned_mean_of_ballots(dtype):
    rng = np.random.default_rng(1)
    start = rng.standard_normal((4, 5)).astype(dtype)
    start[0, 0] = -0.0
    updates = [rng.standard_normal((4, 5)).astype(dtype) for _ in range(3)]
    ballots = [ballot(update, 0.2) for update in updates]
    np.testing.assert_array_equal(moved(start, ballots, 0.02), pruned_mean(start, updates, 0.2, 0.02))
    sizes = [float(np.abs(u.ravel()[b != 0]).mean(dtype=np.float64)) for u, b in zip(updates, ballots, strict=True)]
    np.testing.assert_array_equal(moved(start, ballots, sizes), pruned_mean(start, updates, 0.2, "avg"))


def test_statistics_take_the_mean_and_counters_the_largest():
    grid = federation()
    model = normalised()
    result, _ = train(grid, model, rounds=1)
    uploads = [node.train(model, 1) for node in grid.nodes.values()]
    mean = sum(w * u["bn.running_mean"].astype(np.float64) for w, u in zip([30, 20, 10, 10], uploads, strict=True)) / 70
    np.testing.assert_allclose(result.arrays["bn.running_mean"].numpy(), mean, rtol=1e-6)
    assert result.arrays["bn.num_batches_tracked"].numpy() == 6
    assert result.arrays["bn.num_batches_tracked"].dtype == "int64"


def test_votes_and_whole_models_may_come_in_one_round():
    whole, scores = train(federation())
    grid = federation()
    for node_id, node in list(grid.nodes.items())[:2]:
        node.mods, node.context = (BallotUpload(),), context(node_id)
    mixed, mixed_scores = train(grid)
    assert mixed.arrays == whole.arrays
    assert mixed_scores.scores == scores.scores


def test_the_bytes_really_sent_are_reported_and_about_a_sixteenth():
    model = {"fc.weight": np.zeros((1000, 1000), np.float32), "fc.bias": np.zeros(1000, np.float32)}
    grid = voting(federation())
    sent = []
    for node in grid.nodes.values():
        train_, mod = node.train, node.mods[0]
        node.mods = (lambda m, c, n, mod=mod: sent.append(mod(m, c, n)) or sent[-1],)
        node.train = train_
    result, _ = train(grid, model, rounds=1, keep=0.1)
    metrics = result.train_metrics_clientapp[1]
    on_the_wire = sum(message_bytes(reply) for reply in sent)
    assert len(sent) == 4
    assert metrics["fedcoast/upload-bytes"] == pytest.approx(on_the_wire, rel=0.01)
    assert 15.5 < metrics["fedcoast/upload-bytes-whole"] / metrics["fedcoast/upload-bytes"] < 16.1
    whole, _ = train(federation(), model, rounds=1, keep=0.1)
    metrics = whole.train_metrics_clientapp[1]
    assert metrics["fedcoast/upload-bytes"] == pytest.approx(metrics["fedcoast/upload-bytes-whole"], rel=0.001)


def test_a_server_that_did_not_ask_for_votes_gets_models():
    grid, plain = voting(federation()), federation()
    one = FedAvg().start(grid, record(small_model()), num_rounds=2)
    other = FedAvg().start(plain, record(small_model()), num_rounds=2)
    assert one.arrays == other.arrays


def test_error_feedback_says_later_what_votes_left_unsaid():
    """The residual is the update less what the votes say: it comes back until it is said."""
    start = {"w": np.zeros(4, np.float32)}
    update = np.float32([0.5, 0.4, 0.0, 0.0])
    ctx, mod = context(), BallotUpload(error_feedback=True)
    config = {"fedcoast-keep": 0.25, "fedcoast-step": 0.5, "fedcoast-buffers": []}
    cast = []
    for _ in range(3):
        reply = mod(ask(5, record(start), config=config), ctx, lambda m, c: answer(m, {"w": start["w"] + update}))
        cast.append(reply.content["arrays"]["w"].numpy())
    assert [planes[0, 0] >> 4 for planes in cast] == [0b1000, 0b0100, 0b1000]
    np.testing.assert_allclose(ctx.state[RESIDUAL]["w"].numpy(), [0.5, 0.7, 0, 0], atol=1e-6)


def test_without_error_feedback_a_client_keeps_no_state():
    ctx = context()
    config = {"fedcoast-keep": 0.25, "fedcoast-step": 0.5, "fedcoast-buffers": []}
    BallotUpload()(
        ask(5, record(small_model()), config=config), ctx, lambda m, c: answer(m, drifting(1)(small_model(), 1))
    )
    assert not len(ctx.state)


def test_with_error_feedback_training_goes_elsewhere_and_is_still_assessed():
    plain, _ = train(voting(federation()), step=0.05)
    fed, scores = train(voting(federation(), BallotUpload(error_feedback=True)), step=0.05)
    assert plain.arrays != fed.arrays
    assert any(scores.scores.values())


def test_a_model_that_is_not_finite_is_sent_whole_and_does_not_vote(caplog):
    grid = voting(federation())
    node = next(iter(grid.nodes.values()))
    node.train = lambda model, n: {k: a * np.float32(np.nan) for k, a in model.items()}
    result, scores = train(grid, rounds=2)
    assert np.isfinite(result.arrays["fc.bias"].numpy()).all()
    assert "must be finite" in scores.quarantined[1]["partition-0"]
    assert "does not vote" in caplog.text


def stuffed(reply):
    planes = np.zeros_like(reply.content["arrays"]["fc.bias"].numpy())
    planes[0] = 255
    return replaced(reply, "fc.bias", planes)


def replaced(reply, layer, planes):
    arrays = {**reply.content["arrays"], layer: Array(planes)}
    reply.content["arrays"] = ArrayRecord(arrays)
    return reply


def other_share(reply):
    reply.content["fedcoast.ballots"]["keep"] = 0.9
    return reply


def endless(reply):
    reply.content["fedcoast.ballots"]["steps"] = [float("inf"), 1.0]
    return reply


def weighty(reply):
    reply.content["metrics"]["num-examples"] = float("nan")
    return reply


@pytest.mark.parametrize(
    ("cheat", "text"),
    [
        (endless, "the step of layer 'conv.weight' must be a number"),
        (weighty, "the weight 'num-examples' must be a number"),
        (stuffed, "votes; 2 of 7 may be cast"),
        (lambda reply: replaced(reply, "fc.bias", np.zeros(3, np.uint8)), "holds no packed votes of 7 entries"),
        (other_share, "votes of keep=0.3"),
    ],
)
def test_a_client_that_stuffs_the_box_does_not_vote(cheat, text, caplog):
    grid = voting(federation())
    node = next(iter(grid.nodes.values()))
    honest = node.mods[0]
    node.mods = (lambda m, c, n: cheat(honest(m, c, n)),)
    strategy = TernaryFedAvg(keep=KEEP)
    result = strategy.start(grid, record(small_model()), num_rounds=1)
    assert text in caplog.text
    without = federation()
    del without.nodes[next(iter(grid.nodes))]
    expected = TernaryFedAvg(keep=KEEP).start(without, record(small_model()), num_rounds=1)
    assert result.arrays == expected.arrays


@pytest.mark.parametrize("statistics", [np.zeros(2, np.float32), np.zeros(3, np.int8)])
def test_statistics_beside_the_votes_must_fit_the_model(statistics, caplog):
    grid = voting(federation())
    node = next(iter(grid.nodes.values()))
    honest = node.mods[0]
    node.mods = (lambda m, c, n: replaced(honest(m, c, n), "bn.running_mean", statistics),)
    result, _ = train(grid, normalised(), rounds=1)
    assert result.arrays["bn.running_mean"].shape == (3,)
    assert "does not vote" in caplog.text


def without_the_first(make=federation):
    grid = make()
    del grid.nodes[next(iter(grid.nodes))]
    return grid


def change_the_first(grid, change):
    node = next(iter(grid.nodes.values()))
    honest = node.train
    node.train = lambda model, number: change(honest(model, number), number)
    return grid


@pytest.mark.parametrize("upload", [federation, lambda: voting(federation())])
def test_a_counter_of_another_kind_in_one_round_does_not_stop_the_training_of_all(upload):
    name = "bn.num_batches_tracked"
    grid = change_the_first(upload(), lambda m, n: {**m, name: m[name].astype(np.uint64)} if n == 1 else m)
    result, _ = train(grid, normalised())
    plain, _ = train(upload(), normalised())
    assert result.arrays == plain.arrays
    assert result.arrays[name].dtype == "int64"


@pytest.mark.parametrize("upload", [federation, lambda: voting(federation())])
@pytest.mark.parametrize(
    ("layer", "value", "text"),
    [
        ("bn.running_mean", np.float32([1, np.nan, 1]), "'bn.running_mean' must be finite"),
        ("bn.num_batches_tracked", np.array(2**64 - 1, np.uint64), "must hold numbers of int64; got others in uint64"),
    ],
)
def test_statistics_and_counters_that_would_spoil_the_model_are_left_out(upload, layer, value, text, caplog):
    grid = change_the_first(upload(), lambda m, n: {**m, layer: value})
    result = TernaryFedAvg(keep=KEEP).start(grid, record(normalised()), num_rounds=2)
    plain = TernaryFedAvg(keep=KEEP).start(without_the_first(upload), record(normalised()), num_rounds=2)
    assert result.arrays == plain.arrays
    assert text in caplog.text


def test_a_buffer_that_the_server_sends_infinite_may_come_back_as_it_was():
    model = {**normalised(), "mask": np.float32([0, -np.inf])}
    result = TernaryFedAvg(keep=KEEP, buffers=["bn.*", "mask"]).start(
        change_the_first(federation(), lambda m, n: {**m, "mask": model["mask"]}), record(model), num_rounds=1
    )
    assert result.arrays["mask"].numpy()[1] == -np.inf


def greedy(reply):
    reply.content["fedcoast.ballots"]["steps"] = [1e300, 1e300]
    return reply


def far_away(model, number):
    return {name: np.full_like(array, 3e38) for name, array in model.items()}


@pytest.mark.parametrize("how", ["votes", "whole"])
def test_a_step_beyond_the_numbers_of_the_model_is_no_step(how, caplog):
    model = {**small_model(), "fc.bias": np.full(7, -1e38, np.float32)}
    grid = voting(federation()) if how == "votes" else change_the_first(federation(), far_away)
    if how == "votes":
        node = next(iter(grid.nodes.values()))
        honest = node.mods[0]
        node.mods = (lambda m, c, n: greedy(honest(m, c, n)),)
    result = TernaryFedAvg(keep=KEEP, step="avg").start(grid, record(model), num_rounds=2)
    plain = TernaryFedAvg(keep=KEEP, step="avg").start(without_the_first(), record(model), num_rounds=2)
    assert result.arrays == plain.arrays
    assert "must keep the model within the numbers of float32" in caplog.text


def test_a_layer_that_holds_the_largest_number_there_is_still_votes():
    model = {**small_model(), "fc.bias": np.full(7, np.finfo(np.float32).max)}
    result, _ = train(federation(), model, rounds=1)
    assert result.arrays != record(model)


def test_a_word_does_not_take_the_place_of_a_weight():
    grid = federation()
    next(iter(grid.nodes.values())).words = {"num-examples": "a million"}
    plain, _ = train(federation(), rounds=1)
    result, _ = train(grid, rounds=1)
    assert result.arrays == plain.arrays


def test_a_model_without_anything_to_vote_on_is_sent_whole():
    start = {"counts": np.arange(3)}
    config = {"fedcoast-keep": KEEP, "fedcoast-step": 0.02, "fedcoast-buffers": []}
    reply = BallotUpload()(ask(5, record(start), config=config), context(), lambda m, c: answer(m, start))
    assert "fedcoast.ballots" not in reply.content


def test_an_assessor_of_another_share_is_told_what_to_use():
    coast = CoAst(keep=0.1)
    strategy = Observed(TernaryFedAvg(keep=KEEP), coast)
    strategy.start(voting(federation()), record(small_model()), num_rounds=1)
    assert "holds ballots of keep=0.3 only" in strategy.unobserved[1]["coast"]


def test_votes_are_recorded_and_replayed_as_votes(tmp_path):
    coast = CoAst(keep=KEEP, horizon=1)
    with Recorder(tmp_path / "run") as recorder:
        Observed(TernaryFedAvg(keep=KEEP), coast, recorder).start(
            voting(federation()), record(small_model()), num_rounds=4
        )
    again = CoAst(keep=KEEP, horizon=1)
    for fl_round in replay(tmp_path / "run"):
        assert fl_round.ballot_keep == KEEP
        again.observe(fl_round)
    assert again.assessment().scores == coast.assessment().scores


class Probe:
    def __init__(self):
        self.rounds = []

    def observe(self, fl_round, /):
        self.rounds.append(fl_round)


def saying(keep):
    """A client mod that calls a whole model votes."""

    def mod(message, context, call_next):
        reply = call_next(message, context)
        reply.content["fedcoast.ballots"] = ConfigRecord({"keep": keep, "layers": [], "steps": []})
        return reply

    return mod


@pytest.mark.parametrize("keep", [5.0, 0.5, 0.1, float("nan")])
def test_votes_that_nobody_asked_for_are_the_model_that_the_strategy_takes_them_for(keep, tmp_path):
    grid = federation()
    next(iter(grid.nodes.values())).mods = (saying(keep),)
    coast, alone = CoAst(horizon=1), CoAst(horizon=1)
    with Recorder(tmp_path / "run") as recorder:
        strategy = Observed(FedAvg(), coast, recorder)
        strategy.start(grid, record(small_model()), num_rounds=4)
    Observed(FedAvg(), alone).start(federation(), record(small_model()), num_rounds=4)
    assert strategy.unobserved == {}
    assert coast.assessment() == alone.assessment()
    for fl_round in replay(tmp_path / "run"):
        assert fl_round.ballot_keep is None
        assert len(fl_round.local) == 4


def test_packed_votes_that_nobody_asked_for_cost_their_client_alone():
    packed = {name: pack(ballot(array, KEEP)) for name, array in small_model().items()}
    grid = change_the_first(federation(), lambda m, n: packed)

    class Careful(FedAvg):
        def aggregate_train(self, server_round, replies):
            usable = [reply for reply in replies if reply.content["arrays"]["fc.bias"].dtype == "float32"]
            return super().aggregate_train(server_round, usable)

    next(iter(grid.nodes.values())).mods = (saying(KEEP),)
    coast = CoAst(horizon=1)
    strategy = Observed(Careful(), coast)
    strategy.start(grid, record(small_model()), num_rounds=2)
    assert strategy.unobserved == {}
    assert "came as uint8" in coast.assessment().quarantined[1]["partition-0"]


@pytest.mark.parametrize("upload", [federation, lambda: voting(federation())])
@pytest.mark.parametrize("how", ["wrapper", "tap"])
def test_votes_of_another_share_than_requested_cost_their_client_alone(upload, how):
    grid, coast, probe = upload(), CoAst(keep=KEEP, horizon=1), Probe()
    next(iter(grid.nodes.values())).mods = (saying(0.2),)
    if how == "wrapper":
        strategy = Observed(TernaryFedAvg(keep=KEEP), coast, probe)
        strategy.start(grid, record(small_model()), num_rounds=2)
        unobserved = strategy.unobserved
    else:
        TernaryFedAvg(keep=KEEP).start(observed_grid := watch(grid, coast, probe), record(small_model()), num_rounds=2)
        unobserved = observed_grid.unobserved
    assert unobserved == {}
    assert [fl_round.ballot_keep for fl_round in probe.rounds] == [None if upload is federation else KEEP] * 2
    assert list(coast.assessment().quarantined[1]) == ["partition-0"]
    assert "votes of keep=0.3 were requested; got keep=0.2" in coast.assessment().quarantined[1]["partition-0"]


def test_a_server_that_requests_different_shares_is_reported():
    grid, probe = voting(federation()), Probe()
    observed_grid = watch(grid, probe)
    for place, node in enumerate(grid.nodes):
        config = {"fedcoast-keep": 0.1 * (1 + place), "fedcoast-step": 0.02, "fedcoast-buffers": []}
        observed_grid.push_messages([ask(node, record(small_model()), config=config)])
    observed_grid.pull_messages([f"message-{place}" for place in range(4)])
    observed_grid.finish(record(small_model()))
    assert probe.rounds == []
    assert "the server requested votes of different shares (0.1, 0.2, " in observed_grid.unobserved[1]["everyone"]


def test_nobody_usable_keeps_the_old_model():
    grid = federation()
    for node in grid.nodes.values():
        node.train = lambda model, n: {k: a * np.float32(np.inf) for k, a in model.items()}
    with np.errstate(invalid="ignore"):
        result = TernaryFedAvg().start(grid, record(small_model()), num_rounds=1)
    assert not len(result.arrays or {})


def test_own_buffers_are_agreed_between_server_and_clients():
    model = small_model() | {"stats.moving": np.ones(4, np.float32)}
    whole, _ = train(federation(), model, buffers=["stats.*"])
    voted, _ = train(voting(federation()), model, buffers=["stats.*"])
    assert voted.arrays == whole.arrays


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"keep": 10}, r"keep must lie in \(0, 1\]"),
        ({"keep": 0}, r"keep must lie in \(0, 1\]"),
        ({"keep": True}, r"keep must lie in \(0, 1\]"),
        ({"step": 0}, "step must be a positive number"),
        ({"step": "mean"}, "step must be a positive number"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, text):
    with pytest.raises(BadSetting, match=text):
        TernaryFedAvg(**options)


def test_the_options_of_fedavg_are_its_own():
    strategy = TernaryFedAvg(keep=0.2, fraction_train=0.5, weighted_by_key="steps")
    assert (strategy.fraction_train, strategy.weighted_by_key) == (0.5, "steps")


def test_the_first_round_of_the_mod_is_the_ballot_of_the_update():
    start = small_model()
    config = {"fedcoast-keep": KEEP, "fedcoast-step": 0.02, "fedcoast-buffers": []}
    upload = drifting(1)(start, 1)
    reply = BallotUpload()(ask(5, record(start), config=config), context(), lambda m, c: answer(m, upload))
    for name, planes in model_in(reply.content["arrays"]).items():
        np.testing.assert_array_equal(planes, pack(ballot(upload[name] - start[name], KEEP)))
    assert dict(reply.content["metrics"]) == {"num-examples": 10}
    assert isinstance(reply.content["fedcoast.ballots"], ConfigRecord)
