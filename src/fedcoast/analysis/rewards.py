"""What each client should be paid: shares of 1, or of a budget to the cent (docs/rewards.md has a worked example).

1. Clients that are idle or that hurt (`analysis.verdicts`) are never paid, and are named. Of the others, clients with a
   score above 0 are paid.
2. Luck is not paid. A client is paid for the middle of the scores that it cannot be told apart from, by its own luck:
   half the sum of the highest and the lowest such score. Ties are between two clients and never form chains.
3. A rule turns those scores p of N paid clients into weights: "proportional" p; "softmax" exp(p / (temperature ·
   largest p)); "rank" N + 1 − r for rank r. `floor` and `cap` bound the share of each paid client.
4. Shares are exact fractions that add up to 1. Cents go by largest remainder; of equal shares the higher score gets the
   odd cent, then the client that is listed first.
5. Without ranges (too few rounds, one client, scores that are not sums) a payment needs `force`, and ties are unknown.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

from fedcoast.analysis.money import amount, cents
from fedcoast.analysis.reward_weights import fair_scores, paid_scores, share_option, share_ranges, without
from fedcoast.analysis.uncertainty import By, Uncertainty, uncertainty
from fedcoast.analysis.verdicts import Verdict, idle_clients, verdicts
from fedcoast.errors import BadSetting, Client
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.text import as_text, csv_name, csv_row, number, printable
from fedcoast.rounds.clients import client_to_json, in_order
from fedcoast.stats.apportionment import apportion, by_rank, proportional, softmax, split

if TYPE_CHECKING:
    from rich.table import Table

FORMAT = "fedcoast-rewards"
VERSION = 2
_DIGITS = 12  # of a share in print; largest remainders there too, so that printed shares add up as well

Rule = Literal["proportional", "softmax", "rank"]


@dataclass(frozen=True)
class Rewards:
    """Who gets what. `shares` are exact and add up to 1; `cents`, if there is a `budget` in cents, add up to it.

    `scores` are what is paid for: the middle of the scores that cannot be told apart, where ties are paid equally.
    `ranges` holds the lowest and highest share that luck alone could have given; None where nothing is known.
    `verdicts` names the clients that are idle or hurt; `forced` says that the payment rests on no ranges.
    """

    method: str
    rule: Rule
    options: Mapping[str, Any]
    scores: Mapping[Client, Fraction]
    shares: Mapping[Client, Fraction]
    verdicts: Mapping[Client, Verdict] = field(default_factory=dict)
    ranges: Mapping[Client, tuple[float, float] | None] = field(default_factory=dict)
    budget: int | None = None
    cents: Mapping[Client, int] | None = None
    forced: bool = False

    @property
    def clients(self) -> tuple[Client, ...]:
        """Those with the largest share first."""
        return _best_first(self.shares, self.scores)

    def named(self, verdict: Verdict) -> tuple[Client, ...]:
        """The clients with that verdict."""
        return tuple(client for client in in_order(self.verdicts) if self.verdicts[client] == verdict)

    def decimals(self) -> dict[Client, str]:
        """The shares as decimals of twelve digits, which add up to exactly 1 too.

        >>> thirds = dict.fromkeys("abc", Fraction(1, 3))
        >>> Rewards("mine", "rank", {}, thirds, thirds).decimals()
        {'a': '0.333333333334', 'b': '0.333333333333', 'c': '0.333333333333'}
        """
        clients = self.clients
        units = apportion([self.shares[client] for client in clients], 10**_DIGITS)
        return {client: f"{Decimal(unit).scaleb(-_DIGITS):f}" for client, unit in zip(clients, units, strict=True)}

    def range_cents(self, client: Client) -> tuple[int, int] | None:
        """The lowest and the highest amount that luck alone could have given, in cents."""
        found = self.ranges.get(client)
        if found is None or self.budget is None:
            return None
        return math.floor(found[0] * self.budget), math.ceil(found[1] * self.budget)

    def to_json(self) -> str:
        decimals, clients = self.decimals(), self.clients
        ranges = [self.range_cents(client) for client in clients]
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "method": self.method,
                "rule": self.rule,
                "options": dict(self.options),
                "forced": self.forced,
                "budget": None if self.budget is None else amount(self.budget),
                "clients": [client_to_json(client) for client in clients],
                "verdicts": [self.verdicts.get(client) for client in clients],
                "scores": [float(self.scores[client]) for client in clients],
                "shares": [decimals[client] for client in clients],
                "share_ranges": [self.ranges.get(client) for client in clients],
                "amounts": None if self.cents is None else [amount(self.cents[client]) for client in clients],
                "amount_ranges": [None if found is None else [*map(amount, found)] for found in ranges],
            },
            indent=1,
            allow_nan=False,
        )

    def to_csv(self) -> str:
        """One row a client, the largest share first."""
        decimals = self.decimals()
        rows = [csv_row(["client", "type", "score", "share", "share low", "share high", "amount", "verdict"])]
        for client in self.clients:
            name, score = csv_name(client), float(self.scores[client])
            low, high = self.ranges.get(client) or ("", "")
            paid = "" if self.cents is None else amount(self.cents[client])
            verdict = self.verdicts.get(client, "")
            rows.append(csv_row([name, type(client).__name__, score, decimals[client], low, high, paid, verdict]))
        return "".join(rows)

    def table(self) -> "Table":
        """For a terminal."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        money = self.cents is not None
        heads = ("client", "paid for", "share", *(["amount"] if money else []), "range", "verdict")
        table = Table(*heads, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for column in table.columns[1:-1]:
            column.justify, column.no_wrap = "right", column.header != "range"  # an amount is never cut
        table.columns[0].overflow = "fold"
        for client in self.clients:
            paid = [] if self.cents is None else [_grouped(self.cents[client])]
            numbers = [number(float(self.scores[client])), f"{float(self.shares[client]):.2%}", *paid]
            table.add_row(Text(printable(client)), *numbers, self._range(client), self.verdicts.get(client, "–"))
        table.caption = Text("\n".join(self.notes()), justify="left") if self.notes() else None
        return table

    def _range(self, client: Client) -> str:
        found, money = self.ranges.get(client), self.range_cents(client)
        if found is None:
            return "–"
        low, high = map(_grouped, money) if money else (f"{share:.1%}" for share in found)
        return f"{low} to {high}"

    def notes(self) -> list[str]:
        """Who is not paid and why, and warnings for the payer."""
        labels = {"idle": "Not paid, idle", "hurts": "Not paid, hurts", "cannot tell": ""}
        notes = []
        for verdict in ("idle", "hurts"):
            if named := self.named(verdict):
                notes.append(f"{labels[verdict]}: {', '.join(map(printable, named))}.")
        unpaid = [client for client in self.named("cannot tell") if not self.shares[client]]
        if unpaid:
            notes.append(f"Not paid, no score above 0: {', '.join(map(printable, unpaid))}.")
        if self.options.get("equal_pay_ties") is not None:
            notes.append("Clients that cannot be told apart are paid for the middle of their scores.")
        if self.forced:
            notes.append("Forced: the share of luck here is unknown.")
        return notes

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
    level: float = 0.90,
    draws: int = 2000,
    equal_pay_ties: bool = True,
    force: bool = False,
) -> Rewards:
    """Share out 1, or a budget, by the rules above.

    `by` pays for the "total", the "mean" credit per round, or the "adjusted-mean", which does not depend on the rounds
    that a client missed. A floor or cap of 0.1 is one tenth, not the double next to it.

    >>> from fedcoast import Assessment
    >>> scores = {"ann": 300, "bob": 100, "eve": -50}
    >>> paid = rewards(Assessment("mine", scores, rounds_scored=dict.fromkeys(scores, 9)), budget="1000.01", force=True)
    >>> paid.cents
    {'ann': 75001, 'bob': 25000, 'eve': 0}
    """
    _check(rule, by, temperature)
    bounds = {"floor": share_option("floor", floor), "cap": share_option("cap", cap)}
    total = None if budget is None else cents(budget)
    scores = paid_scores(assessment, by)
    active = without(assessment, idle_clients(assessment))  # idle clients change nobody's amount
    of_totals = uncertainty(assessment, level, draws) if assessment.credits else None
    same = of_totals is None or (by == "total" and active is assessment)
    luck = of_totals if same else uncertainty(active, level, draws, by=by)
    found = verdicts(assessment, of_totals)
    _check_certain(assessment, luck, force)
    signs = {client: assessment.scores[client] for client in scores}
    paid = [client for client in in_order(scores) if signs[client] > 0 and found[client] not in ("idle", "hurts")]
    if not paid:
        raise BadSetting(
            f"no client to reward: none of the {len(scores)} clients has a score above 0 without being idle or hurting."
            " Nothing was earned; sharing it equally is a decision for people"
        )
    known = luck is not None and not luck.note and len(luck.unknown) < len(luck.clients)
    if luck is not None and known and equal_pay_ties:
        scores = scores | fair_scores(scores, paid, luck)
    earned = split(_weights([scores[client] for client in paid], rule, temperature), **bounds)
    shares = dict.fromkeys(in_order(scores), Fraction(0)) | dict(zip(paid, earned, strict=True))
    best_first = _best_first(shares, scores)
    ranges = share_ranges(shares, paid, luck, rule, temperature, bounds) if luck is not None and known else {}
    return Rewards(
        method=assessment.method,
        rule=rule,
        options=_options(rule, by, temperature, bounds, level if known and equal_pay_ties else None),
        scores=scores,
        shares=shares,
        verdicts=found,
        ranges={client: ranges.get(client, (0.0, 0.0) if known else None) for client in shares},
        budget=total,
        cents=None
        if total is None
        else dict(zip(best_first, apportion([shares[client] for client in best_first], total), strict=True)),
        forced=not known or len(scores) == 1,
    )


