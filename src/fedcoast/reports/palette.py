"""The colours of a report, by what they mean, for a light page and a dark one.

Figures are drawn in the light ones; the page exchanges each for its dark partner, so no two light ones may be equal.
Help is blue and harm is orange, a pair that people with any colour vision can tell apart.
"""

from typing import NamedTuple


class Colour(NamedTuple):
    light: str
    dark: str


INK = Colour("#1b2230", "#e7eaf1")  # text
SOFT = Colour("#566072", "#a4aec0")  # secondary text, and the verdict "cannot tell"
RULE = Colour("#dde2ea", "#323b4a")  # lines between things
PAPER = Colour("#ffffff", "#11151c")
CARD = Colour("#f5f7fa", "#1a202b")  # what lies on the paper
ACCENT = Colour("#2a54c4", "#94b3ff")  # what can be clicked
UP = Colour("#2068ad", "#6db0f2")  # helps, above
DOWN = Colour("#b4540a", "#f2a159")  # hurts, below
IDLE = Colour("#7a4b8f", "#cfa2e6")  # returned the model unchanged
HIGH = Colour("#63a4e4", "#1d5c9b")  # the ends of a scale, on which numbers can be read
LOW = Colour("#ee9d58", "#97470f")
ZERO = Colour("#f1f2f4", "#252d3a")  # neither, in the middle of it
BAND = Colour("#e9edf4", "#222a37")  # behind those who cannot be told apart

NAMED = {
    "ink": INK,
    "soft": SOFT,
    "rule": RULE,
    "paper": PAPER,
    "card": CARD,
    "accent": ACCENT,
    "up": UP,
    "down": DOWN,
    "idle": IDLE,
    "high": HIGH,
    "low": LOW,
    "zero": ZERO,
    "band": BAND,
}

LINES = (
    Colour("#0072b2", "#5bb4ec"),
    Colour("#d55e00", "#ff9a52"),
    Colour("#008f68", "#3fcf9f"),
    Colour("#b3578a", "#e79cc4"),
    Colour("#a67c00", "#e6c34d"),
    Colour("#6a4fb0", "#b6a0f2"),
    Colour("#3a8fc4", "#9fd6fb"),
    Colour("#8c4a14", "#d8a06b"),
    Colour("#4d7c0f", "#a5d65c"),
    Colour("#b91c3c", "#ff8fa3"),
    Colour("#0f7f86", "#5fd0d6"),
    Colour("#6b7280", "#b4bcc9"),
)
"""For lines that must be easy to tell apart, after Okabe and Ito."""


def partners() -> dict[str, str]:
    """From each light colour to its dark one."""
    return {colour.light: colour.dark for colour in (*NAMED.values(), *LINES)}


def variables(dark: bool) -> str:
    """The same colours as CSS knows them.

    >>> variables(dark=False)[:14]
    '--ink:#1b2230;'
    """
    return "".join(f"--{name}:{colour.dark if dark else colour.light};" for name, colour in NAMED.items())
