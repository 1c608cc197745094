"""The options that methods of coalitions share, each declared once."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fedcoast.methods.coalition.coalition_models import Denominator
from fedcoast.methods.configured import AssessorConfig
from fedcoast.methods.option_checks import check_count, check_seed
from fedcoast.methods.options import option

Weights = Literal["round", "uniform"]

SEED = "Seed of every random choice, together with the round's number."


@dataclass(frozen=True, kw_only=True)
class CoalitionConfig(AssessorConfig):
    """How the models of coalitions are merged."""

    weights: Weights = option(
        "round",
        "How much a client counts in a coalition: as in the round's aggregation, or uniform.",
        "Clients count the same where the round has no weights.",
    )
    denominator: Denominator = option(
        "renormalise",
        "What a coalition's sum is divided by: the weights of its members, or fixed.",
        '"renormalise" is what a server would do that had received these uploads alone. "fixed" divides by the weights'
        " of all clients, so that a client whose update is zero adds nothing to any coalition.",
    )

    @property
    def sampled(self) -> bool:
        """Whether the method asks about some of the coalitions only."""
        return False


@dataclass(frozen=True, kw_only=True)
class SampledCoalitionsConfig(CoalitionConfig):
    """For methods that can draw coalitions at random."""

    fewest_samples: ClassVar[int] = 1

    samples: int | None = option(None, "Random coalitions for each round; none for all.")
    seed: int = option(0, SEED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples is not None:
            check_count("samples", self.samples, self.fewest_samples, "the coalitions drawn for a round")
        check_seed(self.seed)

    @property
    def sampled(self) -> bool:
        return self.samples is not None


@dataclass(frozen=True, kw_only=True)
class SampledOrdersConfig(CoalitionConfig):
    """For methods that can draw orders of joining at random."""

    permutations: int | None = option(None, "Random orders of joining for each round; none for all.")
    seed: int = option(0, SEED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.permutations is not None:
            check_count("permutations", self.permutations, 1, "the orders of joining drawn for a round")
        check_seed(self.seed)

    @property
    def sampled(self) -> bool:
        return self.permutations is not None
