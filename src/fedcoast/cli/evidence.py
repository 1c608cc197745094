"""What commands say beside the scores of a run: warnings read off its uploads, its health and its flags."""

from collections.abc import Iterable
from pathlib import Path

from fedcoast.analysis.behaviour import Behaviour
from fedcoast.analysis.disagreement import Disagreement, UpdateAgreement
from fedcoast.analysis.flags import Flag, flags_of
from fedcoast.analysis.health import Health, health_of
from fedcoast.methods.text import printable
from fedcoast.rounds import Round
from fedcoast.rounds.unmoved import Shares


class Evidence:
    """Observes the rounds of a run beside its assessor; without `flags` uploads are read once less."""

    def __init__(self, flags: bool = True) -> None:
        self._flags = flags
        self._shares: dict[int, Shares | None] = {}
        self._behaviour, self._disagreement = Behaviour(), Disagreement()

    def observe(self, fl_round: Round) -> None:
        self._disagreement.observe(fl_round)
        if self._flags:
            self._behaviour.observe(fl_round)
        self._shares[fl_round.number] = fl_round.unmoved

    @property
    def update_agreement(self) -> UpdateAgreement:
        return self._disagreement.summary()

    @property
    def flags(self) -> list[Flag]:
        return flags_of(self._behaviour)

    def health(self, run: Path) -> Health:
        return health_of(run, self._shares)


def flag_sentences(flags: Iterable[Flag]) -> list[str]:
    return [f"Flagged: {printable(flag.client)}, {flag.kind}. {printable(flag.evidence)}" for flag in flags]
