# %% [markdown]
# # Check an answer
#
# Somebody hands you a folder and a claim. You want to know whether the folder is as it was recorded, and whether the
# scores follow from it.

# %%
from pathlib import Path

from fedcoast import CoAst, Recorder
from fedcoast.audit import verify
from fedcoast.simulation.datasets.heart import load_heart
from fedcoast.simulation.site_federation import SiteExperiment, SiteFederation

# %% [markdown]
# ## The recording
#
# The recorder writes each round under a chain of hashes, and with `ledger=` the credits that were final by then.

# %%
assessor = CoAst()
with Recorder("run", ledger=assessor) as recorder:
    for fl_round in SiteFederation(load_heart(), SiteExperiment(rounds=12)):
        assessor.observe(fl_round)
        recorder.observe(fl_round)
    head = recorder.head
Path("claim.json").write_text(assessor.assessment().to_json())
print("head of the chain:", head[:16], "…")

# %% [markdown]
# Keep the head where nobody who can write to the folder can change it: in a mail, in a ticket, on paper.
#
# ## The check
#
# `verify` recomputes every hash, and the scores behind every claim. `fedcoast verify RUN --head …` is the same in a shell.

# %%
found = verify("run", ["claim.json"], head=head)
print("agrees:", found.agrees)
print(*found.confirmed, sep="\n")

# %% [markdown]
# ## A claim that does not follow
#
# One score is raised by one.

# %%
claim = assessor.assessment()
best = claim.ranking[0]
forged = claim.to_json().replace(f"{claim.scores[best]}", f"{claim.scores[best] + 1}", 1)
Path("forged.json").write_text(forged)
found = verify("run", ["forged.json"], head=head)
print("agrees:", found.agrees)
print(*found.findings, sep="\n")

# %% [markdown]
# ## A byte that was changed

# %%
file = sorted(Path("run/rounds").glob("*/client-000000.safetensors"))[3]
data = bytearray(file.read_bytes())
data[-1] ^= 1
file.chmod(0o600)
file.write_bytes(data)
found = verify("run", head=head)
print("agrees:", found.agrees)
print(*found.findings, sep="\n")

# %% [markdown]
# [Audit](../audit.md) says what this proves, and what it does not.
