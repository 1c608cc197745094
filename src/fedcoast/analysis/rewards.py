"""What each client should get: shares of 1, or of a budget to the cent.

| rule | weight of a client with score p, rank r of N |
|---|---|
| proportional | p |
| softmax | exp(p / (temperature · largest p)) |
| rank | N + 1 − r |

* Who gets something: clients with a score above 0. Who did nothing (0) or harm (below 0) gets nothing, and who did harm
  is named. `everyone=True` lets all take part: negative scores then weigh 0 in "proportional", and count as they are
  in the other two.
* By what is evened, 0 is not what a client has who did nothing. Who gets something and who did harm is then decided by
  the total, and what is evened says how much.
* Nobody above 0: refused. Nothing was earned, and paying all alike is a decision for people.
* `floor` and `cap` bound the share of each client that takes part.
* `uncertainty`: clients that cannot be told apart are paid alike. Each has the mean score of its group; a client with a
  negative score is paid if the mean of its group is positive, since nobody can say that it is the worse one.
* Shares are exact fractions and add up to exactly 1. Cents go by largest remainder; of equal shares the higher score
  has the odd cent, then the client that is listed first.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

from fedcoast.analysis.uncertainty import By, Uncertainty
from fedcoast.errors import BadSetting, Client
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.text import as_text, csv_name, csv_row, printable
from fedcoast.rounds.clients import client_to_json, in_order
from fedcoast.stats.apportionment import apportion, by_rank, proportional, softmax, split

if TYPE_CHECKING:
    from rich.table import Table

FORMAT = "fedcoast-rewards"
VERSION = 1
MOST_CENTS = 10**18
_DIGITS = 12  # of a share in print; largest remainders there too, so that printed shares add up as well

Rule = Literal["proportional", "softmax", "rank"]


@dataclass(frozen=True)
class Rewards:
    """Who gets what. `shares` are exact and add up to 1; `cents`, if there is a `budget` in cents, add up to it.

    `scores` are what was paid for (the mean of the group, where clients that cannot be told apart are paid alike).
    `negative` names the clients that did harm.
    """

    method: str
    rule: Rule
    options: Mapping[str, Any]
    scores: Mapping[Client, Fraction]
    shares: Mapping[Client, Fraction]
    negative: tuple[Client, ...]
    budget: int | None = None
    cents: Mapping[Client, int] | None = None

    @property
    def clients(self) -> tuple[Client, ...]:
        """Those with the largest share first."""
        return _best_first(self.shares, self.scores)

    def decimals(self) -> dict[Client, str]:
        """The shares as decimals of twelve digits, which add up to exactly 1 too.

        >>> thirds = dict.fromkeys("abc", Fraction(1, 3))
        >>> Rewards("mine", "rank", {}, thirds, thirds, ()).decimals()
        {'a': '0.333333333334', 'b': '0.333333333333', 'c': '0.333333333333'}
        """
        clients = self.clients
        units = apportion([self.shares[client] for client in clients], 10**_DIGITS)
        return {client: f"{Decimal(unit).scaleb(-_DIGITS):f}" for client, unit in zip(clients, units, strict=True)}

    def to_json(self) -> str:
        decimals = self.decimals()
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "method": self.method,
                "rule": self.rule,
                "options": dict(self.options),
                "budget": None if self.budget is None else amount(self.budget),
                "clients": [client_to_json(client) for client in self.clients],
                "scores": [float(self.scores[client]) for client in self.clients],
                "shares": [decimals[client] for client in self.clients],
                "amounts": None if self.cents is None else [amount(self.cents[client]) for client in self.clients],
                "negative": [client_to_json(client) for client in self.negative],
            },
            indent=1,
            allow_nan=False,
        )

    def to_csv(self) -> str:
        """One row a client, the largest share first."""
        decimals = self.decimals()
        rows = [csv_row(["client", "type", "score", "share", "amount", "note"])]
        for client in self.clients:
            name, score = csv_name(client), float(self.scores[client])
            paid = "" if self.cents is None else amount(self.cents[client])
            note = "negative" if client in self.negative else ""
            rows.append(csv_row([name, type(client).__name__, score, decimals[client], paid, note]))
        return "".join(rows)

    def table(self) -> "Table":
        """For a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table("client", "score", "share")
        if self.cents is not None:
            table.add_column("amount")
        for column in table.columns[1:]:
            column.justify = "right"
        for client in self.clients:
            paid = [] if self.cents is None else [f"{self.cents[client] // 100:,}.{self.cents[client] % 100:02}"]
            numbers = [f"{float(self.scores[client]):,.6g}", f"{float(self.shares[client]):.2%}", *paid]
            table.add_row(Text(printable(client)), *numbers)
        if self.negative:
            table.caption = Text(f"negative: {', '.join(map(printable, self.negative))}")
        return table

    def __rich__(self) -> "Table":
        return self.table()

    def __str__(self) -> str:
        return as_text(self)


