"""Ten thousand rounds in which clients come and go: nothing is lost, and a restart changes nothing."""

import numpy as np
import pytest

from fedcoast import CoAst, Round

ROUNDS, SIZE = 10_000, 64
REGULARS, STAY = 40, 50


def trained(start, client, rng):
    """Regular clients go the same way, each with its own noise; odd ones and guests are noisier."""
    noise = 2.0 if client % 2 else 0.5
    step = 0.01 * (1 + noise * rng.standard_normal(SIZE))
    return {"w": (start["w"] + step).astype(np.float32)}


def rounds():
    """Four of forty regular clients in each round, and a guest that comes for fifty rounds and never again."""
    rng = np.random.default_rng(0)
    start = {"w": rng.standard_normal(SIZE).astype(np.float32)}
    for number in range(1, ROUNDS + 1):
        clients = [int(client) for client in rng.choice(REGULARS, 4, replace=False)]
        local = {client: trained(start, client, rng) for client in (*clients, guest(number))}
        end = {"w": np.mean([model["w"] for model in local.values()], axis=0, dtype=np.float32)}
        yield Round(number, start=start, local=local, end=end)
        start = end


def guest(number):
    return 1001 + 2 * (number // STAY)


@pytest.mark.slow
def test_ten_thousand_rounds_of_clients_that_come_and_go(tmp_path):
    coast, resumed = CoAst(keep=0.5), CoAst(keep=0.5)
    for fl_round in rounds():
        coast.observe(fl_round)
        if fl_round.number > ROUNDS // 2:
            resumed.observe(fl_round)
        elif fl_round.number == ROUNDS // 2:
            coast.save(tmp_path / "half")
            resumed.restore(tmp_path / "half")
    coast.save(tmp_path / "all")
    answer = coast.assessment()
    assert resumed.assessment() == answer
    guests = {guest(number) for number in range(1, ROUNDS + 1)}
    assert set(answer.clients) == {*range(REGULARS), *guests}
    assert sorted(answer.credits) == list(range(1, ROUNDS))
    assert sum(answer.rounds_scored.values()) == 5 * (ROUNDS - 1)
    assert answer.needs_adjustment
    level = answer.adjusted_mean
    even, odd = ([level[client] for client in range(first, REGULARS, 2)] for first in (0, 1))
    assert min(even) > max(odd), "whoever trains with less noise contributes more in each round"
    sizes = [(tmp_path / name).stat().st_size for name in ("half", "all")]
    assert sizes[1] < 2.1 * sizes[0], "a state grows with the credits alone"
