"""What an upload says of every parameter (up, down, nothing), in bit planes: the signals of CoAst.

The signal of an idle client, the signs of the start, is the same for everyone. It is held and valued once a round
instead of being subtracted from each signal, which would then need more than two bits. Agreement is additive.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from fedcoast.errors import BadSetting, Client
from fedcoast.kernels.aggregation import mean_size
from fedcoast.kernels.ballot_encoder import BallotEncoder
from fedcoast.kernels.ballots import Floats, num_kept
from fedcoast.kernels.bit_planes import PlaneLayout, Planes, signs_of
from fedcoast.kernels.threads import ThreadPool
from fedcoast.kernels.vote_counts import VoteCounts, count
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.rounds.round_view import RoundView
from fedcoast.rounds.schema import LayerSpec


class SignalExtractor:
    """Reads signals and ballots off uploads of one layout; reuses its scratch arrays from round to round."""

    def __init__(self, plane_layout: PlaneLayout, config: CoAstConfig) -> None:
        keep, small = config.keep, config.tiny_layers
        self.plane_layout, self.signal, self.step = plane_layout, config.signal, config.step
        tiny = [too_small(size, keep) for size in plane_layout.sizes]
        self.raw = [place for place, alone in enumerate(tiny) if alone and small == "raw"]
        self.votes = [
            (size if small == "raw" else int(small == "one")) if alone else num_kept(size, keep)
            for size, alone in zip(plane_layout.sizes, tiny, strict=True)
        ]
        self.ballots = BallotEncoder(plane_layout, self.votes)
        self.updates = BallotEncoder(plane_layout, plane_layout.sizes)

    @property
    def repeated_selections(self) -> tuple[int, int]:
        return self.ballots.missed, self.ballots.cast_layers

    def for_round(self, start: Sequence[Floats]) -> "RoundSignals":
        return RoundSignals(self, start)


class RoundSignals:
    """One round: the model that everyone started from, and what is computed from it once."""

    def __init__(self, extractor: SignalExtractor, start: Sequence[Floats]) -> None:
        self._extractor, self._start = extractor, start
        self.idle = signs_of(start, extractor.plane_layout) if extractor.signal in ("pruned", "parameters") else None
        self._stepped = (
            None
            if extractor.signal != "pruned" or extractor.step == "avg"
            else self._steps([extractor.step] * len(start))
        )

    def of(
        self, models: Iterable[tuple[Client, Sequence[Floats]]], threads: ThreadPool, votes: VoteCounts | None
    ) -> Iterator[tuple[Client, Planes]]:
        """The signal of each upload, one at a time; ballots are added to `votes`, if given."""
        needs_ballot = votes is not None or self._extractor.signal in ("ballot", "pruned")
        for client, local in models:
            ballot = self.ballot(local, threads) if needs_ballot else None
            yield client, self.signal(local, ballot, threads)
            if votes is not None and ballot is not None:
                count(votes, ballot)
            del local  # before the next one is loaded

    def ballot(self, local: Sequence[Floats], threads: ThreadPool) -> Planes:
        return self._extractor.ballots.cast(self._start, local, threads)

    def signal(self, local: Sequence[Floats], ballot: Planes | None, threads: ThreadPool) -> Planes:
        """The signal of one upload; `ballot` is needed for "ballot" and "pruned"."""
        if self._extractor.signal == "update":
            return self._extractor.updates.cast(self._start, local, threads)
        if self._extractor.signal == "parameters":
            return signs_of(local, self._extractor.plane_layout)
        if ballot is None:
            raise ValueError(f"the signal {self._extractor.signal!r} is read off a ballot")
        return ballot if self._extractor.signal == "ballot" else self._pruned(local, ballot)

    def _pruned(self, local: Sequence[Floats], ballot: Planes) -> Planes:
        """sgn(start + step · ballot), by choosing among the signs of start, start + step and start − step."""
        plane_layout, idle = self._extractor.plane_layout, self.idle
        stepped = self._stepped or self._steps(
            [
                mean_size(_voting(before, after, votes))
                for before, after, votes in zip(self._start, local, plane_layout.layers(ballot), strict=True)
            ]
        )
        (up, down), (risen, fallen) = ballot, stepped
        signal: Planes = (risen & up) | (fallen & down) | (idle & ~(up | down))
        for place in self._extractor.raw:
            words = slice(*plane_layout.bounds[place : place + 2])
            signal[:, words] = signs_of([local[place]], PlaneLayout((plane_layout.sizes[place],)))
        return signal

    def _steps(self, steps: Sequence[float]) -> tuple[Planes, Planes]:
        with np.errstate(over="ignore"):  # a step too large for the type is infinite there, and its sign right
            own = [layer.dtype.type(step) for layer, step in zip(self._start, steps, strict=True)]
        return signs_of(self._start, self._extractor.plane_layout, own), signs_of(
            self._start, self._extractor.plane_layout, [-s for s in own]
        )


def _voting(start: Floats, local: Floats, ballot: Planes) -> Floats:
    """The updates that vote, in the order of the tensor."""
    places = np.flatnonzero(np.unpackbits((ballot[0] | ballot[1]).view(np.uint8), count=start.size, bitorder="little"))
    with np.errstate(over="ignore"):
        return np.asarray(local.reshape(-1)[places] - start.reshape(-1)[places])


def check_ballots_suffice(view: RoundView, chosen: Sequence[LayerSpec], config: CoAstConfig) -> None:
    """Refuse a round of ballots where the options need whole uploads."""
    whole = config.signal not in ("ballot", "pruned") or view.ballot_keep != config.keep
    sizes = config.signal == "pruned" and config.step == "avg"
    raw = config.tiny_layers == "raw" and any(too_small(entry.size, config.keep) for entry in chosen)
    if whole or sizes or raw:
        raise BadSetting(
            f"round {view.number} holds ballots of keep={view.ballot_keep} only; CoAst with"
            f" keep={config.keep}, signal={config.signal!r}, step={config.step!r}, tiny_layers={config.tiny_layers!r}"
            f" needs the whole uploads. Use keep={view.ballot_keep}, signal 'ballot' or 'pruned', a step that is a"
            " number and tiny_layers 'one'"
        )


def too_small(size: int, keep: float) -> bool:
    """Whether the share is less than one entry.

    >>> too_small(9, 0.1), too_small(10, 0.1)
    (True, False)
    """
    return int(size * keep) == 0
