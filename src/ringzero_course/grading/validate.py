"""``nbgrader validate`` shows a check's table. nbgrader's own shows the first columns of the cell's source instead."""

import textwrap

from nbgrader.validator import Validator
from traitlets import Integer

TABLE = "ringzero-check"  # the class of a check's table, in HTML


class ShowsTables(Validator):
    """In place of nbgrader's ``Validator``."""

    width = Integer(100, help="Maximum line width.").tag(config=True)

    def _extract_error(self, cell):
        tables = [
            output.data["text/plain"]
            for output in cell.get("outputs", ())
            if TABLE in output.get("data", {}).get("text/html", "")
        ]
        return "\n".join(tables) or super()._extract_error(cell)

    def _print_error(self, source, error):
        if " points\n" not in error:
            super()._print_error(source, error)
            return
        self.stream.write("\n" + "=" * self.width + "\n")
        for line in error.splitlines():
            behind = " " * (len(line) - len(line.lstrip()))
            self.stream.write(textwrap.fill(line, self.width, subsequent_indent=behind) + "\n")
        self.stream.write("\n")
