"""What the numbers mean, for readers who do not know the method."""

from fedcoast.methods.registry import config_of
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
    config = config_of(report.method, report.settings)
    paragraphs = config.explanation() if config is not None else ()
    if not paragraphs:
        return [common, f"The method used here, {report.method}, measures {report.measures}."]
    return [f"{common} {paragraphs[0]}", *paragraphs[1:]]


def _reading(report: ReportData) -> list[str]:
    sentences = ["The order is what counts. Twice the score does not mean twice the worth."]
    if report.zero_is_idle:
        sentences.append("A client that returns the model unchanged scores zero. Below zero is worse than that.")
    if report.level is not None:
        sentences.append(
            f"Part of a score is luck. With {percent(report.level)} confidence its range contains the score that"
            " the same clients would get on average if the rounds were repeated. If two ranges overlap widely, their"
            " order is not certain."
        )
    sentences.append("A client that was absent has no credit for that round, and no penalty.")
    if report.adjusts:
        sentences.append(
            "Rounds differ in how much credit they give. The adjusted mean is fairer to clients that missed rounds. It"
            " assumes that a round adds the same to every client, which is only nearly true; its zero has no meaning."
        )
    return sentences


def _limits(report: ReportData) -> list[str]:
    return [
        "Agreement is not the same as quality. A client with rare but valuable data may disagree with the others and"
        " score low; several clients with the same flaw pull the model with them and score high.",
        "A low score is a reason to look, not proof of bad faith: noisy labels, a wrong setting and a broken camera"
        " look alike.",
        "The ranges cover the variation between the rounds of this one training. Other data, or another training"
        " from another start, could differ by more.",
        "Scores cannot be compared between federations, models or settings; ranks can, with care.",
        "Clients that know the method may try to game it. Use scores alongside contracts and inspection, not instead"
        " of them.",
    ]
