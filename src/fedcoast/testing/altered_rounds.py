"""Rounds with something changed, for the checks of the contract."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedcoast.errors import Client
from fedcoast.rounds.arrays import Array, BFloat16, read
from fedcoast.rounds.round import Round


def with_round(rounds: Sequence[Round], changed: Round) -> list[Round]:
    return [changed if fl_round.number == changed.number else fl_round for fl_round in rounds]


def without_clients(fl_round: Round, clients: Collection[Client]) -> Round:
    remaining = [client for client in fl_round.local if client not in clients]
    weights = None if fl_round.weights is None else {client: fl_round.weights[client] for client in remaining}
    return replace(fl_round, local={client: fl_round.local[client] for client in remaining}, weights=weights)


def with_nan(fl_round: Round, client: Client) -> Round:
    model = {name: own_array(value) for name, value in fl_round.local[client].items()}
    first = fl_round.schema().trainable[0].name
    read(model[first])[0].reshape(-1)[0] = np.nan
    return replace(fl_round, local={**fl_round.local, client: model})


def scaled(model: Mapping[str, object], factor: float) -> dict[str, object]:
    scaled = {}
    for name, value in model.items():
        array, kind = read(value)
        float_enough = kind in ("float32", "float64")
        scaled[name] = np.asarray(array * factor, dtype=array.dtype) if float_enough else value
    return scaled


def copied(fl_round: Round) -> Round:
    return replace(
        fl_round,
        start={name: own_array(value) for name, value in fl_round.start.items()},
        end={name: own_array(value) for name, value in fl_round.end.items()},
        local={
            client: {name: own_array(value) for name, value in model.items()}
            for client, model in fl_round.local.items()
        },
    )


def own_array(value: object) -> Array | BFloat16:
    array, kind = read(value)
    return BFloat16(array.copy()) if kind == "bfloat16" else array.copy()


def model_bytes(fl_round: Round) -> list[bytes]:
    models = (fl_round.start, fl_round.end, *fl_round.local.values())
    return [read(value)[0].tobytes() for model in models for value in model.values()]


def reversed_order(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: mapping[key] for key in reversed(list(mapping))}
