"""Tensors on other devices: ballots are cast where the tensors are, and only two bits a parameter come over.

round = ballot_round(number, start=model, local={client: state_dict, …}, end=after, keep=0.10)
CoAst(keep=0.10).observe(fl_round)
"""
# ruff: noqa: E402

from fedcoast.errors import require

require("torch", extra="lab")

from fedcoast.integrations.torch.casting import cast, packed
from fedcoast.integrations.torch.rounds import ballot_round

__all__ = ["ballot_round", "cast", "packed"]