def _check(rule: Rule, by: By, temperature: float) -> None:
    if rule not in ("proportional", "softmax", "rank"):
        raise BadSetting(f"rule must be 'proportional', 'softmax' or 'rank'; got {rule!r}")
    if by not in get_args(By):
        raise BadSetting(f"by must be 'total', 'mean' or 'adjusted-mean', the number that is paid for; got {by!r}")
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not temperature > 0:
        raise BadSetting(f"temperature must be a number above 0; got {temperature!r}")


def _check_certain(assessment: Assessment, luck: Uncertainty | None, force: bool) -> None:
    """Refuse to pay where nothing is certain, unless forced to."""
    if force:
        return
    hint = "; force=True (--force) pays anyway"
    if len(assessment.clients) == 1:
        raise BadSetting(f"a single client cannot be compared with others, so its score earns no payment{hint}")
    if luck is None or luck.note:
        reason = "the answer has no credits by round" if luck is None else luck.note
        raise BadSetting(f"too uncertain to pay for: {reason}{hint}")
    if len(luck.unknown) == len(luck.clients):
        raise BadSetting(f"too uncertain to pay for: no client took part in enough rounds to have a range{hint}")


def _best_first(shares: Mapping[Client, Fraction], scores: Mapping[Client, Fraction]) -> tuple[Client, ...]:
    return tuple(sorted(in_order(shares), key=lambda client: (-shares[client], -scores[client])))


def _weights(scores: list[Fraction], rule: Rule, temperature: float) -> list[Fraction]:
    if rule == "softmax":
        return softmax(scores, temperature)
    return by_rank(scores) if rule == "rank" else proportional(scores)


def _grouped(number_of_cents: int) -> str:
    return f"{number_of_cents // 100:,}.{number_of_cents % 100:02}"


def _options(
    rule: Rule, by: By, temperature: float, bounds: Mapping[str, Fraction], level: float | None
) -> dict[str, Any]:
    options: dict[str, Any] = {"by": by, **{name: str(bound) for name, bound in bounds.items()}}
    if rule == "softmax":
        options["temperature"] = temperature if math.isfinite(temperature) else str(temperature)
    return options | {"equal_pay_ties": level}
