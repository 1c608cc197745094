"""How often the 90 % intervals of `uncertainty` hold the truth: on simulated streams, and on federations of the lab.

    python -m benchmarks.coverage [--smoke]

Simulated streams have a truth that is known. For the lab, the same federation is trained under many seeds; the truth of
one seed is the mean of the others, and its error is allowed for. Three kinds of chance are told apart: the luck of the
rounds alone (batches, noise, who takes part), that and another first model, and that and other data for every client.
Writes results/coverage.json and docs/certainty.md.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from benchmarks.record import keep
from fedcoast.methods import CoAst
from fedcoast.rounds import Round
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import prepare
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.training import new_model
from fedcoast.stats import bootstrap as uncertainty
from fedcoast.stats.bootstrap import Floats
from fedcoast.stats.participation_adjustment import adjusted_mean

DOCS = Path(__file__).parents[1] / "docs" / "certainty.md"
COMMAND = "python -m benchmarks.coverage"
LEVEL, HORIZON, CLIENTS, DRAWS = 0.90, 2, 5, 1000
REACH = CoAst().dependence_span
EDGE = 1.6448536269514722  # of the middle 90 % of a normal distribution

Luck = Callable[[np.random.Generator, int], Floats]
Fresh = Literal["luck", "first model", "data"]


def independent(rng: np.random.Generator, rounds: int) -> Floats:
    return rng.normal(size=(rounds, CLIENTS))


def moving_average(rng: np.random.Generator, rounds: int) -> Floats:
    noise = rng.normal(size=(rounds + HORIZON, CLIENTS))
    return np.asarray(sum(noise[lag : lag + rounds] for lag in range(HORIZON + 1)))


def autoregressive(rng: np.random.Generator, rounds: int, memory: float) -> Floats:
    noise = rng.normal(size=(rounds + 50, CLIENTS))
    for at in range(1, len(noise)):
        noise[at] += memory * noise[at - 1]
    return noise[50:]


STREAMS: dict[str, tuple[Luck, float]] = {
    "independent": (independent, 1.0),
    "shared over the horizon, MA(2)": (moving_average, 1.0),
    "the same, fading to a quarter": (lambda r, n: moving_average(r, n) * np.geomspace(2, 0.5, n)[:, None], 1.0),
    "skewed (exponential)": (lambda r, n: r.exponential(size=(n, CLIENTS)) - 1, 1.0),
    "heavy tails (Student, 3 degrees)": (lambda r, n: r.standard_t(3, size=(n, CLIENTS)), 1.0),
    "MA(2), seen in half of the rounds": (moving_average, 0.5),
    "MA(2), seen in a quarter of the rounds": (moving_average, 0.25),
    "outlasts the horizon, AR(0.5)": (lambda r, n: autoregressive(r, n, 0.5), 1.0),
    "outlasts the horizon by far, AR(0.8)": (lambda r, n: autoregressive(r, n, 0.8), 1.0),
}


@dataclass(frozen=True)
class Trained:
    """A federation of the lab under many seeds, and what is drawn anew for each."""

    setting: str
    fresh: Fresh
    rounds: int = 42
    participation: float = 1.0
    seeds: int = 24

    @property
    def experiment(self) -> Experiment:
        return Experiment(
            dataset="digits",
            model="mlp",
            setting=self.setting,
            rounds=self.rounds,
            participation=self.participation,
            batch=16,
            learning_rate=0.005,
            augment=False,
            tests=10,
        )

    def federations(self) -> Iterator[Federation]:
        first = self.experiment
        data = prepare(first)
        model = {name: tensor.numpy().copy() for name, tensor in new_model(first, data).state_dict().items()}
        for seed in range(1, self.seeds + 1):
            federation = Federation(replace(first, seed=seed))
            if self.fresh != "data":
                federation.data = data
            if self.fresh == "luck":
                federation.resume(0, model)
            yield federation

    def streams(self) -> Floats:
        """Credits by seed, round and client."""
        return np.stack([credits(federation) for federation in self.federations()])


LAB = (
    Trained("noise", "luck"),
    Trained("noise", "first model"),
    Trained("noise", "data"),
    Trained("noise", "luck", participation=0.6),
    Trained("label-skew", "luck"),
    Trained("label-skew", "data"),
)


def credits(rounds: Iterator[Round] | Federation) -> Floats:
    assessor = CoAst()
    for fl_round in rounds:
        assessor.observe(fl_round)
    table = assessor.assessment().credits
    return np.array([[of.get(client, np.nan) for client in range(CLIENTS)] for of in table.values()])


def ours(table: Floats, seed: int, reach: int) -> Floats:
    return uncertainty.deviations(table, reach, DRAWS, seed)


def of_levels(table: Floats, seed: int, reach: int) -> Floats:
    """Ours, of the adjusted means."""
    return uncertainty.deviations(table, reach, DRAWS, seed, adjusted=True)


def total(table: Floats) -> Floats:
    return np.asarray(np.nansum(table, axis=0))


def one_at_a_time(table: Floats, seed: int, reach: int) -> Floats:
    """Rounds drawn singly: what they share with their neighbours is lost."""
    left = uncertainty.residuals(table, reach + 1)
    rng = np.random.default_rng(seed)
    return np.asarray(rng.multinomial(len(left), np.full(len(left), 1 / len(left)), size=DRAWS) @ left)


def trend_left_in(table: Floats, seed: int, reach: int) -> Floats:
    """The textbook's block bootstrap, which takes credits to be stationary."""
    seen = np.maximum(1, (~np.isnan(table)).sum(axis=0))
    left = np.nan_to_num(table - np.nansum(table, axis=0) / seen)
    counts = uncertainty._times_drawn(np.random.default_rng(seed), DRAWS, len(left), reach + 1)
    return np.asarray(counts @ left)


