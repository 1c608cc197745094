"""Figures of an answer, with matplotlib (`pip install 'fedcoast[plots]'`): each function draws on one pair of axes.

    from fedcoast import plotting
    plotting.ranking(assessment)          # scores with their intervals
    plotting.timeline(assessment)         # credit added up over the rounds
    plotting.heat_map(assessment)         # credit by round and client

They return the axes; give `ax=` to draw into a figure of your own. `assessment.plot()`,
`assessment.plot("timeline")` and `assessment.plot("heat_map")` do the same.
"""

from typing import TYPE_CHECKING

import numpy as np

from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.errors import require
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HELPS, HURTS, LINE = "#00695c", "#b23c17", "#37474f"


def ranking(assessment: Assessment, level: float = 0.9, ax: "Axes | None" = None) -> "Axes":
    """A bar for each client, best on top; lines are intervals at `level`, where there are rounds enough for them."""
    axes = _axes(ax, height=0.5 + 0.35 * len(assessment.ranking))
    clients = assessment.ranking[::-1]
    values = [assessment.scores[client] for client in clients]
    axes.barh(range(len(clients)), values, color=[HELPS if value >= 0 else HURTS for value in values], alpha=0.6)
    intervals = uncertainty(assessment, level=level).intervals
    for place, client in enumerate(clients):
        if (interval := intervals[client]) is not None:
            axes.plot(interval, (place, place), color=LINE, linewidth=2, solid_capstyle="butt")
    axes.set_yticks(range(len(clients)), [_name(client) for client in clients])
    axes.axvline(0, color=LINE, linewidth=0.8)
    axes.set_xlabel(f"score ({assessment.method}); lines: {level:.0%} intervals")
    return axes


def timeline(assessment: Assessment, ax: "Axes | None" = None) -> "Axes":
    """A line for each client: its credit added up over the rounds that count. Absences are flat."""
    axes = _axes(ax)
    numbers, clients = assessment.counted, assessment.ranking
    sums = np.nancumsum(assessment.credits_of(clients), axis=0)
    for column, client in enumerate(clients):
        axes.plot(numbers, sums[:, column], label=_name(client))
    axes.axhline(0, color=LINE, linewidth=0.8)
    axes.set_xlabel("round")
    axes.set_ylabel("credit so far")
    axes.legend(frameon=False)
    return axes


def heat_map(assessment: Assessment, ax: "Axes | None" = None) -> "Axes":
    """A cell for each client and round: green helped, red hurt, empty was absent."""
    axes = _axes(ax, height=0.8 + 0.3 * len(assessment.ranking))
    clients, numbers = assessment.ranking, assessment.counted
    table = assessment.credits_of(clients).T
    bound = float(np.nanmax(np.abs(table), initial=0)) or 1.0
    image = axes.imshow(table, aspect="auto", cmap="RdYlGn", vmin=-bound, vmax=bound, interpolation="nearest")
    axes.set_yticks(range(len(clients)), [_name(client) for client in clients])
    step = max(1, len(numbers) // 10)
    axes.set_xticks(range(0, len(numbers), step), [str(number) for number in numbers[::step]])
    axes.set_xlabel("round")
    if axes.figure is not None:
        axes.figure.colorbar(image, ax=axes, label="credit")
    return axes


def _axes(ax: "Axes | None", height: float = 4.0) -> "Axes":
    require("matplotlib", extra="plots")
    pyplot = require("matplotlib.pyplot", extra="plots")
    drawn: Axes = pyplot.subplots(figsize=(7, max(1.5, height)), layout="constrained")[1] if ax is None else ax
    return drawn


def _name(client: object) -> str:
    """A dollar sign would start a formula."""
    return printable(str(client)).replace("$", r"\$")
