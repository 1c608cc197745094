"""Attacks on a federation: what clients upload instead of an honest model.

An attack is a small function from what the attacker knows (`AttackView`) to its upload. `ATTACKS` names them all. An
attacked federation is an ordinary run; its experiment names the attack and the first attacker.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

from fedcoast.errors import unknown_word
from fedcoast.simulation.attacks import distortions, free_riders
from fedcoast.simulation.attacks.steering import steering
from fedcoast.simulation.attacks.view import Arrays, AttackView

HISTORY = 5  # earlier global models that attackers remember


@dataclass(frozen=True)
class Attack:
    """How attackers forge uploads, and what else they do.

    share   of the clients that attack together; 0 is a single attacker
    copies  further identities of the attacker, which upload the same model under new names
    weight  factor on the weight that the attacker claims in the aggregation
    data    what is wrong with the attacker's data
    """

    forge: Callable[[AttackView], Arrays]
    description: str
    share: float = 0.0
    copies: int = 0
    weight: float = 1.0
    data: Literal["label flip", "backdoor"] | None = None

    def attackers(self, first: int, clients: int) -> tuple[int, ...]:
        """The clients that attack, from the first one on; identities of a sybil come after all clients.

        >>> ATTACKS["collusion-40"].attackers(4, 6), ATTACKS["sybil"].attackers(2, 6)
        ((0, 4, 5), (2,))
        """
        count = max(1, ceil(self.share * clients - 1e-9))
        return tuple(sorted((first + place) % clients for place in range(count)))

    def identities(self, first: int, clients: int) -> tuple[int, ...]:
        """All names under which attackers upload."""
        return (*self.attackers(first, clients), *range(clients, clients + self.copies))


ATTACKS: Mapping[str, Attack] = {
    "zero": Attack(free_riders.zero, "uploads the start"),
    "noise": Attack(free_riders.noise, "uploads the start plus Gaussian noise of standard deviation 0.05"),
    "matched-noise": Attack(free_riders.matched_noise, "noise as long as the last global step"),
    "echo": Attack(free_riders.echo, "repeats the last global step"),
    "mean-of-steps": Attack(free_riders.mean_of_steps, "uploads the mean of the last four global steps"),
    "extrapolation": Attack(free_riders.extrapolation, "twice the last global step less the one before (ACE)"),
    "reverse": Attack(free_riders.reverse, "takes the last global step backwards"),
    "copy": Attack(free_riders.copy_same_round, "copies the best other client's upload of the same round"),
    "copy-late": Attack(free_riders.copy_last_round, "copies the best other client's upload of the round before"),
    "sign-flip": Attack(distortions.sign_flip, "flips the sign of its update"),
    "scale-0.1": Attack(distortions.times_tenth, "uploads a tenth of its update"),
    "scale-5": Attack(distortions.times_5, "uploads five times its update"),
    "scale-100": Attack(distortions.times_100, "uploads a hundred times its update"),
    "middle": Attack(distortions.poisoned_middle, "honest first and last layers, the layers between poisoned"),
    "half-time": Attack(distortions.half_time, "honest for half of the training, noise after it"),
    "steering": Attack(steering, "pushes along one random vector in every round"),
    "collusion-20": Attack(steering, "a fifth of the clients push along one random vector", share=0.2),
    "collusion-40": Attack(steering, "two fifths of the clients push along one random vector", share=0.4),
    "sybil": Attack(distortions.honest, "appears as three clients with the same upload", copies=2),
    "weight": Attack(distortions.honest, "claims twenty times its weight", weight=20.0),
    "weight-steering": Attack(steering, "claims twenty times its weight and steers", weight=20.0),
    "label-flip": Attack(distortions.honest, "trains on flipped labels", data="label flip"),
    "backdoor": Attack(distortions.honest, "trains on images with a trigger, labelled class 0", data="backdoor"),
}


def attack_named(name: str) -> Attack:
    """Look up an attack by name."""
    if name not in ATTACKS:
        raise unknown_word("attack", name, ATTACKS)
    return ATTACKS[name]
