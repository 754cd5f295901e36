"""A slider over a figure that is drawn anew at each change."""

import html
from collections.abc import Callable
from typing import Any

from ringzero_course.lab.shown.drawing import Note


def slide(description: str, options: dict, draw: Callable) -> Any:
    """A slider over ``options``, ``{label: value}``, above the figure ``draw(value)``, drawn anew at each change.

    What ``draw`` raises is shown in its place.
    """
    try:
        import ipywidgets as widgets
    except ImportError:
        return Note('The slider needs ipywidgets: pip install "ringzero-course[labs]".')

    class Slider(widgets.VBox):
        def __repr__(self):  # where there is no browser, this is what shows
            return self.summary

    slider = widgets.SelectionSlider(
        options=list(options.items()),
        description=description,
        continuous_update=False,
        style={"description_width": "initial"},
        layout=widgets.Layout(width="36em"),
    )
    shown = widgets.HTML()

    def redraw(_change=None):
        try:
            figure = draw(slider.value)
            box.summary, shown.value = f"{description} {slider.label}: {figure!r}", figure._repr_html_()
        except Exception as error:  # a callback's traceback would go to a log nobody reads
            said = str(error) or type(error).__name__
            if "NotImplementedError" in said:  # on a rank: then the message is the rank's traceback
                said = "it calls what is not written yet"
            text = f"Nothing to draw: {said}"
            box.summary, shown.value = text, f"<pre>{html.escape(text)}</pre>"

    box = Slider([slider, shown])
    slider.observe(redraw, names="value")
    redraw()
    return box
