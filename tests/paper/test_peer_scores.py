"""Scores from the agreement of ballots with the other clients' ballots."""

from pathlib import Path

import numpy as np
import pytest

from paper.bank import read_all
from paper.bank_page import correlations_of_candidates, page
from paper.peer_scores import agreement_table, peer_score, spread

BANK = Path(__file__).parents[2] / "results" / "bank"


def line_of_clients(ahead: float) -> np.ndarray:
    """Five clients on a line, near ones alike; each agrees with those behind it a little more than they with it."""
    places = np.arange(5)
    table = np.exp(-0.8 * np.abs(places[:, None] - places)) * np.exp(ahead * (places - places[:, None]) / 4)
    np.fill_diagonal(table, 0)
    return table


def test_one_shared_direction_has_no_spread_and_is_ranked_by_agreement():
    clarity = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    table = np.outer(clarity, clarity) - np.diag(clarity**2)
    assert spread(table) < 1e-6
    assert list(np.argsort(-peer_score(table, gain=100, power=2))) == [0, 1, 2, 3, 4]


def test_clients_on_a_line_are_ranked_by_who_leads():
    table = line_of_clients(ahead=0.4)
    assert np.argmax(table.sum(axis=1)) == 2  # agreement alone puts the one in the middle first
    assert list(np.argsort(-peer_score(table, gain=200, power=2))) == [0, 1, 2, 3, 4]


def test_a_clients_own_ballots_are_never_compared():
    agreement = np.random.default_rng(0).integers(0, 9, (3, 6, 9, 4, 4)).astype(np.int32)
    other = agreement.copy()
    other[..., range(4), range(4)] += 1000
    assert np.array_equal(agreement_table(agreement), agreement_table(other))


def test_a_client_that_votes_for_nothing_scores_zero():
    agreement = np.random.default_rng(0).integers(1, 9, (3, 6, 9, 4, 4)).astype(np.int32)
    agreement[..., 2, :] = agreement[..., :, 2] = 0
    assert peer_score(agreement_table(agreement), gain=100, power=2)[2] == 0


def test_rounds_in_which_clients_disagree_do_not_count():
    agreement = np.random.default_rng(0).integers(1, 9, (3, 6, 9, 4, 4)).astype(np.int32)
    changed = agreement.copy()
    changed[:, 3] = -7
    kept = agreement.copy()
    kept[:, 3] = 0
    assert np.array_equal(agreement_table(changed), agreement_table(kept))


def test_every_run_of_the_committed_bank_can_be_scored():
    runs = read_all(BANK)
    assert len(runs) >= 58
    assert all(run.experiment.seed % 2 == 0 for run in runs), "odd seeds are for judging"
    first = correlations_of_candidates(runs[0])
    assert all(-1 <= value <= 1 for value in first.values())


def test_the_page_has_a_line_for_each_row():
    text = page({"a": {("digits", "noise"): [1.0, 0.5]}, "b": {("digits", "noise"): [-1.0]}}, runs=2)
    assert "| a | 0.75 | 0.75 | 0.75 |" in text
    assert "| b | −1.00 |" in text


@pytest.mark.parametrize("clients", [2, 3])
def test_few_clients_are_scored_too(clients):
    agreement = np.full((3, 4, 9, clients, clients), 5, np.int32)
    assert np.isfinite(peer_score(agreement_table(agreement), gain=100, power=2)).all()
