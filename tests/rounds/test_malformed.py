"""Whatever is wrong with a round ends in one of our own errors or in quarantine, and never in another score."""

import copy
import logging
import pickle
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from fedcoast import BadFile, BadRound, BadUpload, CoAst, FedcoastError, Recorder, Round, replay
from federations import CLIENTS, federation, round_bits, show, with_upload, without
from malformed import BIAS, ERRORS, UPLOADS, WEIGHT, Fragile, entry, lazily, put

LAYERS = {WEIGHT: (4, 5), BIAS: (5,), "scale": ()}
ROUNDS = federation(seed=1, rounds=3, layers=LAYERS)
PLACE = 1  # the round that is spoilt
GOOD = ROUNDS[PLACE]
BAD = "bob"


def coast(**settings):
    return CoAst(keep=0.3, horizon=1, **settings)


def spoilt_by(fl_round):
    return [*ROUNDS[:PLACE], fl_round, *ROUNDS[PLACE + 1 :]]


@cache
def unspoilt():
    return show(coast(bad_uploads="raise"), ROUNDS).to_json()


@cache
def while_away(reference):
    return show(coast(reference=reference), spoilt_by(without(GOOD, BAD)))


def contents(folder):
    """Every file and folder in a folder, with what is in the files."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def refused_and_forgotten(make, error):
    """An assessor that refuses a round is as it was before, and takes the mended round as if it were the first try."""
    assessor = coast(bad_uploads="raise")
    show(assessor, ROUNDS[:PLACE])
    before = assessor.assessment()
    with pytest.raises(FedcoastError) as caught:
        assessor.observe(make())
    assert isinstance(caught.value, error)
    assert assessor.assessment() == before
    assert assessor.last_round == ROUNDS[PLACE - 1].number
    assert show(assessor, ROUNDS[PLACE:]).to_json() == unspoilt()
    return str(caught.value)


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    """A recorder that stands after the first rounds, and that every test of this module shows something bad."""
    with Recorder(tmp_path_factory.mktemp("recorder") / "run", bad_uploads="raise") as recorder:
        for fl_round in ROUNDS[:PLACE]:
            recorder.observe(fl_round)
        yield recorder


def refused_by_the_recorder(recorder, make, error):
    before = contents(recorder.folder)
    with pytest.raises(FedcoastError) as caught:
        recorder.observe(make())
    assert isinstance(caught.value, error)
    assert contents(recorder.folder) == before


# One client's upload


def spoilt_uploads():
    for name, spoil in UPLOADS.items():
        yield name, lambda spoil=spoil: with_upload(GOOD, BAD, spoil(dict(GOOD.local[BAD])))
    for error in ERRORS:
        name = f"a loader that raises {type(error).__name__}"
        yield name, lambda error=error: replace(GOOD, local=lazily(GOOD, BAD, error))


UPLOAD_CASES = dict(spoilt_uploads())


@pytest.mark.parametrize("case", UPLOAD_CASES)
def test_a_bad_upload_raises_our_error_and_the_mended_round_counts_as_if_nothing_had_happened(case):
    message = refused_and_forgotten(UPLOAD_CASES[case], BadUpload)
    assert message.startswith("client 'bob': round 2, ")
    assert len(message) > len("client 'bob': round 2, ")


@pytest.mark.parametrize("case", UPLOAD_CASES)
def test_a_bad_upload_is_quarantined_and_the_others_score_as_if_its_client_had_been_away(case):
    for reference in ("movement", "votes"):
        assessment, away = show(coast(reference=reference), spoilt_by(UPLOAD_CASES[case]())), while_away(reference)
        assert assessment.scores == away.scores
        assert assessment.credits == away.credits
        assert assessment.rounds_scored == away.rounds_scored
        assert list(assessment.quarantined) == [GOOD.number]
        assert assessment.quarantined[GOOD.number][BAD].startswith("round 2, ")
        assert assessment.quarantine_count(BAD) == 1


@pytest.mark.parametrize("case", UPLOAD_CASES)
def test_a_recorder_refuses_a_bad_upload_and_leaves_no_trace_of_it(case, recorder):
    refused_by_the_recorder(recorder, UPLOAD_CASES[case], BadUpload)


@pytest.mark.parametrize("case", UPLOAD_CASES)
def test_a_recorder_leaves_a_bad_upload_out_and_the_replay_says_why(case, tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        recorder.observe(UPLOAD_CASES[case]())
    live = show(coast(), [UPLOAD_CASES[case]()])
    (replayed,) = replay(tmp_path / "run")
    assert round_bits(replayed)[1:4] == round_bits(without(GOOD, BAD))[1:4]
    assert replayed.quarantined == live.quarantined[GOOD.number]
    assert show(coast(), [replayed]).to_json() == live.to_json()


# A round as a whole


class NoMapping(Mapping):
    """A mapping that cannot even be walked through."""

    def __getitem__(self, name):
        raise KeyError(name)

    def __iter__(self):
        raise OSError("the share is gone")

    def __len__(self):
        return 1


def changed(**fields):
    return lambda: replace(GOOD, **{name: value(GOOD) if callable(value) else value for name, value in fields.items()})


def global_models():
    for name, spoil in UPLOADS.items():
        yield f"end: {name}", changed(end=lambda good, spoil=spoil: spoil(dict(good.end)))
    for name, spoil in {
        "a layer missing": lambda model: {WEIGHT: model[WEIGHT]},
        "a layer more": lambda model: {**model, "extra": np.zeros(3)},
        "no layers": lambda model: {},
        "only integers": lambda model: {WEIGHT: np.zeros((4, 5), int)},
        "only buffers": lambda model: {"bn.running_mean": np.zeros(3)},
        "NaN": put(WEIGHT, entry(np.nan)),
        "infinity": put(BIAS, entry(np.inf)),
        "another shape": put(WEIGHT, lambda a: a.T),
        "another type": put(WEIGHT, lambda a: a.astype(np.int64)),
        "no entries": put(WEIGHT, np.zeros((0, 5), np.float32)),
        "a list": put(WEIGHT, lambda a: a.tolist()),
        "an object": put(WEIGHT, object()),
        "longdouble": put(WEIGHT, lambda a: a.astype(np.longdouble)),
        "not a mapping": lambda model: list(model.values()),
        "None": lambda model: None,
        "a layer named by a number": lambda model: {**model, 5: np.zeros(3)},
        "sparse": put(WEIGHT, lambda a: torch.from_numpy(np.array(a)).to_sparse()),
        "cannot be walked through": lambda model: NoMapping(),
        **{f"raises {type(error).__name__}": lambda model, error=error: Fragile(model, error) for error in ERRORS},
    }.items():
        yield f"start: {name}", changed(start=lambda good, spoil=spoil: spoil(dict(good.start)))
    yield "end: cannot be walked through", changed(end=NoMapping())


def facts():
    for value in [None, "3", 3.0, True, False, -1, [3], np.float64(3), np.bool_(True), float("nan"), b"3", object()]:
        yield f"number {value!r:.20}", changed(number=value)
    for value in [{}, None, [], "bob", 3, list(GOOD.local.items()), {"ann"}]:
        yield f"local {str(value)[:20]!r}", changed(local=value)
    for value in [None, 1.5, (1, 2), True, b"bob", float("nan"), object, np.float64(3), frozenset()]:
        yield f"client {value!r:.20}", changed(local={value: GOOD.start})
        yield f"client {value!r:.20} beside others", changed(local={**GOOD.local, value: GOOD.start})
        yield f"quarantined client {value!r:.20}", changed(quarantined={value: "bad"})
    equal = dict.fromkeys(CLIENTS, 1.0)
    for value in [-1, -1e-300, float("nan"), float("inf"), -float("inf"), None, "1", 1j, np.complex128(1), True, [1],
                  10**400, np.array([1.0]), torch.tensor(1.0), np.nan, b"1", np.longdouble("1e4000")]:  # fmt: skip
        yield f"weight {value!r:.20}", changed(weights={**equal, BAD: value})
    for name, weights in {
        "missing": {"ann": 1.0, "cid": 1.0},
        "none at all": {},
        "of a stranger": {**equal, "dora": 1.0},
        "of a client without a name": {**equal, None: 1.0},
        "a list": [1.0, 1.0, 1.0],
        "a number": 1.0,
        "a word": "uniform",
        "an array": np.ones(3),
    }.items():
        yield f"weights: {name}", changed(weights=weights)
    for value in [None, "*running_mean", 3, [None], [b"x"], [3], object()]:
        yield f"buffers {value!r:.20}", changed(buffers=value)
    yield "buffers that are everything", changed(buffers=["*"])
    for value in [None, ["bob"], "bob", {"bob": None}, {"bob": 3}, {"bob": b"x"}]:
        yield f"quarantined {value!r:.20}", changed(quarantined=value)
    for value in [None, [0.5], "0.5", {"accuracy": "0.5"}, {"accuracy": None}, {3: 0.5}, {"accuracy": 1j},
                  {"accuracy": 10**400}, {"accuracy": [0.5]}]:  # fmt: skip
        yield f"metrics {str(value)[:30]!r}", changed(metrics=value)
    for value in [0, -0.1, 1.1, "0.1", True, float("nan"), [0.1], 10]:
        yield f"ballot_keep {value!r}", changed(ballot_keep=value)


ROUND_CASES = {**dict(global_models()), **dict(facts())}


@pytest.mark.parametrize("case", ROUND_CASES)
def test_a_bad_round_raises_our_error_and_leaves_no_trace(case, recorder):
    message = refused_and_forgotten(ROUND_CASES[case], BadRound)
    assert message.startswith(("round 2", "a round number is", "a client is named by"))
    refused_by_the_recorder(recorder, ROUND_CASES[case], BadRound)


@pytest.mark.parametrize("number", [0, 1])
def test_a_number_that_does_not_increase_is_refused(number, recorder):
    message = refused_and_forgotten(changed(number=number), BadRound)
    assert message == f"round numbers must increase; got {number} after 1"
    refused_by_the_recorder(recorder, changed(number=number), BadRound)


def other_layers(change):
    """A round that agrees with itself but not with the rounds before it."""
    return replace(
        GOOD,
        start=change(dict(GOOD.start)),
        end=change(dict(GOOD.end)),
        local={client: change(dict(model)) for client, model in GOOD.local.items()},
    )


CHANGES = {
    "a layer more": lambda model: {**model, "extra": np.zeros(3, np.float32)},
    "a layer less": lambda model: {name: array for name, array in model.items() if name != WEIGHT},
    "another shape": put(WEIGHT, lambda a: a.T),
    "another type": put(WEIGHT, lambda a: a.astype(np.int64)),
    "an integer": put(WEIGHT, lambda a: a.astype(np.int64)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_changes_its_layers_between_rounds_is_refused(change, recorder):
    name = "extra" if change == "a layer more" else WEIGHT
    message = refused_and_forgotten(lambda: other_layers(CHANGES[change]), BadRound)
    assert f"the model changed its layers: layer '{name}' was" in message
    refused_by_the_recorder(recorder, lambda: other_layers(CHANGES[change]), BadRound)


def test_after_a_model_grew_the_remedy_of_the_refusal_keeps_the_earlier_credits():
    assessor = coast()
    show(assessor, ROUNDS[:PLACE])
    assessor.observe(GOOD)
    before = assessor.assessment().credits
    assert before
    grown = replace(other_layers(CHANGES["a layer more"]), number=GOOD.number + 1)
    with pytest.raises(BadRound, match=r"keep the credits and go on with new_segment\(\)"):
        assessor.observe(grown)
    assessor.new_segment()
    assessor.observe(grown)
    assessor.observe(replace(grown, number=GOOD.number + 2))
    credits = assessor.assessment().credits
    assert {number: credits[number] for number in before} == before
    assert grown.number in credits


def test_a_layer_that_becomes_a_buffer_is_refused():
    assert "and is now float32 (5,) (buffer)" in refused_and_forgotten(changed(buffers=[BIAS]), BadRound)


@pytest.mark.parametrize("name", ["\ud800", "__metadata__"])
def test_a_layer_name_that_no_file_can_hold_is_assessed_but_not_recorded(name, tmp_path):
    odd = Round(1, {name: np.zeros(4)}, {"a": {name: np.ones(4)}}, {name: np.ones(4)})
    assessor = CoAst()
    assessor.observe(odd)
    assert assessor.assessment().pending == (1,)
    with Recorder(tmp_path / "run") as recorder:
        with pytest.raises(BadFile):
            recorder.observe(odd)
        assert list((tmp_path / "run" / "rounds").iterdir()) == []


def test_when_every_upload_is_bad_the_round_still_counts_for_the_model():
    nothing = dict.fromkeys(CLIENTS)
    rounds = spoilt_by(replace(GOOD, local=nothing))
    assessment = show(coast(reference="movement"), rounds)
    whole = show(coast(reference="movement"), ROUNDS)
    assert assessment.credits[GOOD.number] == {}
    assert assessment.quarantined[GOOD.number].keys() == set(CLIENTS)
    others = [number for number in whole.credits if number != GOOD.number]
    assert [assessment.credits[number] for number in others] == [whole.credits[number] for number in others]


def test_when_every_upload_is_bad_nobody_gains_or_loses_by_the_round():
    assessment = show(coast(), spoilt_by(replace(GOOD, local=dict.fromkeys(CLIENTS))))
    assert assessment.quarantined[GOOD.number].keys() == set(CLIENTS)
    assert assessment.credits[GOOD.number] == {}
    assert assessment.credits[GOOD.number - 1] == dict.fromkeys(CLIENTS, 0)
    assert assessment.scores == dict.fromkeys(CLIENTS, 0)


def test_the_log_names_the_client_and_the_reason(caplog):
    caplog.set_level(logging.WARNING, logger="fedcoast")
    coast().observe(with_upload(GOOD, "evil\nname", None))
    (record,) = caplog.records
    assert "quarantined" in record.getMessage()
    assert r"'evil\nname'" in record.getMessage()
    assert "a model is a mapping" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_a_bad_upload_keeps_its_client_and_reason_between_processes():
    error = BadUpload(7, "it was torn")
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(same), same.client, same.reason, str(same)) == (
            BadUpload,
            7,
            "it was torn",
            "client 7: it was torn",
        )


def test_after_all_that_was_refused_the_recorder_goes_on_as_if_nothing_had_happened(recorder):
    for fl_round in ROUNDS[PLACE:]:
        recorder.observe(fl_round)
    assert [round_bits(fl_round) for fl_round in replay(recorder.folder)] == [
        round_bits(fl_round) for fl_round in ROUNDS
    ]


# Entries that nobody trains


def normalised(fl_round, mean=0.0):
    """The round with a buffer in all of its models."""

    def with_buffer(model, value=0.0):
        return {**model, "bn.running_mean": np.float32([value, 1])}

    local = {client: with_buffer(model) for client, model in fl_round.local.items()}
    return replace(fl_round, start=with_buffer(fl_round.start, mean), local=local, end=with_buffer(fl_round.end))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_buffer_that_a_client_broke_costs_that_client_its_round(value, dtype):
    good = normalised(GOOD)
    of_kind = {"bn.running_mean": np.array([0, 1], dtype)}
    local = {client: {**model, **of_kind} for client, model in good.local.items()}
    local[BAD] = {**local[BAD], "bn.running_mean": np.array([0, value], dtype)}
    assessment = show(coast(), [replace(good, start=good.start | of_kind, end=good.end | of_kind, local=local)])
    assert list(assessment.quarantined[GOOD.number]) == [BAD]
    assert "layer 'bn.running_mean' must be finite; got" in assessment.quarantined[GOOD.number][BAD]
    assert "at flat index 1 (1 of 2 entries)" in assessment.quarantined[GOOD.number][BAD]


def test_a_buffer_that_came_broken_or_is_infinite_on_purpose_is_nobodys_fault():
    given = normalised(GOOD, mean=-np.inf)
    back = {client: {**model, "bn.running_mean": np.float32([np.nan, 1])} for client, model in given.local.items()}
    assert show(coast(), [replace(given, local=back)]).quarantined == {}
    back[BAD] = {**back[BAD], "bn.running_mean": np.float32([np.nan, np.nan])}
    assert list(show(coast(), [replace(given, local=back)]).quarantined[GOOD.number]) == [BAD]
