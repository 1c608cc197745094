"""CoAst as the public CoAst research code computes it."""

from typing import Any

from fedcoast.methods import CoAst


def coast(**changes: Any) -> CoAst:
    """Pruned parameters against movement, float rounding included; options change it.

    >>> coast(keep=0.2).config.signal
    'pruned'
    """
    public = {"signal": "pruned", "baseline": "none", "ulp_tolerance": 0, "tiny_layers": "raw"}
    return CoAst.votes(**{**public, **changes})
