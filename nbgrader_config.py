"""nbgrader's settings: the course directory is ``course/``, and submissions run as ``ringzero.grading`` says."""

from pathlib import Path

from ringzero.grading.autograde import install

install()

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.course_id = "ringzero"
c.CourseDirectory.root = str(Path(__file__).resolve().parent / "course")

# In place of nbgrader's own Execute, which trusts the notebook to end.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "ringzero.grading.autograde.RestoreCells",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "ringzero.grading.execute.ExecuteWithPapermill",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.ExecuteWithPapermill.parameters = {"WORLD_SIZE": 4, "DEVICE": "auto"}
c.ExecuteWithPapermill.cell_seconds = 120.0
c.ExecuteWithPapermill.notebook_seconds = 300.0

# The feedback page: the verdict on top, nothing of the hidden tests.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "ringzero.grading.feedback.ForTheStudent",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# `nbgrader validate` runs a notebook with nbgrader's own Execute; a cell of ours may take longer than its 30 s.
c.Execute.timeout = 120
