"""Uploads stored as ballots: two bits for each trainable parameter, nothing else."""

from collections.abc import Iterator, Mapping

import numpy as np

from fedcoast.errors import BadFile
from fedcoast.kernels.ballots import Signs, pack, unpack
from fedcoast.kernels.top_share import quick_ballot
from fedcoast.rounds.arrays import Array, BFloat16, arithmetic, read
from fedcoast.rounds.schema import Model, ModelSchema

STEP = 0.02  # the paper's α; any would do, the votes are what is kept


def ballot_arrays(
    schema: ModelSchema, start: dict[str, Array], model: dict[str, Array], keep: float
) -> dict[str, tuple[Array, str]]:
    """The packed ballots of one upload, by layer."""
    packed = {}
    for entry in schema.trainable:
        with np.errstate(over="ignore"):
            cast = quick_ballot(arithmetic(model[entry.name]) - arithmetic(start[entry.name]), keep)
        packed[entry.name] = (pack(cast), "uint8")
    return packed


class BallotModel(Mapping[str, object]):
    """The model whose update is a ballot: `moved` from the start by its votes; what is not trainable is the start's.

    A layer is unpacked when it is read. `origin` is where the packed planes come from, for errors.
    """

    def __init__(self, schema: ModelSchema, start: Model, planes: Mapping[str, object], origin: object) -> None:
        self._sizes = {entry.name: entry.size for entry in schema.trainable}
        self._start, self._planes, self._origin = start, planes, origin

    def __getitem__(self, name: str) -> object:
        if name not in self._sizes:
            return self._start[name]
        size, planes = self._sizes[name], self._planes.get(name)
        if not isinstance(planes, np.ndarray) or planes.shape != (2, -(-size // 8)) or planes.dtype != np.uint8:
            raise BadFile(f"{self._origin} does not hold the ballot of layer {name!r}; it was altered")
        before, dtype = read(self._start[name])
        after = moved(before, unpack(planes, size))
        return BFloat16(after) if dtype == "bfloat16" else after

    def __contains__(self, name: object) -> bool:
        return name in self._start  # Mapping's own would put the layer together

    def __iter__(self) -> Iterator[str]:
        return iter(self._start)

    def __len__(self) -> int:
        return len(self._start)


def moved(start: Array, cast: Signs) -> Array:
    """start + step · ballot, and the next number up or down where a step would vanish: only the signs are meant.

    >>> (moved(np.float32([1, 1e9]), np.array([1, -1], np.int8)) - np.float32([1, 1e9])).round(2).tolist()
    [0.019999999552965164, -64.0]
    """
    step = (STEP * cast).astype(start.dtype).reshape(start.shape)
    with np.errstate(over="ignore"):
        after = np.asarray(start + step)
        lost = (after == start) & (step != 0)
        if lost.any():
            after = np.where(lost, np.nextafter(start, np.copysign(np.inf, step, dtype=start.dtype)), after)
    return after
