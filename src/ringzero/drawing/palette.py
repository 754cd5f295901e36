"""The book's colours: Okabe and Ito's set, which survives colour blindness and print.

Rank r and chunk r have the same colour everywhere. Colour never carries a meaning alone: boxes are labelled, and
a box is told from its page by an outline in the text's colour. Lines have no outline, so they take only the
colours that stand out from both a white and a dark page.
"""

BLACK, WHITE = "#000000", "#ffffff"
ORANGE, SKY, GREEN, YELLOW = "#e69f00", "#56b4e9", "#009e73", "#f0e442"
BLUE, VERMILLION, PURPLE, GREY = "#0072b2", "#d55e00", "#cc79a7", "#999999"

FILLS = (ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE, GREY)  # eight: as many as a node has GPUs
LINES = (BLUE, VERMILLION, GREEN, PURPLE)


def fill(index: int) -> str:
    """The colour of rank or chunk ``index``; it repeats after eight, which is why everything is labelled too."""
    return FILLS[index % len(FILLS)]


def ink(background: str) -> str:
    """Black or white, whichever reads better on ``background``."""
    return max((BLACK, WHITE), key=lambda color: contrast(color, background))


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two colours written ``#rrggbb``, from 1 to 21.

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color):
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