WAYS: dict[str, tuple[Callable[[Floats, int, int], Floats], Callable[[Floats], Floats]]] = {
    "ours": (ours, total),
    "evened": (of_levels, adjusted_mean),
    "one round at a time": (one_at_a_time, total),
    "trend left in": (trend_left_in, total),
}


class IntervalErrors:
    """Intervals and the errors they were to hold."""

    def __init__(self) -> None:
        self.hits: list[bool] = []
        self.pairs: list[bool] = []
        self.widths: list[float] = []
        self.errors: list[float] = []
        self.unknown = 0

    def note(self, luck: Floats, error: Floats) -> None:
        half = uncertainty.half_widths(luck, LEVEL)
        known = ~np.isnan(half)
        self.unknown += int((~known).sum())
        self.hits += (np.abs(error) <= half)[known].tolist()
        self.widths += half[known].tolist()
        self.errors += error[known].tolist()
        both = known[1:] & known[:-1]
        apart = uncertainty.half_widths(np.diff(luck, axis=1), LEVEL)
        self.pairs += (np.abs(np.diff(error)) <= apart)[both].tolist()

    def figures(self) -> dict[str, float]:
        """Coverage of values and of differences of neighbours; width against that of an oracle who knows the spread."""
        oracle = EDGE * float(np.sqrt(np.mean(np.square(self.errors))))
        return {
            "intervals": len(self.hits),
            "unknown": self.unknown,
            "coverage": round(float(np.mean(self.hits)), 3),
            "coverage of differences": round(float(np.mean(self.pairs)), 3),
            "width": round(float(np.mean(self.widths)) / oracle, 2),
        }


def simulated(luck: Luck, seen: float, rounds: int, runs: int) -> dict[str, dict[str, float]]:
    """Every way on the same streams: a training curve with luck on top."""
    rng = np.random.default_rng(rounds)
    curve = (10 * np.exp(-np.arange(rounds) / 8) + 1)[:, None]
    hits = {way: IntervalErrors() for way in WAYS}
    for run in range(runs):
        noise = luck(rng, rounds)
        present = rng.random(noise.shape) < seen
        table = np.where(present, noise + curve, np.nan)
        for way, result in hits.items():
            draws, estimate = WAYS[way]
            result.note(draws(table, run, HORIZON), estimate(np.where(present, noise, np.nan)))
    return {way: result.figures() for way, result in hits.items()}


