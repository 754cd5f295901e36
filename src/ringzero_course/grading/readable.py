"""What a student wrote, where a person or a program reads it: in a terminal, in a list, in a file."""

import json
from typing import Any

UNSHOWN = "\N{REPLACEMENT CHARACTER}"
LONGEST_CELL, LONGEST_LINE, LONGEST_PARAGRAPH, MOST_BACKSLASHES = 20_000, 500, 5_000, 500  # see ``for_a_page``
DEEPEST = 100  # levels of lists in lists; programs that walk through a notebook end at a few hundred


def why_no_json(data: Any) -> str:
    """Why the lists and dicts ``data`` cannot be written to a file and read again; "" if they can."""
    level = [data]
    for _ in range(DEEPEST):
        inner = (each.values() if isinstance(each, dict) else each if isinstance(each, list) else () for each in level)
        level = [each for some in inner for each in some]
    if level:
        return f"there are lists in lists, deeper than {DEEPEST}"
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "it holds a character that no file can hold, half of a pair"
    except (TypeError, ValueError):
        return "it holds a number that JSON does not have"
    return ""


def in_one_line(text: str) -> str:
    """``text`` without what moves a terminal's cursor, colours it, or turns the direction of words."""
    return "".join(each if each.isprintable() else " " if each.isspace() else UNSHOWN for each in text)


def for_a_page(cell: Any) -> str:
    """The text of ``cell`` as a page shows it. What no honest one has is cut: on some texts, as long dotted names and
    rows of formulas that do not end, programs that colour or render them take time with the square of the length."""
    longest = LONGEST_LINE if cell.cell_type == "code" else LONGEST_PARAGRAPH
    text = "\n".join(line[:longest] for line in cell.source[:LONGEST_CELL].split("\n"))
    if cell.cell_type != "code":
        text = "\\".join(text.split("\\")[: MOST_BACKSLASHES + 1])
    return cell.source if text == cell.source else f"{text}\n\n(this text is longer; open the notebook to see it)"
