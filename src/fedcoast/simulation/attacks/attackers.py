"""The attackers of a federation: they remember earlier rounds and forge the uploads of each new one."""

from collections.abc import Mapping, Sequence
from functools import partial

from fedcoast.rounds import Round
from fedcoast.rounds.arrays import read
from fedcoast.simulation.attacks import HISTORY, attack_named
from fedcoast.simulation.attacks.view import Arrays, AttackView
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import ATTACK, stream


class Attackers:
    """Forges the uploads of an experiment's attackers; rounds must be remembered in order."""

    def __init__(self, experiment: Experiment, trained: frozenset[str]) -> None:
        if experiment.attack is None or experiment.attacker is None:
            raise ValueError("an experiment without attack has no attackers")
        self._experiment, self._trained = experiment, trained
        self._attack = attack_named(experiment.attack)
        self._clients = self._attack.attackers(experiment.attacker, experiment.clients)
        self._earlier: Sequence[Arrays] = ()
        self._previous: Mapping[int, Arrays] = {}

    @property
    def identities(self) -> tuple[int, ...]:
        """All names under which attackers upload."""
        return self._attack.identities(self._experiment.attacker or 0, self._experiment.clients)

    def forge(
        self, number: int, start: Arrays, uploads: Mapping[int, Arrays], weights: Mapping[int, float]
    ) -> tuple[dict[int, Arrays], dict[int, float]]:
        """The uploads and weights that the server receives."""
        forged, claimed = dict(uploads), dict(weights)
        for client in self._clients:
            if client not in uploads:
                continue
            forged[client] = self._attack.forge(self._view(client, number, start, uploads))
            claimed[client] = weights[client] * self._attack.weight
            for identity in range(self._experiment.clients, self._experiment.clients + self._attack.copies):
                forged[identity], claimed[identity] = forged[client], claimed[client]
        return forged, claimed

    def remember(self, fl_round: Round) -> None:
        """Learn what a finished round showed; also when a run is resumed."""
        start = {name: read(array)[0].copy() for name, array in fl_round.start.items()}
        self._earlier = [*self._earlier, start][-HISTORY:]
        self._previous = {
            int(client): {name: read(array)[0].copy() for name, array in upload.items()}
            for client, upload in fl_round.local.items()
        }

    def _view(self, client: int, number: int, start: Arrays, uploads: Mapping[int, Arrays]) -> AttackView:
        seed = self._experiment.seed
        return AttackView(
            client=client,
            number=number,
            rounds=self._experiment.rounds,
            start=start,
            uploads=uploads,
            earlier=self._earlier,
            previous=self._previous,
            trained=self._trained,
            random=stream(seed, ATTACK, number, client),
            constant_random=partial(stream, seed, ATTACK),
        )
