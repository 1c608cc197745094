"""What a score of CoAst means, in words for reports."""


def score_meaning(reference: str, past_weight: float) -> str:
    """One sentence for a reader who reads no further."""
    less = f", less {past_weight:.0%} of the same count for the rounds before" if past_weight else ""
    if reference == "others":
        return (
            "A score counts how often the largest changes that a client proposed pointed where the other clients then"
            f" went, less how often they pointed the other way{less}."
        )
    return (
        "A score counts how often the largest changes that a client proposed pointed where the shared model then went,"
        f" less how often they pointed the other way{less}."
    )


def explanation(reference: str, horizon: int, past_weight: float) -> tuple[str, ...]:
    """A few paragraphs for a reader who never heard of the method."""
    by_others = reference == "others"
    rounds = "round" if horizon == 1 else f"{horizon} rounds"
    discount = (
        f" Agreement with the {rounds} before is counted the same way, and {past_weight:.0%} of it is"
        " subtracted: clients that merely repeat the recent direction are discounted."
        if past_weight
        else ""
    )
    question = (
        f"pointed the way the other clients went in the next {rounds}?"
        if by_others
        else f"pointed the way the shared model really moved over the next {rounds}?"
    )
    weighed = " Rounds count by how much the clients still learn in common." if by_others else ""
    line = (
        " Where the clients lie along a line, from sharp to blurred data for instance, its better end is favoured:"
        " the end that agrees clearly more with the others’ next changes, or else the end whose changes come first."
        if by_others
        else ""
    )
    return (
        "In each round every client sends back an improved copy, and the server combines the copies into the next"
        " shared model.",
        "The method used here, CoAst, asks after each round: of the largest changes that a client proposed, how many"
        f" {question} Each one that did counts +1, each one that pointed the other way −1.{discount}{weighed} The sum"
        f" is the client’s credit for that round; its score adds up the credits of all rounds.{line} No test data were"
        " used, and nobody’s data were seen.",
        "The idea: a client with good data proposes what all the others will find useful later, too; noise and errors"
        " point anywhere, and cancel out.",
    )
