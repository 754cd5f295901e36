"""The step of grading that runs a submission: its settings, and whether they can grade anything on this machine.

``ExecuteWithPapermill`` stands where nbgrader has ``Execute``. ``run_notebook`` runs the cells in the kernels of
``kernels``, and ``settle`` changes what nbgrader would score wrongly. What is said about the notebook goes to
``resources["ringzero_verdict"]``.
"""

import threading
from ast import literal_eval
from dataclasses import asdict, fields
from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from traitlets import Bool, Dict, Float, Integer, TraitError, Unicode, default, validate

from ringzero_course.boxes import sandbox
from ringzero_course.boxes.faults import GraderFault
from ringzero_course.grading import run_notebook, settle, verdict
from ringzero_course.grading import seal as seals
from ringzero_course.grading.kernels import Settings

DEVICES = ("auto", "cpu", "cuda", "strict")  # that a lab takes


class FromWords(Dict):
    """A ``Dict`` that a command line gives as ``NAME=VALUE``, once for each; a value may be a number or a boolean."""

    def item_from_string(self, word):
        name, equals, text = word.partition("=")
        if not equals:
            raise TraitError
        try:
            return {name: literal_eval(text)}
        except (ValueError, SyntaxError):
            return {name: text}

    def validate(self, obj, value):
        if isinstance(value, str | list):  # a command line's, which is not of that form
            option = f"{type(obj).__name__}.{self.name}"
            raise TraitError(f"{option} is {value!r}; a command line says --{option}=NAME=VALUE, once for each name")
        return super().validate(obj, value)


class ExecuteWithPapermill(NbGraderPreprocessor):
    """Run the notebook; see the module's docstring.

    A setting that cannot be used raises TraitError, with its value and what it may be. What is not said of
    ``parameters`` and ``limits`` has its default: two ways to say the same are equal when they are read.
    """

    parameters = FromWords(
        {"WORLD_SIZE": 4, "DEVICE": "auto"}, help="What papermill injects after the cell tagged `parameters`."
    ).tag(config=True)
    cell_seconds = Float(120.0, help="Wall-clock limit of a cell, in seconds.").tag(config=True)
    notebook_seconds = Float(300.0, help="Wall-clock limit of a whole notebook, in seconds.").tag(config=True)
    output_bytes = Integer(1_000_000, min=1, help="What a cell may print; the rest is dropped.").tag(config=True)
    limits = FromWords(
        asdict(sandbox.Limits()), help="What processes may take, as in `ringzero_course.boxes.sandbox.Limits`."
    ).tag(config=True)
    sandbox = Bool(
        True, help="Run submissions in sandboxes, and test cells, which use `Check`, in a kernel of their own."
    ).tag(config=True)

    seal = Unicode(help="What the numbers of hidden cases follow from; see `ringzero seal`.").tag(config=True)

    @default("enabled")
    def _enabled_default(self):  # `nbgrader autograde --no-execute` disables the stock preprocessor by its name
        return Execute(parent=self).enabled

    @default("seal")
    def _seal_default(self):
        return seals.of(Path(CourseDirectory(parent=self).root))

    @validate("parameters")
    def _whole_parameters(self, proposal):
        return whole_parameters(self.trait_defaults("parameters") | proposal["value"])

    @validate("limits")
    def _whole_limits(self, proposal):
        return whole_limits(proposal["value"])

    @validate("cell_seconds", "notebook_seconds")
    def _some_seconds(self, proposal):
        value = proposal["value"]
        if not 0 < value < threading.TIMEOUT_MAX:
            raise TraitError(f"{proposal['trait'].name} is {value:g}; it is a number of seconds over 0, such as 120")
        return value

    def settings(self):
        box = sandbox.Limits(**self.limits) if self.sandbox else None
        limits = self.cell_seconds, self.notebook_seconds, self.output_bytes
        return Settings(dict(self.parameters), *limits, box, self.seal)

    def why_not_here(self):
        """Why these settings, or this machine, grade nothing: a sentence that says what to do. None if they grade."""
        if not self.enabled:
            return (
                "Nothing was graded: a cell that does not run would get full points. Leave out --no-execute "
                "(Execute.enabled and ExecuteWithPapermill.enabled)."
            )
        if not self.sandbox:
            return None
        if self.parameters["DEVICE"] == "cuda" and not self.limits["gpus"]:
            return (
                'Nothing was graded: DEVICE is "cuda", and a sandbox has no GPU. Take "auto", or let sandboxes use the '
                "GPUs: --ExecuteWithPapermill.limits=gpus=True"
            )
        if (missing := sandbox.missing_ability()) is None:
            return None
        what, seen, fix = missing
        return (
            f"Nothing was graded: a sandbox needs {what} ({seen}). {fix}. Or, if you trust each submission with your "
            "files and with its own score, grade without: --ExecuteWithPapermill.sandbox=False on the command line, or "
            "c.ExecuteWithPapermill.sandbox = False in nbgrader_config.py"
        )

    def preprocess(self, nb, resources):
        ran, notes, seconds = run_notebook.as_chosen(nb, self.settings())
        for cell, after in zip(nb.cells, ran, strict=True):
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = after.outputs, after.execution_count
        notes += settle.settle(nb)
        if ours := [sentence for kind, sentence in notes if kind == verdict.GRADER]:
            raise GraderFault(ours[0])  # no score; the next run grades the submission again
        resources["ringzero_verdict"] = settle.verdict_of(notes, seconds)
        return nb, resources


def whole_parameters(parameters):
    """The parameters of a lab. Raises TraitError for what a lab refuses, in each notebook of the class."""
    world_size, device = parameters["WORLD_SIZE"], parameters["DEVICE"]
    which = "ExecuteWithPapermill.parameters"
    if type(world_size) is not int or world_size < 1:
        raise TraitError(f"{which}: WORLD_SIZE is {world_size!r}; it is a number of ranks, from 1, such as 4")
    if device not in DEVICES:
        raise TraitError(f"{which}: DEVICE is {device!r}; it is {', '.join(DEVICES)}")
    if odd := [name for name in parameters if not (isinstance(name, str) and name.isidentifier())]:
        raise TraitError(f"{which}: {odd[0]!r} is no name that a cell can give to a value")
    return parameters


def whole_limits(given):
    """All limits of a box, by their names. Raises TraitError for one that does not exist or cannot be."""
    known = {field.name: field.type for field in fields(sandbox.Limits)}
    for name, value in given.items():
        if name not in known:
            raise TraitError(f"ExecuteWithPapermill.limits: a sandbox has no limit {name!r}. It has {', '.join(known)}")
        if type(value) is not known[name] or (known[name] is int and value < 1):
            kind = "True or False" if known[name] is bool else "a whole number from 1"
            raise TraitError(f"ExecuteWithPapermill.limits: {name} is {value!r}; it is {kind}")
    return asdict(sandbox.Limits(**given))
