"""How often verdicts are wrong: simulated federations of digits, judged by the known truth.

    python -m benchmarks.verdicts [--smoke] [--runs FOLDER]

Every setting of the lab, six clients, 40 rounds, FedAvg, the default assessor; seeds that nothing was chosen by. Half
of the federations are honest, and in the other half client 2 returns the model it was sent. Two more groups plant harm:
client 2 flips the sign of its update, or trains on flipped labels. Finished runs in FOLDER are not trained again.
Writes results/verdicts.json and docs/verdicts.md.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.record import RESULTS, keep
from fedcoast import CoAst, replay
from fedcoast.analysis import disagreement as limits
from fedcoast.analysis.disagreement import Disagreement, UpdateAgreement
from fedcoast.analysis.uncertainty import Uncertainty, uncertainty
from fedcoast.analysis.verdicts import Verdict, verdicts
from fedcoast.methods.assessment import Assessment
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset
from fedcoast.simulation.settings import SETTINGS
from fedcoast.simulation.simulation import simulate

NAME, COMMAND = "verdicts", "python -m benchmarks.verdicts"
PAGE = RESULTS.parent / "docs" / "verdicts.md"
CLIENTS, ATTACKER = 6, 2
HONEST_SEEDS, RIDER_SEEDS, HARM_SEEDS = (60, 61, 62), (63, 64, 65), (66, 67, 68)
HARM = ("sign-flip", "label-flip")
KINDS = {
    "honest": "honest",
    "idle": "returns the model it was sent",
    "sign-flip": "flips the sign of its update",
    "label-flip": "trains on flipped labels",
    "labels": "more than half of its labels wrong",
}
MOSTLY_WRONG = 0.5  # a client with more wrong labels than this does harm by construction


def experiments(smoke: bool) -> Iterator[Experiment]:
    rounds = {"rounds": 18} if smoke else {}
    for setting in ("noise",) if smoke else SETTINGS:
        for seed in HONEST_SEEDS[:1] if smoke else HONEST_SEEDS:
            yield preset("quick", "digits", "mlp", setting=setting, seed=seed, clients=CLIENTS, **rounds)
        for seed in RIDER_SEEDS[:1] if smoke else RIDER_SEEDS:
            yield _attacked(setting, "zero", seed, rounds)
    for attack in () if smoke else HARM:
        for seed in HARM_SEEDS:
            yield _attacked("even", attack, seed, rounds)


def _attacked(setting: str, attack: str, seed: int, rounds: dict[str, int]) -> Experiment:
    changes: dict[str, Any] = {"setting": setting, "seed": seed, "clients": CLIENTS, **rounds}
    return preset("quick", "digits", "mlp", attack=attack, attacker=ATTACKER, **changes)


def true_kind(experiment: Experiment, client: int) -> str:
    """The true kind of a client: "idle", "harm" or "honest"."""
    if client == experiment.attacker:
        return "idle" if experiment.attack == "zero" else "harm"
    severity = 4 * client / (experiment.clients - 1)
    wrong = float(SETTINGS[experiment.setting].wrong_labels) * severity
    return "harm" if wrong > MOSTLY_WRONG else "honest"


def wrong(kind: str, verdict: Verdict) -> bool:
    """Whether a verdict claims what is not true; "cannot tell" claims nothing.

    >>> wrong("honest", "hurts"), wrong("honest", "helps"), wrong("harm", "helps"), wrong("idle", "cannot tell")
    (True, False, True, False)
    """
    right = {"honest": "helps", "harm": "hurts", "idle": "idle"}[kind]
    return verdict not in ("cannot tell", right)


def pairs(experiment: Experiment, sure: Uncertainty) -> Counter[str]:
    """Of the pairs of honest clients whose order is known: how many are told apart, and how many the wrong way."""
    setting, found = SETTINGS[experiment.setting], Counter[str]()
    place = {client: at for at, client in enumerate(sure.clients)}
    honest = [client for client in range(experiment.clients) if client != experiment.attacker]
    for better, worse in combinations(honest, 2):  # the lower number is the better client, where there is an order
        tie = experiment.setting == "even" or (experiment.setting == "duplicates" and better == CLIENTS - 2)
        if not (setting.ordered or tie):
            continue
        lead = sure.values[better] - sure.values[worse]
        decided = bool(abs(lead) > sure.reach[place[better], place[worse]])
        found["pairs"] += 1
        found["told apart"] += decided
        found["wrong"] += decided and (tie or lead < 0)
    return found


def errs(one: dict[str, Any]) -> bool:
    """Whether two clients are told apart wrongly anywhere in a federation."""
    return bool(one["pairs"].get("wrong"))


def judged(experiment: Experiment, assessment: Assessment, update_agreement: UpdateAgreement) -> dict[str, Any]:
    sure = uncertainty(assessment)
    found = verdicts(assessment, sure)
    by_kind: dict[str, Counter[str]] = {}
    for client, verdict in found.items():
        assert isinstance(client, int)
        by_kind.setdefault(true_kind(experiment, client), Counter())[verdict] += 1
    return {
        "setting": experiment.setting,
        "told of labels": bool(update_agreement.sentences()),
        "attack": experiment.attack,
        "seed": experiment.seed,
        "verdicts": {kind: dict(counts) for kind, counts in by_kind.items()},
        "pairs": dict(pairs(experiment, sure)),
    }


def run(smoke: bool, runs: Path | None = None) -> None:
    torch.set_num_threads(1)
    with TemporaryDirectory() as temporary:
        measured = []
        for experiment in experiments(smoke):
            folder = (runs or Path(temporary)) / experiment.name
            simulate(Federation(experiment), folder)
            assessor, disagreement = CoAst(), Disagreement()
            for fl_round in replay(folder):
                assessor.observe(fl_round)
                disagreement.observe(fl_round)
            measured.append(judged(experiment, assessor.assessment(), disagreement.summary()))
            print(measured[-1], flush=True)
    if not smoke:
        settings = dict(assessor.settings)
        keep(NAME, COMMAND, {"settings": settings, "clients": CLIENTS, "runs": measured})
        PAGE.write_text(page(measured, settings), encoding="utf-8")


def page(measured: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    total: dict[str, Counter[str]] = {}
    for one in measured:
        for kind, counts in one["verdicts"].items():
            harm = one["attack"] if one["attack"] in HARM else "labels"
            total.setdefault(harm if kind == "harm" else kind, Counter()).update(counts)
    names = ("helps", "hurts", "idle", "cannot tell")
    rows = []
    for group, words in KINDS.items():
        counts, kind = total[group], group if group in ("honest", "idle") else "harm"
        bad = sum(count for verdict, count in counts.items() if wrong(kind, verdict))  # type: ignore[arg-type]
        rows.append([words, str(counts.total()), *(str(counts[name]) for name in names), f"{bad / counts.total():.1%}"])
    by_setting = []
    for setting in SETTINGS:
        of = [one for one in measured if one["setting"] == setting and one["attack"] not in HARM]
        honest = sum((Counter(one["verdicts"]["honest"]) for one in of), Counter[str]())
        found = sum((Counter(one["pairs"]) for one in of), Counter[str]())
        claimed = found["told apart"]
        right = f"{(claimed - found['wrong']) / claimed:.0%}" if claimed else "–"
        erring = f"{sum(map(errs, of))} of {len(of)}"
        order = [str(found["pairs"]), str(claimed), right, erring] if found["pairs"] else ["no true order", *"–––"]
        decided = f"{sum(one['told of labels'] for one in of)} of {len(of)}"
        by_setting.append([setting, str(len(of)), f"{honest['hurts']} of {honest.total()}", *order, decided])
    misled = [one for one in measured if one["setting"] == "label-noise" and one["verdicts"]["harm"].get("helps")]
    ordered = [one for one in measured if one["attack"] not in HARM and one["pairs"]]
    chosen = "\n    ".join(f"{name}={value!r}" for name, value in settings.items())
    return _TEXT.format(
        runs=len(measured),
        clients=CLIENTS,
        kinds=_table(["true kind", "clients", *names, "wrong"], rows),
        settings=_table(
            [
                "setting",
                "federations",
                "honest called hurts",
                "pairs",
                "told apart",
                "of these right",
                "federations with a wrong pair",
                "warned of labels",
            ],
            by_setting,
        ),
        misled=len(misled),
        warned=sum(one["told of labels"] for one in misled),
        erring=sum(map(errs, ordered)),
        ordered=len(ordered),
        chosen=chosen,
        command=COMMAND,
        early=limits.EARLY,
        late=limits.LATE,
        lasting=limits.LASTING,
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


_TEXT = """# How often verdicts are wrong

