"""nbgrader's settings: the course directory is ``course/``, and submissions run as ``ringzero_course.grading`` says."""

import os
from pathlib import Path

from ringzero_course.grading.autograde import install
from ringzero_course.grading.course import GRADEBOOK

install()

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.course_id = "ringzero"
c.CourseDirectory.root = str(Path(__file__).resolve().parent / "course")

# The gradebook is the file course/gradebook.db, or on a server that the variable RINGZERO_GRADEBOOK names.
if GRADEBOOK in os.environ:
    c.CourseDirectory.db_url = os.environ[GRADEBOOK]

# What is not copied from step to step, with what an instructor alone reads: it may say what hidden tests do.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "verdict.json"]

# In place of nbgrader's own Execute, which trusts the notebook to end.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "ringzero_course.grading.restore.RestoreCells",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "ringzero_course.grading.execute.ExecuteWithPapermill",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.ExecuteWithPapermill.parameters = {"WORLD_SIZE": 4, "DEVICE": "auto"}
c.ExecuteWithPapermill.cell_seconds = 120.0
c.ExecuteWithPapermill.notebook_seconds = 300.0

# The feedback page: the score and what to look at on top, nothing of the hidden tests.
c.GenerateFeedback.exporter_class = "ringzero_course.grading.feedback.FeedbackPage"
c.FeedbackPage.preprocessors = []
c.FeedbackPage.filters = {"markdown2html": "ringzero_course.grading.harmless.rendered"}
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "ringzero_course.grading.feedback.ForTheStudent",
]

# The formgrader shows what students wrote on a page of the Jupyter server: no scripts.
c.HTMLExporter.preprocessors = ["ringzero_course.grading.harmless.Harmless"]
c.HTMLExporter.filters = {"markdown2html": "ringzero_course.grading.harmless.rendered"}

# `nbgrader validate` runs a notebook with nbgrader's own Execute; a cell of ours may take longer than its 30 s.
c.Execute.timeout = 120

# Points off for late work: "zero" takes all, "none" takes none. nbgrader's documentation shows how to write another.
c.LateSubmissionPlugin.penalty_method = "none"
