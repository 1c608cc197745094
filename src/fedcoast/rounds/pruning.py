"""Uploads kept as ballots: two bits for each parameter that may vote, nothing of the rest."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from fedcoast.errors import BadFile, BadRound
from fedcoast.formulas.selection import quick_ballot
from fedcoast.formulas.ternary import pack, signs, unpack
from fedcoast.rounds.arrays import Array, BFloat16, arithmetic, read
from fedcoast.rounds.layout import Layout, Model
from fedcoast.rounds.tensors import open_tensors

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


class PrunedUpload(Mapping[str, object]):
    """The model whose update is the recorded ballot: start + step · ballot; what cannot vote is the start's.

    A layer is put together when it is asked for.
    """

    def __init__(self, layout: Layout, start: Model, file: Path) -> None:
        self._sizes = {entry.name: entry.size for entry in layout.voting}
        self._start, self._planes, self._file = start, open_tensors(file), file

    def __getitem__(self, name: str) -> object:
        if name not in self._sizes:
            return self._start[name]
        size, held = self._sizes[name], self._planes.get(name)
        if not isinstance(held, np.ndarray) or held.shape != (2, -(-size // 8)) or held.dtype != np.uint8:
            raise BadFile(f"{self._file} does not hold the ballot of layer {name!r}; it was altered")
        before, kind = read(self._start[name])
        moved = _moved(before, unpack(held, size))
        return BFloat16(moved) if kind == "bfloat16" else moved

    def __contains__(self, name: object) -> bool:
        return name in self._start  # Mapping's own would put the layer together

    def __iter__(self) -> Iterator[str]:
        return iter(self._start)

    def __len__(self) -> int:
        return len(self._start)


def _moved(start: Array, cast: Array) -> Array:
    return np.asarray(start + (STEP * cast).astype(start.dtype).reshape(start.shape))
