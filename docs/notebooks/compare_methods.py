# %% [markdown]
# # Compare methods
#
# You study contribution assessment and want several methods on the same rounds. Train once, ask many times.

# %%
import fedcoast
from fedcoast import METHODS, Recorder, compare
from fedcoast.simulation.datasets.heart import load_heart
from fedcoast.simulation.site_federation import (
    SiteExperiment,
    SiteFederation,
    retraining_shapley,
)

experiment = SiteExperiment(rounds=20, seed=1)
hospitals = load_heart()
with Recorder("run") as recorder:
    for fl_round in SiteFederation(hospitals, experiment):
        recorder.observe(fl_round)

run = fedcoast.load("run")
run

# %% [markdown]
# ## Every method that needs no validation data

# %%
data = {"utility", "gradient"}  # what a method may need of validation data
names = [name for name, method in METHODS.items() if not data & set(method.needs)]
answers = compare(run, {name: METHODS[name].make() for name in names})
print(answers)

# %% [markdown]
# ## Against the truth
#
# For four sites the truth can be had: train all sixteen coalitions, and take the Shapley value of their losses.

# %%
truth = retraining_shapley(hospitals, experiment)
truth

# %%
import pandas as pd

rows = {}
for name in names:
    answer = run.assess(METHODS[name].make())
    rows[name] = {judge: answer.spearman(values) for judge, values in truth.items()}
pd.DataFrame(rows).T.round(2)

# %% [markdown]
# One training says little: with four sites, chance alone has a standard deviation of 0.58.
# [Federations that nature made](../natural-federations.md) has the same table over 20 seeds.
