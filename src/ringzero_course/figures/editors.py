"""An editor in a page with no kernel: the reader writes what a rank does, and the page runs, proves and draws it.

The page runs ``ringzero_course.in_page.writing`` in MicroPython; ``book/_page/write.js`` brings the editor to life.
Without the script, or where Python does not run, the page shows the solution's space-time diagram and says so.
"""

from html import escape

from ringzero.drawing.figure import Figure, frame
from ringzero_course.figures.controls import widget
from ringzero_course.in_page.running import Run
from ringzero_course.in_page.verdict import judge
from ringzero_course.in_page.writing import WORLD_SIZES, answer

RANKS = 4  # that run at first


def write_it(name: str, start: str, solution: str, *, caption: str | None = None) -> Figure:
    """Let the reader write ``def rank(r, n)``, a generator that takes part in an all-reduce (``in_page.running``).

    ``start`` is the program in the editor at first, ``solution`` one that the reader may unfold. What the reader writes
    is kept under ``name``, so a page has each name once.

    Raises ValueError for a solution that is not right for every number of ranks.
    """
    for n in WORLD_SIZES:
        verdict = judge(Run(solution, n))
        if verdict.kind != "right":
            raise ValueError(f"the solution is not right with {n} ranks: {verdict.sentence}")
    shown, editor = answer(solution, RANKS), f"rz-write-{name}"
    data = {"name": name, "start": start, "ranks": RANKS, "solution": solution}
    inside = (
        f'<div class="rz-editor" hidden>'
        f'<label for="{editor}">What rank <code>r</code> of <code>n</code> does:</label>'
        f'<div class="rz-code"><pre class="rz-lines" aria-hidden="true"></pre><pre class="rz-printed-code"></pre>'
        f'<textarea id="{editor}" aria-describedby="{editor}-keys" wrap="off" spellcheck="false" autocomplete="off" '
        f'autocapitalize="off" autocorrect="off"></textarea></div>'
        f'<p class="rz-keys" id="{editor}-keys">Tab indents; Escape, then Tab, leaves the editor. Ctrl+Enter runs.</p>'
        f'<div class="rz-controls"><label>ranks N <input type="range" min="{WORLD_SIZES[0]}" max="{WORLD_SIZES[-1]}" '
        f'step="1" value="{RANKS}"> <output>{RANKS}</output></label>'
        f'<span><button type="button">Run</button><button type="button">Reset</button></span></div>'
        f'<div class="rz-said" aria-live="polite"></div><div class="rz-view"></div></div>'
        f'<div class="rz-instead">{frame(shown["svg"], shown["alt"], None).html}'
        f"<p>In a browser with JavaScript and WebAssembly you can write this program here yourself and see it run. "
        f"The figure shows the solution below, on {RANKS} ranks.</p></div>"
        f"<details><summary>A solution</summary><pre>{escape(solution)}</pre>"
        f'<button type="button" hidden>Put it into the editor</button></details>'
    )
    return Figure(widget("writing", inside, data, caption), f"An editor for a program. A solution: {shown['alt']}")
