"""From which layers of the model a score came."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from fedcoast.errors import Client


@dataclass(frozen=True)
class LayerCredits:
    """For each client and layer the net agreement, which adds up to the client's score, and the votes behind it.

    Their quotient can be compared between layers of any size; it lies between −1 and 1 where no past is subtracted.
    """

    names: tuple[str, ...] = ()
    agreement: Mapping[Client, NDArray[Any]] = field(default_factory=dict)
    votes: Mapping[Client, NDArray[Any]] = field(default_factory=dict)

    def scaled(self, factors: Mapping[Client, float]) -> "LayerCredits":
        """With each client's agreement multiplied by its factor, where it has one."""
        agreement = {
            client: row * factors[client] if client in factors else row for client, row in self.agreement.items()
        }
        return replace(self, agreement=agreement)
