"""Uploads kept as ballots: two bits for each parameter that may vote, nothing of the rest."""

from pathlib import Path

import numpy as np

from fedcoast.errors import BadFile, BadRound
from fedcoast.formulas.selection import quick_ballot
from fedcoast.formulas.ternary import pack, signs, unpack
from fedcoast.rounds.arrays import Array, BFloat16, arithmetic, read
from fedcoast.rounds.layout import Layout, Model
from fedcoast.rounds.tensors import read_tensors

STEP = 0.02  # the paper's α; any would do, the votes are what is kept


def pruned_upload(
    layout: Layout, start: dict[str, Array], model: dict[str, Array], keep: float
) -> dict[str, tuple[Array, str]]:
    """The packed ballots of one upload, by layer."""
    packed = {}
    for entry in layout.voting:
        before = start[entry.name]
        with np.errstate(over="ignore"):
            cast = quick_ballot(arithmetic(model[entry.name]) - arithmetic(before), keep)
        if np.any(signs(_moved(before, cast) - before) != cast):
            raise BadRound(
                f"layer {entry.name!r} holds values so large that a step of {STEP} vanishes in them;"
                " record whole uploads"
            )
        packed[entry.name] = (pack(cast), "uint8")
    return packed


def read_pruned_upload(layout: Layout, start: Model, file: Path) -> Model:
    """The model whose update is the recorded ballot: start + step · ballot; what cannot vote is the start's."""
    planes, _ = read_tensors(file)
    model = dict(start)
    for entry in layout.voting:
        held = planes.get(entry.name)
        if not isinstance(held, np.ndarray) or held.shape != (2, -(-entry.size // 8)) or held.dtype != np.uint8:
            raise BadFile(f"{file} does not hold the ballot of layer {entry.name!r}; it was altered")
        before, kind = read(start[entry.name])
        moved = _moved(before, unpack(held, entry.size))
        model[entry.name] = BFloat16(moved) if kind == "bfloat16" else moved
    return model


def _moved(start: Array, cast: Array) -> Array:
    return np.asarray(start + (STEP * cast).astype(start.dtype).reshape(start.shape))
