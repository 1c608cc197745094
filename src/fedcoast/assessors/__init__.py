"""One published method, one file. METHODS names them all, with what each needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fedcoast.assessors.assessor import Assessor
from fedcoast.assessors.coast import CoAst

Need = Literal["utility", "gradient", "classifier head", "weights", "full participation"]


@dataclass(frozen=True)
class Method:
    """How to make an assessor, what it measures in a few words, and what it cannot do without."""

    make: Callable[..., Assessor]
    measures: str
    needs: tuple[Need, ...] = ()


METHODS: dict[str, Method] = {
    "coast": Method(CoAst, "agreement of a client's votes with where the global model moves next"),
}

__all__ = ["METHODS", "Assessor", "CoAst", "Method", "Need"]
