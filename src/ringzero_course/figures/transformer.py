"""A transformer as a column of steps: what each multiplies by, the shape that leaves it, and its parameters.

The steps are those of a GPT as ``costs.page.transformer`` counts them: biases everywhere, the head tied.
"""

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import Figure, picture

LEFT, WIDE, HIGH, GAP, TOP = 44, 190, 24, 12, 24  # pixels: of the boxes; the space above the first
BETWEEN = 20  # pixels: more space where a part begins or ends
SHAPE, COUNT, PART = LEFT + WIDE + 22, LEFT + WIDE + 190, LEFT + WIDE + 300  # where the shape, ... of a step is written
ATTENTION, MLP = "attention", "MLP"

STEPS = (  # step, the shape that leaves it, parameters, part
    ("token ids", "b × s whole numbers", "", ""),
    ("one-hot", "b × s × v, one 1 a token", "", ""),
    ("embedding and positions", "b × s × h", "(v + p)h", ""),
    ("norm", "b × s × h", "2h", ATTENTION),
    ("Q, K, V: h × 3h", "three of b × a × s × h/a", "3h² + 3h", ATTENTION),
    ("scores Q · K, softmax", "b × a × s × s", "", ATTENTION),
    ("scores · V", "b × s × h", "", ATTENTION),
    ("projection h × h", "b × s × h", "h² + h", ATTENTION),
    ("norm", "b × s × h", "2h", MLP),
    ("up h × 4h, GELU", "b × s × 4h", "4h² + 4h", MLP),
    ("down 4h × h", "b × s × h", "4h² + h", MLP),
    ("norm", "b × s × h", "2h", ""),
    ("head h × v", "logits, b × s × v", "the embedding's", ""),
)


def transformer(*, caption: str | None = None) -> Figure:
    """Draw the steps of a GPT from token ids to logits, with its shapes, and a frame around what is repeated."""
    colours = {"": palette.fill(1), ATTENTION: palette.fill(3), MLP: palette.fill(2)}
    tops, middle = [TOP], LEFT + WIDE / 2
    for (*_, above), (*_, below) in zip(STEPS, STEPS[1:], strict=False):
        tops.append(tops[-1] + HIGH + GAP + BETWEEN * (above != below))
    parts = [svg.text(SHAPE, 8, "what leaves it", bold=True), svg.text(COUNT, 8, "parameters", bold=True)]
    parts += [svg.arrow((middle, above + HIGH), (middle, below)) for above, below in zip(tops, tops[1:], strict=False)]
    for (name, shape, count, part), top in zip(STEPS, tops, strict=True):
        parts.append(svg.box(LEFT, top, WIDE, HIGH, colours[part], name, f"{name}: {shape}", kind="step"))
        parts += [svg.text(SHAPE, top + HIGH / 2, shape), svg.text(COUNT, top + HIGH / 2, count)]
    for part in (ATTENTION, MLP):  # what came in is added to what the part made
        inside = [top for step, top in zip(STEPS, tops, strict=True) if step[3] == part]
        start, end = inside[0] - 11, inside[-1] + HIGH + 10
        parts.append(svg.path(f"M{middle} {start}H{LEFT - 14}V{end}H{middle - 6}", stroke_width=1.5, kind="around"))
        parts.append(svg.disc((middle, end), 7, palette.WHITE, "+", kind="sum"))
        parts.append(svg.text(PART, (inside[0] + inside[-1] + HIGH) / 2, part, bold=True))
    of_a_layer = [top for step, top in zip(STEPS, tops, strict=True) if step[3]]
    top, bottom = of_a_layer[0] - 17, of_a_layer[-1] + HIGH + 20
    parts.append(svg.rect(LEFT - 24, top, PART + 98 - LEFT, bottom - top, kind="layer", stroke_dasharray="4 3"))
    parts.append(svg.text(PART - 44, top - 9, "a layer, L times", bold=True))
    said = "; ".join(f"{name} gives {shape}" + f", {count} parameters" * bool(count) for name, shape, count, _ in STEPS)
    description = f"{said}. Attention and the MLP each add their result to what came in"
    return picture(PART + 82, tops[-1] + HIGH + 6, "A GPT and its shapes", description, parts, caption)