def rewards(
    assessment: Assessment,
    budget: str | int | Decimal | None = None,
    rule: Rule = "proportional",
    *,
    by: By = "total",
    temperature: float = 1.0,
    floor: float | str | Fraction = 0,
    cap: float | str | Fraction = 1,
    uncertainty: Uncertainty | None = None,
    everyone: bool = False,
) -> Rewards:
    """Share out 1, or a budget, by a rule (see the table above).

    `by` pays for the "total", for the "mean" credit per round seen, or for that mean "evened" out over the rounds that
    clients missed. A floor or cap of 0.1 is one tenth, not the double next to it.

    >>> from fedcoast import Assessment
    >>> scores = {"ann": 300, "bob": 100, "eve": -50}
    >>> paid = rewards(Assessment("mine", scores, seen=dict.fromkeys(scores, 9)), budget="1000.01")
    >>> paid.cents, paid.negative
    ({'ann': 75001, 'bob': 25000, 'eve': 0}, ('eve',))
    """
    _check(rule, by, temperature, uncertainty)
    bounds = {"floor": _share("floor", floor), "cap": _share("cap", cap)}
    total = None if budget is None else cents(budget)
    scores = _pooled(_scores(assessment, by), uncertainty)
    signs = _pooled(_scores(assessment, "total"), uncertainty) if by == "adjusted-mean" else scores
    paid = [client for client in in_order(scores) if everyone or signs[client] > 0]
    if not paid:
        raise BadSetting(
            f"nobody to reward: none of the {len(scores)} clients has a score above 0. Nothing was earned;"
            " everyone=True (--everyone) with the rule rank or softmax shares it out all the same"
        )
    earned = split(_weights([scores[client] for client in paid], rule, temperature), **bounds)
    shares = dict.fromkeys(in_order(scores), Fraction(0)) | dict(zip(paid, earned, strict=True))
    best_first = _best_first(shares, scores)
    return Rewards(
        method=assessment.method,
        rule=rule,
        options=_options(rule, by, temperature, bounds, uncertainty, everyone),
        scores=scores,
        shares=shares,
        negative=tuple(client for client in in_order(scores) if signs[client] < 0),
        budget=total,
        cents=None
        if total is None
        else dict(zip(best_first, apportion([shares[client] for client in best_first], total), strict=True)),
    )


def cents(budget: str | int | Decimal) -> int:
    """A budget in cents, exactly.

    >>> cents("100000"), cents("0.07"), cents(Decimal("12.5"))
    (10000000, 7, 1250)
    """
    wanted = "budget must be an amount with at most two decimals, such as 100000 or 99.95"
    if isinstance(budget, bool) or not isinstance(budget, str | int | Decimal):
        raise BadSetting(f"{wanted}, as text, an integer or a Decimal; got {budget!r}")
    try:
        value = Decimal(budget)
    except InvalidOperation:
        raise BadSetting(f"{wanted}; got {budget!r}") from None
    _, digits, exponent = value.as_tuple()
    too_fine = isinstance(exponent, int) and exponent < -2 and any(digits[exponent + 2 :])
    if not value.is_finite() or too_fine or not 0 <= value <= MOST_CENTS // 100:
        raise BadSetting(f"{wanted}, from 0 to {amount(MOST_CENTS)}; got {str(budget)!r}")
    return int(value * 100)


