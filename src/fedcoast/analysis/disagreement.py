"""Whether clients agree: signs of data for which no method without validation data finds the right order.

No common direction, from the first rounds on: what clients learn is their own, wrong labels included.
Different labels: each client keeps pulling the last layer in a direction of its own, round after round.

From each upload, samples of the largest and of the last layer are read; one sample of earlier rounds is kept.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import BadRound, Client
from fedcoast.rounds import Round
from fedcoast.rounds.arrays import read
from fedcoast.rounds.clients import as_client
from fedcoast.rounds.schema import LayerSpec, ModelSchema

Sample = NDArray[np.float64]

SAMPLE = 4096
SMALLEST_LAST = 8  # entries; deviations of fewer are alike by chance
FEWEST_ROUNDS = 9
EARLY, LATE = 0.12, 0.05  # mean cosine with the others in the first and the last third; sound data start far above
LASTING = 0.8  # median cosine of a client's deviation in the last layer with that of the round before


@dataclass(frozen=True)
class UpdateAgreement:
    """`early` and `late`: the mean cosine of an update with the others' in the first and the last third of the rounds.

    `lasting`: how much a client's pull on the last layer resembles its own pull of the round before, at the median
    client. None where too little is known. `differences`: most uploads are much nearer to zero than to the model.
    """

    early: float | None = None
    late: float | None = None
    lasting: float | None = None
    differences: bool = False

    def sentences(self) -> list[str]:
        """Warnings for the reader; empty if nothing stands out.

        >>> UpdateAgreement(early=0.5, late=0.3, lasting=0.4).sentences()
        []
        """
        if self.differences:
            return [
                "Most uploads are much nearer to zero than to the shared model: they look like differences or"
                " gradients, and these scores mean nothing. Record models, or say that they are differences"
                " (uploads='differences'; of checkpoints `fedcoast import --uploads differences`)."
            ]
        found = []
        if self.early is not None and self.late is not None and self.early < EARLY and self.late < LATE:
            found.append(
                f"Clients' updates hardly agree, neither in the first rounds (mean cosine {self.early:.2f}) nor in the"
                f" last ({self.late:.2f}): some labels may be wrong. In a model that has converged, a client with wrong"
                " labels can score above a clean one."
            )
        if self.lasting is not None and self.lasting > LASTING:
            found.append(
                "Clients keep pulling the last layer their own way, as where classes are spread unevenly (label skew)."
                " No method without validation data is known to find the true order there."
            )
        return found


@dataclass
class Disagreement:
    """Observes rounds; `summary` says how well the updates agree so far."""

    agreement: list[float] = field(default_factory=list)
    _lasting: dict[Client, list[float]] = field(default_factory=dict)
    _last: Mapping[Client, Sample] = field(default_factory=dict)
    _uploads: int = 0
    _differences: int = 0

    def observe(self, fl_round: Round) -> None:
        """Observe a round. Rounds of ballots and unreadable rounds are skipped."""
        if fl_round.ballot_keep is not None:
            return
        with suppress(BadRound):  # the assessor reports what is wrong with it
            large, last = _layers(fl_round.schema())
            starts = [_sample(fl_round.start, layer) for layer in (large, last)]
            updates = _updates(fl_round, (large, last), starts)
            self._differences += sum(_is_difference(of[0], starts[0]) for of in updates.values())
            self._uploads += len(updates)
            if len(updates) > 1 and large is not None:
                self.agreement.append(_mean_agreement([of[0] for of in updates.values()]))
            if len(updates) > 1 and last is not None:
                self._compare_last({client: of[1] for client, of in updates.items()})

    def _compare_last(self, updates: Mapping[Client, Sample]) -> None:
        middle = np.mean(list(updates.values()), axis=0)
        deviations = {client: update - middle for client, update in updates.items()}
        for client, deviation in deviations.items():
            before = self._last.get(client)
            if before is not None and before.shape == deviation.shape:
                self._lasting.setdefault(client, []).append(_cosine(deviation, before))
        self._last = {**self._last, **deviations}

    def summary(self) -> UpdateAgreement:
        third = len(self.agreement) // 3
        enough = len(self.agreement) >= FEWEST_ROUNDS
        known = [fmean(values) for values in self._lasting.values() if len(values) >= FEWEST_ROUNDS - 1]
        return UpdateAgreement(
            early=fmean(self.agreement[:third]) if enough else None,
            late=fmean(self.agreement[-third:]) if enough else None,
            lasting=median(known) if known else None,
            differences=2 * self._differences > self._uploads,
        )


def _layers(schema: ModelSchema) -> tuple[LayerSpec | None, LayerSpec | None]:
    """The largest layer, and the last that has entries enough."""
    entries = schema.trainable
    large = max(entries, key=lambda entry: entry.size, default=None)
    last = next((entry for entry in reversed(entries[-2:]) if entry.size >= SMALLEST_LAST), None)
    return (large if large is not None and large.size >= SMALLEST_LAST else None), (last if schema.ordered else None)


def _updates(
    fl_round: Round, layers: Sequence[LayerSpec | None], starts: Sequence[Sample]
) -> dict[Client, list[Sample]]:
    """What each client changed in a sample of these layers, without clients whose upload cannot be read. Uploads are
    read once."""
    found = {}
    for key in fl_round.local:
        client = as_client(key)
        if client not in fl_round.quarantined:
            with suppress(Exception):  # a lazy mapping may fail in any way
                model = fl_round.local[key]
                of = [_sample(model, layer) - start for layer, start in zip(layers, starts, strict=True)]
                if all(np.isfinite(update).all() for update in of):
                    found[client] = of
    return found


def _sample(model: Mapping[str, object], layer: LayerSpec | None) -> Sample:
    if layer is None:
        return np.zeros(0)
    array, _ = read(model[layer.name])
    return np.asarray(array.reshape(-1)[:: max(1, -(-layer.size // SAMPLE))].astype(np.float64))


def _is_difference(update: Sample, start: Sample) -> bool:
    """Whether the upload, start + update, lies much nearer to zero than to the model that was sent."""
    upload = start + update
    return bool(0 < 4 * (upload @ upload) < update @ update)


def _mean_agreement(updates: list[Sample]) -> float:
    """The mean cosine of an update with the sum of the others' directions."""
    directions = [update / length if (length := np.linalg.norm(update)) else update for update in updates]
    whole = np.sum(directions, axis=0)
    return fmean(_cosine(own, whole - own) for own in directions)


def _cosine(one: Sample, other: Sample) -> float:
    scale = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / scale if scale > 0 else 0.0