<!-- Written by `python -m benchmarks.verdicts`. Change the words there. -->

{runs} federations learn scikit-learn's digits: {clients} clients, 40 rounds, FedAvg, every setting of the lab, seeds
60 to 68, which were used for nothing else. The true kind of each client is known, so a verdict can be wrong. "Cannot
tell" claims nothing and is never wrong.

{kinds}

*Honest* clients train on their own data, however poor; "hurts" and "idle" are wrong for them. Of the last three "helps"
is counted as wrong. **Scores find labels that are wrong in one direction (flipped), not labels that
are wrong at random**: such a client may even help. Federations where such a client is told "helps": {misled};
with a [warning](#warnings-beside-a-verdict) of wrong labels in the same answer: {warned}. The warning is about
every verdict of that answer, the clean clients' too. Nor does honest training prove that a client helps the model:
that would need retraining without it, which these tables do not do.

## Order

Two honest clients are told apart when their ranges say so, all pairs at once, at 90 %. Right means in the true
order; where clients are equal (even, the twins of duplicates), telling them apart is wrong.

{settings}

At 90 % for all pairs at once, luck may tell a pair apart wrongly in one federation of ten. A pair is wrong in
{erring} of {ordered}. Several in one setting are more than luck: ranges know the luck of the rounds and have a margin
for the method's error, but where the method itself ranks against the true order, they can be confidently wrong: see
[what it does not say](certainty.md#what-an-interval-means).

## Warnings beside a verdict

`fedcoast assess` and `rewards`, reports and the live page show the warnings that apply. Assessments on a Ray cluster,
and answers in files, have no uploads to look at, so they cannot warn of labels:

| blind spot | warned of when |
| --- | --- |
| too early | fewer scored rounds than ranges need; said first |
| possibly wrong labels | updates agree neither early (mean cosine below {early}) nor late (below {late}) |
| label skew | a client's pull on the last layer resembles its last one (median cosine above {lasting}) |
| unhealthy model | more than a tenth of a layer is moved by nobody |
| one client | nobody to compare with |
| all scores tie, or very few votes | small models; a larger `keep` helps |
| differences instead of models | integrations refuse them or read them as such; elsewhere most uploads near zero |

The signs of wrong labels and label skew are read off uploads (`fedcoast.analysis.disagreement`). Their limits were set
on digits with other seeds, so the last column of the table above says little about other data.

    {command}

makes the tables again and writes results/verdicts.json, with processor and commit. Settings:

    {chosen}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="two short federations: does it run")
    parser.add_argument("--runs", type=Path, help="keep the trained federations here")
    chosen = parser.parse_args(sys.argv[1:])
    run(chosen.smoke, chosen.runs)