def amount(number_of_cents: int) -> str:
    """Cents as people write them.

    >>> amount(1234507)
    '12345.07'
    """
    return f"{number_of_cents // 100}.{number_of_cents % 100:02}"


def _check(rule: Rule, by: By, temperature: float, uncertainty: Uncertainty | None) -> None:
    if rule not in ("proportional", "softmax", "rank"):
        raise BadSetting(f"rule must be 'proportional', 'softmax' or 'rank'; got {rule!r}")
    if by not in get_args(By):
        raise BadSetting(f"by must be 'total', 'mean' or 'adjusted-mean', the number that is paid for; got {by!r}")
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not temperature > 0:
        raise BadSetting(f"temperature must be a number above 0; got {temperature!r}")
    if uncertainty is not None and uncertainty.by != by:
        raise BadSetting(f"the certainty ranks by {uncertainty.by}, the rewards pay by {by}; ask for the same")
    if uncertainty is not None and not uncertainty.groups:
        raise BadSetting(f"nobody can be told apart or not yet, so nobody can be paid alike ({uncertainty.note})")


def _share(option: str, value: float | str | Fraction) -> Fraction:
    try:
        share = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise BadSetting(f"{option} must lie between 0 and 1, the share of a client; got {value!r}")
    return share


def _scores(assessment: Assessment, by: By) -> dict[Client, Fraction]:
    """The exact scores; a client that was never seen has 0."""
    for client in assessment.clients:
        if not math.isfinite(assessment.scores[client]):
            raise BadSetting(f"scores must be finite to be paid for; client {client!r} has {assessment.scores[client]}")
    if by == "adjusted-mean":
        return _adjusted(assessment)
    scores = {client: Fraction(assessment.scores[client]) for client in assessment.clients}
    return scores if by == "total" else {c: score / max(1, assessment.seen[c]) for c, score in scores.items()}


def _adjusted(assessment: Assessment) -> dict[Client, Fraction]:
    if not assessment.additive:
        raise BadSetting(
            f"the scores of {assessment.method} are no sums of credits, so that nothing can be evened out; pay for"
            " the total"
        )
    if assessment.strangers:
        raise BadSetting(
            "some clients never met in any round, not even through others: nothing says what one is worth beside"
            " another. Pay for the total or the mean, or pay those that met apart"
        )
    return {client: Fraction(0 if math.isnan(level) else level) for client, level in assessment.evened.items()}


def _pooled(scores: dict[Client, Fraction], uncertainty: Uncertainty | None) -> dict[Client, Fraction]:
    if uncertainty is None:
        return scores
    if set(uncertainty.clients) != set(scores):
        raise BadSetting("the certainty is about other clients than the assessment; make it from the same one")
    pooled = dict(scores)
    for group in uncertainty.groups:
        pooled |= dict.fromkeys(group, sum((scores[client] for client in group), Fraction(0)) / len(group))
    return pooled


def _best_first(shares: Mapping[Client, Fraction], scores: Mapping[Client, Fraction]) -> tuple[Client, ...]:
    return tuple(sorted(in_order(shares), key=lambda client: (-shares[client], -scores[client])))


def _weights(scores: list[Fraction], rule: Rule, temperature: float) -> list[Fraction]:
    if rule == "softmax":
        return softmax(scores, temperature)
    return by_rank(scores) if rule == "rank" else proportional(scores)


def _options(
    rule: Rule,
    by: By,
    temperature: float,
    bounds: Mapping[str, Fraction],
    uncertainty: Uncertainty | None,
    everyone: bool,
) -> dict[str, Any]:
    options: dict[str, Any] = {"by": by, **{name: str(bound) for name, bound in bounds.items()}, "everyone": everyone}
    if rule == "softmax":
        options["temperature"] = temperature if math.isfinite(temperature) else str(temperature)
    return options | {"equal_pay_ties": None if uncertainty is None else uncertainty.level}
