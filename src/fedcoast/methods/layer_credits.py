"""From which layers of the model a score came."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedcoast.errors import Client
from fedcoast.kernels.bit_planes import Row


@dataclass(frozen=True)
class LayerCredits:
    """For each client and layer the net agreement, which adds up to the client's score, and the votes behind it.

    Their quotient can be compared between layers of any size; it lies between −1 and 1 where no past is subtracted.
    """

    names: tuple[str, ...] = ()
    agreement: Mapping[Client, Row] = field(default_factory=dict)
    votes: Mapping[Client, Row] = field(default_factory=dict)
