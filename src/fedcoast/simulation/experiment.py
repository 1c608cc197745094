"""An experiment: everything that determines a federation, in one frozen record with one name."""

import hashlib
import json
from dataclasses import dataclass, fields
from typing import Any, Literal

from fedcoast.errors import BadSetting, unknown_word
from fedcoast.simulation.attacks import attack_named

ADDED_LATER: dict[str, Any] = {"precision": "float32", "attack": None, "attacker": None}

Aggregation = Literal["fedavg", "pruned", "sparse", "fedavgm", "fedadam"]


@dataclass(frozen=True)
class Experiment:
    """One federation. The same experiment gives the same rounds, bit for bit, on the same machine.

    aggregation    "fedavg" (the mean), "pruned" (CoAst's in-loop rule), "sparse" (the same without clipping: the mean
                   of the largest raw updates), "fedavgm" or "fedadam" (server optimisers)
    weighting      of the mean: "uniform" or by "samples"; pruned and sparse aggregation are always uniform
    keep, step     of pruned aggregation: the share that votes (r), how far a vote moves (α) or "avg"; sparse uses keep
    server_rate    learning rate of the server optimisers
    participation  share of the clients drawn for each round
    epochs         passes over the client's own data in each round; 0.5 is every second sample
    steps          if given, instead of epochs: batches in each round, drawn from the whole shard
    tests          test images used to evaluate the model after each round; None uses all
    schedule       of the local learning rate over the rounds: "constant" or "cosine" (down to a hundredth)
    precision      of the clients' forward and backward passes: "float32", or "bfloat16" (autocast; weights, optimiser
                   and uploads stay float32), which is faster where the processor multiplies bfloat16 itself
    attack         what attackers do (`simulation.attacks`); None is an honest federation
    attacker       the first client that attacks
    """

    dataset: str = "digits"
    model: str = "mlp"
    setting: str = "noise"
    clients: int = 5
    rounds: int = 20
    aggregation: Aggregation = "fedavg"
    weighting: Literal["uniform", "samples"] = "uniform"
    keep: float = 0.10
    step: float | Literal["avg"] = 0.02
    server_rate: float = 1.0
    participation: float = 1.0
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 0.002
    schedule: Literal["constant", "cosine"] = "constant"
    epochs: float = 1.0
    steps: int | None = None
    batch: int = 100
    augment: bool = True
    tests: int | None = None
    seed: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    attack: str | None = None
    attacker: int | None = None

    def __post_init__(self) -> None:
        _check_word("aggregation", self.aggregation, ("fedavg", "pruned", "sparse", "fedavgm", "fedadam"))
        _check_word("weighting", self.weighting, ("uniform", "samples"))
        _check_word("optimiser", self.optimiser, ("adam", "sgd"))
        _check_word("schedule", self.schedule, ("constant", "cosine"))
        _check_word("precision", self.precision, ("float32", "bfloat16"))
        for name in ("clients", "rounds", "batch"):
            _check(isinstance(getattr(self, name), int) and getattr(self, name) >= 1, name, "at least 1", self)
        for name in ("keep", "participation"):
            _check(0 < getattr(self, name) <= 1, name, "in (0, 1]", self)
        for name in ("learning_rate", "server_rate", "epochs"):
            _check(0 < getattr(self, name) < float("inf"), name, "a positive number", self)
        _check(self.step == "avg" or 0 < self.step < float("inf"), "step", "a positive number or 'avg'", self)
        _check(self.steps is None or self.steps >= 1, "steps", "at least 1, or None", self)
        _check(self.tests is None or self.tests >= 1, "tests", "at least 1, or None", self)
        _check(isinstance(self.seed, int) and self.seed >= 0, "seed", "an integer of at least 0", self)
        self._check_attack()

    def _check_attack(self) -> None:
        if (self.attack is None) != (self.attacker is None):
            raise BadSetting(f"attack and attacker belong together; got {self.attack!r} and {self.attacker!r}")
        if self.attack is not None and self.attacker is not None:
            attack_named(self.attack)
            _check(0 <= self.attacker < self.clients, "attacker", f"a client, 0 to {self.clients - 1}", self)

    def to_json(self) -> dict[str, Any]:
        """All fields; those in `ADDED_LATER` only where not at their default, so that earlier runs keep their names."""
        values = dict(vars(self))
        for name, default in ADDED_LATER.items():
            if values[name] == default:
                del values[name]
        return values

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Experiment":
        known = {field.name for field in fields(cls)}
        if unknown := sorted(data.keys() - known):
            raise BadSetting(f"an experiment has no field {unknown[0]!r}; its fields are {', '.join(sorted(known))}")
        return cls(**data)

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits of a hash over all fields."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """The name of its run folder.

        >>> Experiment(seed=3).name.removesuffix(Experiment(seed=3).hash)
        'digits-mlp-noise-fedavg-seed3-'
        """
        attack = () if self.attack is None else (self.attack,)
        parts = (self.dataset, self.model, self.setting, self.aggregation, *attack, f"seed{self.seed}", self.hash)
        return "-".join(parts)


def _check_word(option: str, value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise unknown_word(option, value, words)


def _check(holds: bool, option: str, wanted: str, experiment: Experiment) -> None:
    if not holds:
        raise BadSetting(f"{option} must be {wanted}; got {getattr(experiment, option)!r}")
