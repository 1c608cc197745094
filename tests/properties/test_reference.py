"""CoAst against its formulas written out entry by entry, with nothing of fedcoast's in it."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedcoast import CoAst
from federations import show
from strategies import federations, options, steady


def sign(value):
    return int(value > 0) - int(value < 0)


def single(array):
    """The numbers of a tensor in the precision that differences are taken in."""
    return list(array.astype(np.promote_types(array.dtype, np.float32)).ravel())


def examined(start, local, settings):
    """The claim and the ballot of one tensor."""
    update = [after - before for before, after in zip(start, local, strict=True)]
    room = math.floor(len(update) * settings["keep"])
    raw = room == 0 and settings["tiny_layers"] == "raw"
    if room == 0 and settings["tiny_layers"] == "one":
        room = 1
    best = sorted(range(len(update)), key=lambda h: (-abs(update[h]), h))[:room]
    ballot = [sign(update[h]) if h in best else 0 for h in range(len(update))]
    if settings["signal"] == "ballot":
        return [sign(u) for u in update] if raw else ballot, ballot
    if settings["signal"] == "update":
        return [sign(u) for u in update], ballot
    if settings["signal"] == "parameters" or raw:
        signal = [sign(after) for after in local]
    else:
        voting = [abs(float(update[h])) for h in best if update[h] != 0]
        step = (math.fsum(voting) / len(voting) if voting else 0.0) if settings["step"] == "avg" else settings["step"]
        step = type(start[0])(step)
        signal = [sign(before + step * b) for before, b in zip(start, ballot, strict=True)]
    if settings["baseline"] == "idle":
        signal = [c - sign(before) for c, before in zip(signal, start, strict=True)]
    return signal, ballot


def moved(window, ulps):
    """The sign of the movement of one entry from the first to the last of its values."""
    distance = window[-1] - window[0]
    return 0 if abs(distance) <= ulps * np.spacing(max(map(abs, window))) else sign(distance)


def drift_of(layer, models, rounds, settings):
    """Where one tensor went in these rounds; `models` are those before, between and after them."""
    if settings["reference"] == "movement":
        return [
            moved(window, settings["ulp_tolerance"])
            for window in zip(*(single(model[layer]) for model in models), strict=True)
        ]
    ballots = [
        examined(single(fl_round.start[layer]), single(model[layer]), settings)[1]
        for fl_round in rounds
        for model in fl_round.local.values()
    ]
    return [sign(sum(votes)) for votes in zip(*ballots, strict=True)]


def counting(start, layers):
    """The tensors that count."""
    names, matrices = list(start), [name for name in start if start[name].ndim >= 2]
    if layers == "all" or len(matrices) < 3:
        return names
    second, last = names.index(matrices[1]), names.index(matrices[-1])
    return names[:second] + names[last:]


def expected(rounds, settings):
    """The credits of every round whose future is known."""
    horizon, past, credits = settings["horizon"], settings["past_weight"], {}
    models = [rounds[0].start, *(fl_round.end for fl_round in rounds)]  # models[t] is the one before rounds[t]
    for t in range(len(rounds) - horizon):
        here = rounds[t]
        credits[here.number] = dict.fromkeys(here.clients, 0)
        for layer in counting(here.start, settings["layers"]):
            ahead = drift_of(layer, models[t + 1 : t + horizon + 2], rounds[t + 1 : t + horizon + 1], settings)
            behind = [0] * len(ahead)
            if past and t >= horizon:
                behind = drift_of(layer, models[t - horizon : t + 1], rounds[t - horizon : t], settings)
            for client, model in here.local.items():
                signal, _ = examined(single(here.start[layer]), single(model[layer]), settings)
                credits[here.number][client] += sum(
                    c * (a - past * b) for c, a, b in zip(signal, ahead, behind, strict=True)
                )
    return credits


@steady
@given(federations(rounds=st.integers(2, 6)), options(incomplete_rounds="drop"))
def test_coast_is_its_formulas(rounds, settings):
    assert show(CoAst(**settings), rounds).credits == expected(rounds, settings)
