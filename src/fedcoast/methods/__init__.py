"""One published method, one file. METHODS names them all, with what each needs."""

from functools import partial

from fedcoast.methods.base import Assessor
from fedcoast.methods.baselines.chance import Chance
from fedcoast.methods.baselines.constant import Constant
from fedcoast.methods.baselines.size import Size
from fedcoast.methods.coalition.banzhaf import Banzhaf
from fedcoast.methods.coalition.beta_shapley import BetaShapley
from fedcoast.methods.coalition.comfedsv import ComFedSV
from fedcoast.methods.coalition.dig_fl import DIGFL
from fedcoast.methods.coalition.fedsv import FedSV
from fedcoast.methods.coalition.gtg import GTGShapley
from fedcoast.methods.coalition.individual import Individual
from fedcoast.methods.coalition.least_core import LeastCore
from fedcoast.methods.coalition.leave_one_out import LeaveOneOut
from fedcoast.methods.coalition.multi_round import MultiRound
from fedcoast.methods.coalition.one_round import OneRound
from fedcoast.methods.coalition.shapley import Shapley
from fedcoast.methods.coalition.tmc import TMCShapley
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.coast.coast import CoAst
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.methods.options import MethodConfig
from fedcoast.methods.registry import METHODS, Method, MethodRegistry, Need, register, register_method
from fedcoast.methods.similarity.cgsv import CGSV
from fedcoast.methods.similarity.cosine import Cosine
from fedcoast.methods.similarity.fed_pca import FedPCA
from fedcoast.methods.similarity.fedce_novelty import FedCENovelty
from fedcoast.methods.similarity.norm import Norm
from fedcoast.methods.similarity.shapfed import ShapFed
from fedcoast.methods.similarity.spectralfed import SpectralFed
from fedcoast.methods.similarity.spectralfuse import SpectralFuse

_BUILT_IN: dict[str, Method] = {
    "coast": Method(
        CoAst,
        "agreement of a client's votes with the other clients' next votes, less 42% of that with their last ones",
        config=CoAstConfig,
    ),
    "fed-pca": Method(FedPCA, "how well quantised updates predict those of peers"),
    "fed-pca-exact": Method(partial(FedPCA, penalty="exact"), "Fed-PCA with the exact penalty instead of a drawn one"),
    "cgsv": Method(CGSV, "moving average of the cosine with the common update"),
    "cgsv-exact": Method(partial(CGSV, game="exact"), "CGSV with the Shapley value of its cosine game"),
    "shapfed": Method(ShapFed, "moving average of the class-wise cosine of the head's update", ("classifier head",)),
    "spectralfed": Method(SpectralFed, "how many directions the update of the last layer uses", ("classifier head",)),
    "spectralfuse": Method(
        SpectralFuse, "SpectralFed's entropy and class-wise cosines, merged by a filter", ("classifier head",)
    ),
    "fedce-novelty": Method(FedCENovelty, "how far a client's updates point elsewhere than the others'"),
    "cosine": Method(Cosine, "sum of cosines with the mean update"),
    "norm": Method(Norm, "sum of the lengths of the updates"),
    "size": Method(Size, "the weights of the aggregation, usually the amount of data", ("weights",)),
    "shapley": Method(
        Shapley, "what a client adds to the coalitions of a round, every size with the same weight", ("utility",)
    ),
    "fedsv": Method(FedSV, "Shapley value among the clients that answered in a round", ("utility",)),
    "comfedsv": Method(ComFedSV, "Shapley value of every round, with missing coalitions completed", ("utility",)),
    "tmc-shapley": Method(TMCShapley, "Shapley value from random orders of joining, cut short", ("utility",)),
    "gtg-shapley": Method(GTGShapley, "Shapley value from guided orders of joining, cut short", ("utility",)),
    "multi-round": Method(MultiRound, "Shapley share of what each round gained (MR)", ("utility",)),
    "lambda-multi-round": Method(
        partial(MultiRound, decay=0.95), "the same with later rounds counting for less (λ-MR)", ("utility",)
    ),
    "one-round": Method(OneRound, "Shapley value of the training replayed by coalitions (OR)", ("utility",)),
    "banzhaf": Method(
        Banzhaf, "what a client adds to the coalitions of a round, every coalition with the same weight", ("utility",)
    ),
    "beta-shapley": Method(
        BetaShapley, "what a client adds to the coalitions of a round, small ones first", ("utility",)
    ),
    "least-core": Method(LeastCore, "payments that keep the objections of all coalitions small", ("utility",)),
    "leave-one-out": Method(LeaveOneOut, "what the round's model loses without the client", ("utility",)),
    "individual": Method(Individual, "what the round's model would gain from the client alone", ("utility",)),
    "dig-fl": Method(DIGFL, "how much a client's update lowers the validation loss, to first order", ("gradient",)),
    "chance": Method(Chance, "nothing: a random number for each client"),
    "constant": Method(Constant, "nothing: the same for each client"),
}
for _name, _method in _BUILT_IN.items():
    register_method(_name, _method)

__all__ = [
    "CGSV",
    "DIGFL",
    "METHODS",
    "Assessor",
    "Banzhaf",
    "BetaShapley",
    "Chance",
    "CoAst",
    "CoAstConfig",
    "ComFedSV",
    "Constant",
    "Cosine",
    "Evaluator",
    "FedCENovelty",
    "FedPCA",
    "FedSV",
    "GTGShapley",
    "Individual",
    "LeastCore",
    "LeaveOneOut",
    "Method",
    "MethodConfig",
    "MethodRegistry",
    "MultiRound",
    "Need",
    "Norm",
    "OneRound",
    "ShapFed",
    "Shapley",
    "Size",
    "SpectralFed",
    "SpectralFuse",
    "TMCShapley",
    "Utility",
    "register",
    "register_method",
]
