"""What holds for CoAst on every federation, whatever its settings."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedcoast import CoAst, Recorder, replay
from federations import bits, federation, show, with_upload, without
from strategies import TARGETS, federations, options, seeds, steady


def same(one, other):
    assert one == other
    assert one.to_json() == other.to_json()
    assert one.to_csv() == other.to_csv()


@steady
@given(federations(clients=st.integers(2, 4)), options(), st.randoms(use_true_random=False))
def test_the_order_of_clients_does_not_matter(rounds, settings, random):
    shuffled = [
        replace(
            fl_round,
            local={client: fl_round.local[client] for client in random.sample(fl_round.clients, len(fl_round.clients))},
        )
        for fl_round in rounds
    ]
    same(show(CoAst(**settings), rounds), show(CoAst(**settings), shuffled))


@steady
@given(federations(), options(), st.randoms(use_true_random=False))
def test_the_order_of_layers_does_not_matter_after_the_first_round(rounds, settings, random):
    def mixed(model):
        return {name: model[name] for name in random.sample(list(model), len(model))}

    others = [
        replace(
            fl_round,
            start=mixed(fl_round.start),
            end=mixed(fl_round.end),
            local={client: mixed(model) for client, model in fl_round.local.items()},
        )
        for fl_round in rounds[1:]
    ]
    same(show(CoAst(**settings), rounds), show(CoAst(**settings), [rounds[0], *others]))


@steady
@given(federations(), options())
def test_equal_clients_get_equal_credit(rounds, settings):
    twins = [with_upload(fl_round, "twin", fl_round.local[fl_round.clients[0]]) for fl_round in rounds]
    assessment = show(CoAst(**settings), twins)
    for fl_round in twins:
        credit = assessment.credits.get(fl_round.number, {})
        assert credit.get("twin") == credit.get(fl_round.clients[0])


@steady
@given(federations(), options(baseline="idle"))
@pytest.mark.parametrize("target", TARGETS)
def test_a_client_that_returns_the_start_model_scores_exactly_zero(target, rounds, settings):
    idle = [with_upload(fl_round, "idle", fl_round.start) for fl_round in rounds]
    assessment = show(CoAst(**settings | {"signal": target}), idle)
    assert assessment.scores["idle"] == 0
    assert all(credit["idle"] == 0 for credit in assessment.credits.values())


@steady
@given(federations(clients=st.integers(2, 4), rounds=st.integers(3, 6), partial=False), options())
def test_the_baseline_does_not_change_the_ranking_when_everyone_answers(rounds, settings):
    idle, none = (show(CoAst(**settings | {"baseline": baseline}), rounds) for baseline in ("idle", "none"))
    assert idle.ranks == none.ranks
    assert idle.ranking == none.ranking


@steady
@given(federations(clients=st.integers(2, 4)), options(reference="movement"))
def test_whether_one_client_answers_does_not_touch_the_others_while_the_model_moves_alike(rounds, settings):
    gone = rounds[0].clients[0]
    assume(all(len(fl_round.clients) > 1 or gone not in fl_round.clients for fl_round in rounds))
    assessment = show(CoAst(**settings), rounds)
    rest = show(CoAst(**settings), [without(fl_round, gone) for fl_round in rounds])
    assert rest.scores == {client: score for client, score in assessment.scores.items() if client != gone}
    assert rest.credits == {
        number: {client: credit for client, credit in of.items() if client != gone}
        for number, of in assessment.credits.items()
    }


@steady
@given(federations(), options(score_rounds=slice(None)))
def test_only_those_who_answered_get_credit_and_scores_are_sums_of_credits(rounds, settings):
    assessment = show(CoAst(**settings), rounds)
    answered = {fl_round.number: set(fl_round.clients) for fl_round in rounds}
    for number, credit in assessment.credits.items():
        assert credit.keys() == answered[number]
    assert assessment.scores.keys() == set().union(*answered.values())
    for client, score in assessment.scores.items():
        credits = [credit[client] for credit in assessment.credits.values() if client in credit]
        assert (score, assessment.rounds_scored[client]) == (sum(credits), len(credits))
        assert all(type(credit) is (float if settings["past_weight"] else int) for credit in credits)


@steady
@given(federations(clients=st.integers(1, 3)), options(layers="all"))
def test_credit_adds_up_over_layers(rounds, settings):
    whole = show(CoAst(**settings), rounds)
    parts = [show(CoAst(**settings | {"layers": [name]}), rounds) for name in rounds[0].start]
    for client, score in whole.scores.items():
        assert score == sum(part.scores[client] for part in parts)


def on_a_grid(model):
    """Every number a multiple of 2^-16 in double precision: differences and powers of two are exact."""
    return {name: np.round(array.astype(np.float64) * 65536) / 65536 for name, array in model.items()}


@steady
@given(federations(), options(signal="ballot", reference="movement"), st.integers(-8, 8))
def test_a_longer_update_in_the_same_direction_earns_the_same(rounds, settings, power):
    client = rounds[0].clients[0]
    plain, scaled = [], []
    for fl_round in rounds:
        start, local = on_a_grid(fl_round.start), {who: on_a_grid(model) for who, model in fl_round.local.items()}
        plain.append(replace(fl_round, start=start, local=local, end=on_a_grid(fl_round.end)))
        if client in local:
            stretched = {name: start[name] + 2.0**power * (local[client][name] - start[name]) for name in start}
            local = {**local, client: stretched}
        scaled.append(replace(plain[-1], local=local))
    assert show(CoAst(**settings), scaled).credits == show(CoAst(**settings), plain).credits


@steady
@given(federations(), options(), st.booleans(), st.integers(0, 6))
def test_live_replayed_and_resumed_assessments_are_equal_to_the_last_byte(rounds, settings, broken, stop):
    if broken:
        client = rounds[-1].clients[0]
        bad = {name: np.full_like(array, np.nan) for name, array in rounds[-1].start.items()}
        rounds = [*rounds[:-1], with_upload(rounds[-1], client, bad)]
    live = show(CoAst(**settings), rounds)
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(Path(folder, "run")) as recorder:
            for fl_round in rounds:
                recorder.observe(fl_round)
        same(show(CoAst(**settings), replay(Path(folder, "run"))), live)

        state = Path(folder, "state")
        first = CoAst(**settings)
        show(first, rounds[:stop])
        first.save(state)
        second = CoAst(**settings)
        second.restore(state)
        same(second.assessment(), first.assessment())
        same(show(second, replay(Path(folder, "run"), after=second.last_round)), live)


@steady
@given(federations(), options(), st.sampled_from(["ballot", "pruned"]))
def test_a_recording_of_ballots_gives_the_assessment_that_whole_uploads_give(rounds, settings, target):
    settings |= {"signal": target}
    assume(settings["tiny_layers"] != "raw" and settings["step"] != "avg")
    live = show(CoAst(**settings), rounds)
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(Path(folder, "run"), ballot_keep=settings["keep"]) as recorder:
            for fl_round in rounds:
                recorder.observe(fl_round)
        same(show(CoAst(**settings), replay(Path(folder, "run"))), live)


@steady
@given(federations(), options())
def test_nothing_that_is_shown_is_changed(rounds, settings):
    def everything():
        return [
            (
                bits(fl_round.start),
                bits(fl_round.end),
                {client: bits(model) for client, model in fl_round.local.items()},
            )
            for fl_round in rounds
        ]

    before = everything()
    with tempfile.TemporaryDirectory() as folder, Recorder(Path(folder, "run")) as recorder:
        assessor = CoAst(**settings)
        for fl_round in rounds:
            recorder.observe(fl_round)
            assessor.observe(fl_round)
        assessor.assessment()
        assessor.save(Path(folder, "state"))
    assert everything() == before


@steady
@given(seeds, options())
def test_memory_does_not_grow_with_the_rounds_once_the_horizon_is_full(seed, settings):
    assessor = CoAst(**settings)
    sizes = []
    for fl_round in federation(seed=seed, rounds=12):
        assessor.observe(fl_round)
        sizes.append(sum(array.nbytes for array in assessor._dump_state(assessor._state)[1].values()))
    full = settings["horizon"] - 1
    assert sizes[0] > 0
    if settings["past_weight"] == 0:
        assert sizes[full] == settings["horizon"] * sizes[0]
        assert set(sizes[full:]) == {sizes[full]}
    assert set(sizes[2 * full + 1 :]) == {sizes[-1]}  # every round that is held then knows its past


@steady
@given(federations(), options())
def test_asking_for_the_answer_changes_nothing(rounds, settings):
    questioned, silent = CoAst(**settings), CoAst(**settings)
    for fl_round in rounds:
        questioned.observe(fl_round)
        answer = questioned.assessment()
        for of_round in answer.credits.values():
            of_round.clear()
        answer.scores.clear()
        silent.observe(fl_round)
    same(questioned.assessment(), silent.assessment())
