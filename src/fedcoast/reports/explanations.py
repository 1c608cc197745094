"""What the numbers mean and what they do not, for someone who never heard of the method."""

from fedcoast.reports.phrasing import percent
from fedcoast.reports.report_data import ReportData


def explanations(report: ReportData) -> list[tuple[str, list[str]]]:
    """Three chapters, each of a few paragraphs."""
    return [
        ("What was measured", _measured(report)),
        ("How to read it", _reading(report)),
        ("What it does not say", _limits(report)),
    ]


def _measured(report: ReportData) -> list[str]:
    common = "In federated learning several clients train one shared model, without showing each other their data."
    if report.method != "coast":
        return [common, f"The method used here, {report.method}, measures {report.measures}."]
    horizon, past = report.settings.get("horizon", "few"), report.settings.get("past_weight", 0)
    following = (
        f" Agreement with where the model came from, over the {horizon} rounds before, is counted the same way, and"
        f" {percent(past)} of it is taken off: who only follows is worth less than who leads."
        if past
        else ""
    )
    return [
        f"{common} In each round every client sends back an improved copy, and the server mixes the copies into the"
        " next shared model.",
        "The method used here, CoAst, asks after each round: of the largest changes that a client proposed, how many"
        f" pointed the way the shared model really moved over the next {horizon} rounds? Each one that did counts +1,"
        f" each one that pointed the other way −1.{following} The sum is the client’s credit for that round; its score"
        " adds up the credits of all rounds. No test data were used, and nobody’s data were seen.",
        "The idea: a client with good data proposes what all the others will find useful later, too; noise and errors"
        " point anywhere, and cancel out.",
    ]


def _reading(report: ReportData) -> list[str]:
    sentences = ["The order is what counts. Twice the score does not mean twice the worth."]
    if report.zero_is_idle:
        sentences.append(
            "Zero is what a client gets that sends the model back unchanged. Below zero is worse than that."
        )
    if report.level is not None:
        sentences.append(
            f"Some of a score is luck. With {percent(report.level)} confidence its range holds what the same clients"
            " would have got on average, had the luck of the rounds been drawn anew. Where two ranges overlap much, do"
            " not insist on who is first."
        )
    sentences.append("A client that was absent has no credit for that round, and no penalty.")
    if report.adjusts:
        sentences.append(
            "Rounds differ in what they give to everybody: “evened” is fairer to clients that missed some. It takes a"
            " round to add the same to everybody, which is not quite so; of it, zero has no meaning."
        )
    return sentences


def _limits(report: ReportData) -> list[str]:
    return [
        "Agreement is not quality as such. A client with rare but valuable data may disagree with the others and score"
        " low; several clients with the same flaw pull the model with them and score high.",
        "A low score is a reason to look, not proof of bad faith: noisy labels, a wrong setting and a broken camera"
        " look alike.",
        "The ranges know the ups and downs between the rounds of this one training. Other data, or another training"
        " from another start, could differ by more.",
        "Scores cannot be compared between federations, models or settings; ranks can, with care.",
        "Whoever knows the method may try to please it. Use the scores beside contracts and inspection, not instead.",
    ]
