"""SV: a client's Shapley value in the game each round is, summed over the rounds; the yardstick of the field.

    credit   φ_i^t = Σ_{S∌i} |S|!·(N−|S|−1)! / N! · [v_t(S∪i) − v_t(S)]
    score    φ_i = Σ_t φ_i^t;  a round's credits add up to v_t(N) − v_t(∅), what the round gained

Paper: the baseline "SV" of CoAst (Wu et al., ACM MM 2024, section 5.3), which cites Wang, Dang, Zhou, "Measure
Contribution of Participants in Federated Learning", IEEE Big Data 2019. With everybody present it is FedSV (`fedsv`).
Needs: a utility; a round of absent clients is the game of those who answered.
Cost: 2^N evaluations a round.
Deviations: the cited paper has Shapley values for vertical federations only, and deletion for horizontal ones;
CoAst's use is this one; its public code computes something else (paper/research_code). Renormalised coalitions
break the null player: a client whose update is zero waters down the others and scores below zero;
`denominator="fixed"` gives it 0 exactly.
"""

from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, shapley


class Shapley(GameAssessor[CoalitionConfig]):
    """Options are those of `CoalitionConfig`; `utility` and `force` as in `fedcoast.methods.coalition.game`."""

    method = "shapley"

    def _values(self, game: RoundGame) -> Values:
        return shapley(game.table())
