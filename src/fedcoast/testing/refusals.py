"""Promises of the contract about what an assessor refuses."""

import inspect
from collections.abc import Collection, Sequence
from dataclasses import replace

from fedcoast.errors import BadRound, BadSetting
from fedcoast.rounds.round import Round
from fedcoast.testing.demands import BrokenContract, Make, Nonsense, demand, raises


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
