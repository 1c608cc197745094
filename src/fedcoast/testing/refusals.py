"""Promises of the contract about what an assessor refuses, and what a refused upload costs."""

import inspect
from collections.abc import Collection, Sequence
from dataclasses import replace

from fedcoast.errors import BadRound, BadSetting, BadUpload
from fedcoast.rounds.round import Round
from fedcoast.testing.altered_rounds import with_nan, with_round, without_clients
from fedcoast.testing.demands import BrokenContract, Make, Nonsense, demand, demand_same, quiet, raises, show


def rounds_come_in_order(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    assessor.observe(rounds[0])
    demand(raises(BadRound, lambda: assessor.observe(rounds[0])), "a round shown twice must raise a BadRound")


def methods_that_need_uploads_refuse_ballots(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    refused = raises(BadSetting, lambda: assessor.observe(replace(rounds[0], ballot_keep=0.1)))
    demand(
        refused or assessor.takes_ballots,
        "a round of ballots alone must raise a BadSetting; a method that can do with them says takes_ballots = True",
    )


def bad_settings_are_refused(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    takes = inspect.signature(make).parameters
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    # What a preset fixes is a setting, and no option.
    options = [option for option in make().settings if option in takes or anything]
    for option in (*options, "bad_uploads"):
        try:
            make(**{option: Nonsense()})
        except BadSetting as error:
            named = option in str(error) or option == "bad_uploads"
            demand(
                named and "Nonsense" in str(error),
                f"the error for a bad {option} must name it and what came; it says: {error}",
            )
        except Exception as error:
            raise BrokenContract(
                f"a bad {option} must raise a BadSetting; it raised {type(error).__name__}: {error}"
            ) from error
        else:
            raise BrokenContract(f"an impossible value for {option} must raise a BadSetting; it was taken")


def a_bad_upload_costs_only_its_client(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    client, bad = rounds[0].clients[0], rounds[1]
    if "full participation" in needs:
        return
    with quiet():
        answer = show(make(), with_round(rounds, with_nan(bad, client)))
    absent = show(make(), with_round(rounds, without_clients(bad, {client})))
    demand(client in answer.quarantined.get(bad.number, {}), f"{client!r} sent NaN and must be among the quarantined")
    has_credit = client in answer.credits.get(bad.number, {})
    demand(not has_credit or make().credits_absent, "a bad upload earns no credit")
    same = (answer.scores, answer.credits, answer.rounds_scored) == (
        absent.scores,
        absent.credits,
        absent.rounds_scored,
    )
    demand(same, f"a bad upload must count as if its client were absent; got {answer.credits}, want {absent.credits}")


def a_round_is_taken_whole_or_not_at_all(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor, spoiled = make(bad_uploads="raise"), with_nan(rounds[1], rounds[1].clients[-1])
    assessor.observe(rounds[0])
    demand(raises(BadUpload, lambda: assessor.observe(spoiled)), 'bad_uploads="raise" must raise a BadUpload')
    for fl_round in rounds[1:]:
        assessor.observe(fl_round)
    whole = show(make(bad_uploads="raise"), rounds)
    demand_same(
        assessor.assessment(), whole, "a round that raised must leave nothing behind when it is shown again, mended"
    )
