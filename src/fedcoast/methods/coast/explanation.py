"""What a score of CoAst means, in words for reports."""


def score_meaning(past_weight: float) -> str:
    """One sentence for a reader who reads no further."""
    discount = f", less {past_weight:.0%} of the same count for the rounds before" if past_weight else ""
    return (
        "A score counts how often the largest changes that a client proposed pointed where the shared model then went,"
        f" less how often they pointed the other way{discount}."
    )


def explanation(horizon: int, past_weight: float) -> tuple[str, ...]:
    """A few paragraphs for a reader who never heard of the method."""
    discount = (
        f" Agreement with the {horizon} rounds before is counted the same way, and {past_weight:.0%} of it is"
        " subtracted: clients that merely repeat the recent direction are discounted."
        if past_weight
        else ""
    )
    return (
        "In each round every client sends back an improved copy, and the server combines the copies into the next"
        " shared model.",
        "The method used here, CoAst, asks after each round: of the largest changes that a client proposed, how many"
        f" pointed the way the shared model really moved over the next {horizon} rounds? Each one that did counts +1,"
        f" each one that pointed the other way −1.{discount} The sum is the client’s credit for that round; its score"
        " adds up the credits of all rounds. No test data were used, and nobody’s data were seen.",
        "The idea: a client with good data proposes what all the others will find useful later, too; noise and errors"
        " point anywhere, and cancel out.",
    )