def trained(streams: Floats) -> dict[str, dict[str, float]]:
    """Every way on each seed; the truth is what the other seeds gave on average in the rounds this one was seen in."""
    hits = {way: IntervalErrors() for way in WAYS}
    for seed, table in enumerate(streams):
        others = np.delete(streams, seed, axis=0)
        count = float((~np.isnan(others)).sum(axis=0).mean())
        error = (table - np.nanmean(others, axis=0)) / np.sqrt(1 + 1 / count)
        for way, result in hits.items():
            draws, estimate = WAYS[way]
            result.note(draws(table, seed, REACH), estimate(error))
    return {way: result.figures() for way, result in hits.items()}


def as_if_all_were_there(runs: int, rounds: int = 60, seen: float = 0.5) -> list[dict[str, Any]]:
    """How often the ranges of what clients have per round hold what they had, had nobody missed a round."""
    curve, worth = (10 * np.exp(-np.arange(rounds) / 8) + 1)[:, None], 1 + 0.25 * np.arange(CLIENTS)
    rows = []
    for name, expected in (("adds the same to everybody", curve + worth), ("multiplies what all get", curve * worth)):
        rng = np.random.default_rng(rounds)
        mean, level = IntervalErrors(), IntervalErrors()
        for run in range(runs):
            there = rng.random((rounds, CLIENTS)) < seen
            table = np.where(there, expected + moving_average(rng, rounds) / 4, np.nan)
            count = there.sum(axis=0)
            mean.note(ours(table, run, HORIZON) / count, total(table) / count - expected.mean(axis=0))
            level.note(of_levels(table, run, HORIZON), adjusted_mean(table) - expected.mean(axis=0))
        figures = {"mean": mean.figures(), "evened": level.figures()}
        rows.append({"a round": name, "rounds": rounds, "seen": seen, "runs": runs, **figures})
        print(f"a round {name:<30} {_line(figures)}", flush=True)
    return rows


