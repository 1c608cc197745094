"""What the checks of the contract demand, and the error when it does not hold."""

import logging
import math
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from fedcoast.errors import FedcoastError
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Assessor
from fedcoast.rounds.round import Round

Make = Callable[..., Assessor]


class BrokenContract(AssertionError):
    """An assessor does not keep the contract; the text says which promise, and how that showed."""


class Nonsense:
    """A value that no option accepts."""

    def __repr__(self) -> str:
        return "Nonsense()"


def demand(holds: bool, promise: str) -> None:
    if not holds:
        raise BrokenContract(promise)


def demand_same(one: Assessment, other: Assessment, promise: str) -> None:
    if one != other:
        raise BrokenContract(f"{promise}; {one.scores} is not {other.scores} (credits {one.credits}, {other.credits})")


def demand_finite(answer: Assessment, where: str = "") -> None:
    numbers = [*answer.scores.values(), *(credit for of in answer.credits.values() for credit in of.values())]
    fine = all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
    demand(fine, f"{where}scores and credits must be finite numbers; got {answer.scores}, {answer.credits}")
    demand(Assessment.from_json(answer.to_json()) == answer, f"{where}the answer must survive JSON")


def raises(kind: type[FedcoastError], call: Callable[[], object]) -> bool:
    try:
        call()
    except kind:
        return True
    return False


def show(assessor: Assessor, rounds: Iterable[Round]) -> Assessment:
    for fl_round in rounds:
        assessor.observe(fl_round)
    return assessor.assessment()


def global_random_state() -> str:
    return f"{random.getstate()} {np.random.get_state(legacy=False)}"  # noqa: NPY002 (that nobody used it is checked)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warning about a bad upload that was made on purpose."""
    log = logging.getLogger("fedcoast")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
