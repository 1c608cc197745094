# %% [markdown]
# # Write a method
#
# A method is a class that reads one round at a time and returns credits. Everything else (partial participation,
# quarantine of bad uploads, saving, ranking, JSON) comes with the base class.

# %%
import numpy as np

from fedcoast import METHODS, Assessor, compare
from fedcoast.simulation.datasets.heart import load_heart
from fedcoast.simulation.site_federation import SiteExperiment, SiteFederation
from fedcoast.testing import check_assessor


class Alignment(Assessor):
    """The projection of a client's update on the way that the global model went."""

    method = "alignment"

    @property
    def settings(self):
        return {}

    def _step(self, view, state):
        way = self._flat(view.schema, view.end, view.start)
        length = np.linalg.norm(way) or 1.0
        credits = {}
        for client, model in view.uploads():  # one upload in memory at a time
            credits[client] = float(self._flat(view.schema, model, view.start) @ way / length)
        return {view.number: credits}, state

    @staticmethod
    def _flat(schema, after, before):
        names = [layer.name for layer in schema.trainable]
        steps = [np.float64(after[name]) - before[name] for name in names]
        return np.concatenate([step.ravel() for step in steps])


# %% [markdown]
# ## Does it keep the contract?
#
# `check_assessor` tries what a server may do to a method: clients that leave and return, twins, NaN uploads, restarts. It
# raises with the first promise that is not kept.

# %%
check_assessor(Alignment)
print("Alignment keeps the contract of an assessor")

# %% [markdown]
# ## Beside other methods

# %%
rounds = list(SiteFederation(load_heart(), SiteExperiment(rounds=20)))
methods = {name: METHODS[name].make() for name in ("coast", "cosine")}
print(compare(rounds, {"alignment": Alignment(), **methods}))

# %% [markdown]
# [A method of your own](../own-method.md) lists the promises, and says how to add a method to fedcoast or keep it in a
# package of yours.
