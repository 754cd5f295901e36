"""A fault of the machine or of a check, which is no student's."""


class GraderFault(RuntimeError):  # noqa: N818  (whose fault it is)
    """The machine or the check itself failed: the cell has no score, and a grader runs the notebook again."""

    def _render_traceback_(self) -> list[str]:  # IPython shows this
        return [f"{type(self).__name__}: {self}. This costs no points: run the cell again."]