def on_streams(runs: int, lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    rows = []
    for name, (luck, seen) in STREAMS.items():
        for rounds in lengths:
            figures = simulated(luck, seen, rounds, runs)
            rows.append({"luck": name, "rounds": rounds, "runs": runs, **figures})
            print(f"{name:<42}{rounds:>5} rounds  {_line(figures)}", flush=True)
    return rows


def in_the_lab(plans: tuple[Trained, ...]) -> list[dict[str, Any]]:
    rows = []
    for plan in plans:
        began = time.perf_counter()
        figures = trained(plan.streams())
        facts = {
            "setting": plan.setting,
            "drawn anew": plan.fresh,
            "participation": plan.participation,
            "rounds": plan.rounds - CoAst().config.horizon,
            "seeds": plan.seeds,
        }
        rows.append({**facts, "seconds": round(time.perf_counter() - began), **figures})
        print(f"{plan.setting:<12}{plan.fresh:<14}{plan.participation:>4.0%} present  {_line(figures)}", flush=True)
    return rows


def _line(figures: dict[str, dict[str, float]]) -> str:
    return " | ".join(f"{way} {of['coverage']:.1%}, width {of['width']:.2f}" for way, of in figures.items())


def run(smoke: bool) -> None:
    torch.set_num_threads(1)
    if smoke:
        on_streams(4, (20,))
        as_if_all_were_there(4)
        in_the_lab((Trained("noise", "luck", rounds=18, seeds=3),))
        return
    measured = {
        "level": LEVEL,
        "horizon": HORIZON,
        "streams": on_streams(200, (20, 40, 100)),
        "as if all were there": as_if_all_were_there(200),
        "lab": in_the_lab(LAB),
    }
    keep("coverage", COMMAND, measured)
    DOCS.write_text(page(measured), encoding="utf-8")


def page(measured: dict[str, Any]) -> str:
    """docs/certainty.md: the words below with the figures in them."""
    lengths = sorted({row["rounds"] for row in measured["streams"]})
    heads = [f"{rounds} rounds" for rounds in lengths]
    streams = []
    for name in dict.fromkeys(row["luck"] for row in measured["streams"]):
        rows = [row for row in measured["streams"] if row["luck"] == name]
        own = [f"{row['ours']['coverage']:.0%}" for row in rows]
        rest = [f"{rows[-1][way][what]:{form}}" for way, what, form in _RIVALS]
        label = name.replace("seen in", "present in")  # the results have the older words
        streams.append([label, *own, *rest])
        if STREAMS[name][1] < 1:
            streams.append([f"{label}: adjusted", *(f"{row['evened']['coverage']:.0%}" for row in rows), "", ""])
    lab = [
        [
            row["setting"] + ("" if row["participation"] == 1 else f", {row['participation']:.0%} present{suffix}"),
            _FRESH[row["drawn anew"]],
            f"{row[way]['coverage']:.0%}",
            f"{row[way]['coverage of differences']:.0%}",
            f"{row[way]['width']:.2f}",
            f"{row['trend left in']['width']:.1f}" if way == "ours" else "",
        ]
        for row in measured["lab"]
        for way, suffix in (("ours", ""), ("evened", ": adjusted"))
        if way == "ours" or row["participation"] < 1
    ]
    seeds, runs = measured["lab"][0]["seeds"], measured["streams"][0]["runs"]
    return _PAGE.format(
        command=COMMAND,
        runs=runs,
        clients=CLIENTS,
        seeds=seeds,
        longest=lengths[-1],
        rounds=measured["lab"][0]["rounds"],
        level="\n".join(
            f"| {row['a round'].replace('everybody', 'every client')}"
            f" | {row['mean']['coverage']:.0%} | {row['evened']['coverage']:.0%} |"
            for row in measured["as if all were there"]
        ),
        streams=_markdown(["luck", *heads, "one round at a time", "trend left in: width"], streams),
        lab=_markdown(["setting", "drawn again", "covered", "differences", "width", "trend left in: width"], lab),
    )


def _markdown(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_RIVALS = (("one round at a time", "coverage", ".0%"), ("trend left in", "width", ".1f"))
_FRESH = {
    "luck": "the luck of the rounds",
    "first model": "that, and the first model",
    "data": "that, and the data of all clients",
}
_PAGE = """\
# How sure a score is

<!-- Written by `{command}`. Change the words there. -->

A score is a sum of credits, and every credit depends partly on luck: on the batches that were drawn, on noise, on which
other clients took part. `uncertainty` says how much of a ranking is more than luck.

```python
from fedcoast.analysis.uncertainty import uncertainty

sure = uncertainty(assessor.assessment())   # level=0.90, by="total"
print(sure)
sure.intervals["ann"]            # (low, high) for the total; None if ann took part in too few rounds
sure.mean_intervals["ann"]       # the same per round that ann took part in
sure.adjusted_intervals["ann"]   # per round, as if every client had been in every round
sure.rank_intervals["ann"]       # the best and the worst rank ann may really have
sure.prob_above[0, 1]            # the probability that sure.clients[0] really is above sure.clients[1]
sure.groups                      # runs of the ranking that cannot be ordered further
sure.rounds_to_settle            # how many more rounds would probably separate neighbours
```

## What an interval means

A 90 % interval is made to contain, nine times of ten, **the average result of the same federation if the luck of its
rounds were drawn again**: the same clients, the same data, the same participation. With CoAst's default it does so in
some settings only ([measured](#measured-federations-of-the-lab)).

It does **not** say

* what other data would have given. A client with other data is another client;
* what later rounds will give. Credits shrink as a model converges;
* that the method measures what you want to pay for. A score can be precise and irrelevant;
* anything about scores that are not sums of credits (the moving averages of CGSV and ShapFed), or about fewer rounds
  than three blocks (9 for CoAst's default). There is no interval then, and a note says why.

## How it is made

1. **The trend is removed.** Credits fall as a model converges, and that fall is not luck. A curve is fitted for each
   client (up to five terms in the logarithm of the round) and subtracted. This changes the measured spread, not the
   score.
2. **Blocks of neighbouring rounds are resampled**, the same blocks for all clients. Neighbouring rounds share their
   future, so a block has at least horizon + 1 rounds. It has 2 · horizon + 1 where earlier rounds count too, as they do
   by default, because the future of one round is the past of another.
3. **The draws are widened** for two reasons. Fitting a curve and cutting blocks reduce the spread; the correction is
   computed from the estimated correlation of neighbouring rounds. The spread itself is uncertain; Student's t allows
   for that.

Two clients differ if the interval of their difference does not contain 0. The ranking is cut into groups where every
client above the cut differs from every client below it. A chain of neighbours may therefore form a group whose ends
differ. A rank interval counts the clients that are surely above and surely below, with all comparisons holding together
(Mogstad, Romano, Shaikh, Wilhelm, *Inference for Ranks*, 2024).

Where clients missed rounds, `by="adjusted-mean"` ranks and groups them by their
[adjusted means](default.md#clients-that-miss-rounds). An adjusted mean depends on the luck of the other clients too. A
client that shares too few rounds with most of the others has no interval.

Three assumptions remain: what is left of a credit after its slow trend is luck; luck is independent beyond the
horizon; and the factor of a client in CoAst's default would be the same in another run (below: it often is not).

## Measured: simulated streams

Coverage of 90 % intervals, {runs} runs of {clients} clients for each cell, on a steep training curve. Beside ours,
for {longest} rounds: the coverage of intervals that resample single rounds, and the width of intervals without step 1,
as a multiple of the width that the true spread would give. Clients with too few rounds for an interval are not counted.

{streams}

Intervals are too narrow where luck lasts longer than the horizon: the last two rows break the assumption on purpose.

**What would the scores be if no client had missed a round?** That is another question. Adjusted means answer it if a
round adds the same amount to every client; plain means do not. Real credits may behave either way. Coverage of 90 %
ranges per round, with half of the clients present, 60 rounds, clients worth 1 to 2 on the same curve, and MA(2) luck a
quarter as large as above:

| a round | mean | adjusted mean |
| --- | ---: | ---: |
{level}

## Measured: federations of the lab

Digits, five clients, {rounds} valued rounds, `CoAst()`. Each federation is trained under {seeds} seeds; the truth for
one seed is the average of the other seeds, over the rounds that a client took part in. "Covered" is the share of
intervals that contain the truth, "differences" the same for differences between neighbours. "Width" is relative to the
real spread from seed to seed: 1 is exact, more is cautious.

{lab}

Intervals of one client hold the luck of the rounds alone, and the factors that CoAst's default gives a client for its
place on the [line](default.md#what-it-does) are taken as known. Where every client is always there and differs in noise
only, they cover what other runs give, or nearly. **They are too narrow where clients miss rounds and under label
skew**: there another run finds other factors. Differences between neighbours are not covered as often as promised
either. Comparisons, verdicts and ranks are therefore made with twice these widths (`METHOD_MARGIN`), and label skew is
warned of.

    {command}

repeats all of this (about ten minutes on one core); results/coverage.json has the figures.

## From uncertainty to verdicts and rewards

Verdicts use ranges that hold for all clients at once (`joint_intervals`): with 90 % confidence not one is wrong.
*helps*: the whole range lies above zero; *hurts*: below; *idle*: the client returned the model unchanged in most
rounds; *cannot tell*: everything else. One rule decides for all pairs whether two clients differ (`reach`), so ranks,
groups and ties never contradict each other. `METHOD_MARGIN` in `fedcoast.analysis.uncertainty` doubles all of
these, because the method errs beyond the luck of the rounds ([why 2](default.md#how-well),
[what it does to claims](../results/claims.md)); [verdicts](verdicts.md) has what came of it on new seeds.
[Rewards](rewards.md) pay by the same ranges.

## Orders that are never claimed

No number of rounds shows an error that repeats itself in every round. Where CoAst's default finds that the clients lie
along a line ([the default](default.md#what-it-does)), it says which orders the line leaves open, and nothing claims
them:

* **two clients at about the same place on the line**, less than 0.2 standard deviations apart: in the training bank the
  two sharpest clients of the blur setting are in the wrong order in most runs, with tight ranges;
* **every pair, where neither end is clearly better**: what decides the end changes by less than 2 % of the mean
  agreement for each standard deviation along the line, or in the other direction in one half of the rounds.

`Assessment.unordered` lists these pairs. They count as ties in ranks, groups and rewards, and answers and reports name
them. The limits were set on the training bank: all claims in the blur setting are right there
([by setting](../results/claims.md)).
"""


if __name__ == "__main__":
    run("--smoke" in sys.argv)
