"""The ranking with its uncertainty, for a terminal."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from fedcoast.methods.text import printable

if TYPE_CHECKING:
    from fedcoast.analysis.uncertainty import Uncertainty


def table(uncertainty: "Uncertainty") -> Table:
    """Ranks, intervals and groups, a row for each client."""

    result = Table("ranks", "client", uncertainty.by, f"{uncertainty.level:.0%} interval", "seen", "group", "to settle")
    for place in (0, 2, 3, 4, 6):
        result.columns[place].justify = "right"
    numbers = {client: place + 1 for place, group in enumerate(uncertainty.groups) for client in group}
    below = dict(pairwise(uncertainty.clients))
    for client in uncertainty.clients:
        best, worst = uncertainty.rank_intervals[client]
        interval = uncertainty.of_values[client]
        more = uncertainty.rounds_to_settle[client, below[client]] if client in below else None
        result.add_row(
            f"{best}" if best == worst else f"{best}–{worst}",
            Text(printable(client)),
            f"{uncertainty.values[client]:,.6g}",
            "–" if interval is None else f"{interval[0]:,.4g} to {interval[1]:,.4g}",
            f"{uncertainty.coverage[client]:.0%}",
            str(numbers.get(client, "–")),
            "–" if more is None else "never" if more == math.inf else f"{more:,.0f}" if more else "",
        )
    caption = "group: cannot be told apart\nto settle: more rounds to tell it from the next"
    result.caption = uncertainty.note or caption
    return result
