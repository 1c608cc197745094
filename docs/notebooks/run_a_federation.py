# %% [markdown]
# # Run a federation
#
# You operate a server of federated learning and want to know which sites help. This tutorial trains four hospitals on
# a public table of heart disease, watches the rounds, and reads the answer. It takes a few seconds and no download.

# %%
from fedcoast import CoAst, Recorder, plotting
from fedcoast.simulation.datasets.heart import load_heart
from fedcoast.simulation.site_federation import SiteExperiment, SiteFederation

hospitals = load_heart()
{name: len(hospitals.rows_of(site)) for site, name in enumerate(hospitals.sites)}

# %% [markdown]
# ## Watch the rounds
#
# A round is what the server saw: the model before, an upload from each site, the model after. Show it to an assessor, and
# to a recorder if you want to ask again later. On Flower, `Observed(FedAvg(), CoAst())` does this for you.

# %%
assessor, recorder = CoAst(), Recorder("run")
for fl_round in SiteFederation(hospitals, SiteExperiment(rounds=30)):
    assessor.observe(fl_round)
    recorder.observe(fl_round)
recorder.close()

assessment = assessor.assessment()
assessment

# %% [markdown]
# ## How sure is that?
#
# The lines are 90 % intervals. Sites whose intervals overlap widely should not be paid differently on this evidence.

# %%
plotting.ranking(assessment);

# %%
plotting.timeline(assessment);

# %% [markdown]
# ## As a table
#
# One row a site, one column a round.

# %%
assessment.to_frame().iloc[:, :8]

# %% [markdown]
# ## What it does not say
#
# A low score means that a site's updates pointed elsewhere than the others went. It does not mean that the site is
# useless: a rare site may be the only one that knows its patients. See
# [Federations that nature made](../natural-federations.md) before you act on a score.
