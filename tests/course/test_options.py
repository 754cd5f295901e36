"""Every option that the project documents acts from its command line: tables with a row for each.

A row is a command line as one types it, and what must be seen of its option. Nothing is measured and one notebook runs:
where an option says how a long thing is done, the row says what that thing is then asked to do. An option of ``--help``
or of a text that has no row fails: ``test_each_option_has_a_row``.
"""

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import ChainMap
from pathlib import Path
from types import SimpleNamespace

import click
import nbformat
import pytest
from click.testing import CliRunner
from jupyter_core.application import NoStart
from nbformat.v4 import new_code_cell, new_output
from nbgrader.apps import AutogradeApp
from nbgrader.apps.nbgraderapp import NbGraderApp

from ringzero import cli
from ringzero_course.authoring import sample_class
from ringzero_course.grading import ahead, autograde, execute, run_notebook
from ringzero_course.grading import course as courses
from ringzero_course.grading.verdict import Verdict
from ringzero_course.boxes import sandbox
from tests.dumps import samples
from tests.generated_profiles import Job, on_cpus, save
from tests.grading.test_grading import LAB, TOP, make_course

ONE, OTHER, TEXTS = "02_ring_allreduce", "03_cost_models", ("README.md", *map("book/{}.md".format, (
    "for_instructors", "for_contributors", "seminar")))  # fmt: skip

# `ringzero` and the programs of `python -m`: the function that is then called, and some of what it is called with.
ASKED = {
    **{f"ringzero bench {line}": ("bench.runner:show", seen) for line, seen in {
        "cluster --rates 1gbit": {"rates": ("1gbit",)},
        "collectives --collectives broadcast": {"collectives": ("broadcast",)},
        "collectives --algorithms ring": {"algorithms": ("ring",)},
        "collectives --world-sizes 3": {"world_sizes": (3,)},
        "collectives --sizes 1K,16M": {"sizes": (2**10, 2**24)},
        "collectives --device cuda": {"device": "cuda"},
        "collectives --backend nccl": {"backend": "nccl"},
        "ddp --ranks 3": {"ranks": (3,)},
        "ddp --rates none": {"rates": ()},
        "ddp --models mlp": {"models": ("mlp",)},
        "ddp --steps 3": {"steps": 3},
        "grading --lab 04_ddp": {"lab": "04_ddp"},
        "grading --submissions 2": {"submissions": 2},
        "grading --repeats 2": {"repeats": 2},
        "launch --world-sizes 3": {"world_sizes": (3,)},
        "launch --calls 3": {"calls": 3},
        "launch --repeats 2": {"repeats": 2},
        "launch --peers-at 2": {"peers_at": 2},
        "muon --rates 1gbit": {"rates": ("1gbit",)},
        "muon --steps 3": {"steps": 3},
        "offload --steps 3": {"steps": 3},
        "offload --folder {here}": {"folder": "{here}"},
        "overlap --links 1gbit": {"links": ("1gbit",)},
        "overlap --steps 3": {"steps": 3},
        "prediction --rates 1gbit": {"rates": ("1gbit",)},
        "prediction --algorithms ring": {"algorithms": ("ring",)},
        "prediction --sizes 1M": {"sizes": (2**20,)},
        "prediction --seconds 3": {"seconds": 3.0},
        "pricing --world-sizes 8": {"world_sizes": (8,)},
        "run --scripts ddp,fsdp2": {"scripts": ("ddp", "fsdp2")},
        "run --steps 3": {"steps": 3},
        "run --repeats 2": {"repeats": 2},
        "strict --iterations 3": {"iterations": 3},
        "unsynced --ranks 3": {"ranks": (3,)},
        "unsynced --rate 1gbit": {"rate": "1gbit"},
        "unsynced --steps 9": {"steps": 9},
        "unsynced --seeds 2": {"seeds": 2},
        "unsynced --methods 'a; b'": {"methods": ["a", "b"]},
        "zero --ranks 2 --steps 5": {"ranks": (2,), "steps": 5},
        "zero --rates none --models small": {"rates": (), "models": ("small",)},
        "zeropp --rates 1gbit": {"rates": ("1gbit",)},
        "zeropp --steps 3": {"steps": 3},
        **{f"{name} --json {{here}}/rows": {"json_file": "{here}/rows"} for name in cli.BENCHES},
    }.items()},
    "ringzero bench unsynced --bert bert.py": ("tasks.sentences:Sentences", {"program": "bert.py"}),
    "ringzero autograder 03_cost_models --github uni/grader --into {here}/new": (
        "connect.github_actions:write", {"lab": OTHER, "grader": "uni/grader", "folder": "{here}/new"}),
    "ringzero gradescope 03_cost_models --into {here}/zip": ("connect.gradescope:write_zip", {"file": "{here}/zip"}),
    "ringzero gradescope 03_cost_models --unsandboxed": ("connect.gradescope:write_zip", {"unsandboxed": True}),
    "ringzero quiz --into {here}/quiz": ("connect.quiz:write", {"into": "{here}/quiz"}),
    "ringzero similar 03_cost_models --into {here}/compare": ("connect.similar:export", {"into": "{here}/compare"}),
    "ringzero measure --ranks 4": ("measure.machine:OneNode", {"ranks": 4}),
    "ringzero measure --inter-node 1gbit": (":Cluster", {"nodes": 2, "inter_node": "1gbit"}),
    "ringzero run --ranks 3 -m train": ("ranks.script:run", {"ranks": 3}),
    "ringzero run --nproc-per-node 3 -m train": ("ranks.script:run", {"ranks": 3}),
    "ringzero run --nproc_per_node 3 -m train": ("ranks.script:run", {"ranks": 3}),
    "ringzero run -m train": ("ranks.script:run", {"is_module": True}),
    "ringzero same train.py:step --ranks 3": ("same:compare", {"ranks": 3}),
    "ringzero same train.py:step --steps 9": ("same:compare", {"steps": 9}),
    "ringzero same train.py:step --data loader": ("same:compare", {"samples": "loader"}),
    "ringzero same train.py:step --as-written": ("same:compare", {"as_written": True}),
    "ringzero same train.py:step --timeout 600": ("same:compare", {"timeout": 600.0}),
    "ringzero mutants --graded --lab 02_ring_allreduce": ("authoring.mutants:run", {"lab": ONE}),
    "ringzero mutants --graded --jobs 5": ("authoring.mutants:run", {"jobs": 5}),
    "ringzero mutants --secret 3": ("authoring.mutants:_show_sentences", {"secret": 3}),
    "ringzero mutants --lab 02_ring_allreduce": ("authoring.mutants:_show_sentences", {"labs": [ONE]}),
    "ringzero mutants --typical": ("authoring.mutants:_show_sentences", {"only_typical": True}),
    "ringzero mutants --times 3": ("authoring.mutants:_show_sentences", {"times": 3}),
    "ringzero grade 03_cost_models --jobs 4": ("grade", ["--CourseAutograde.jobs=4"]),
    "ringzero grade 03_cost_models --scheduler tcp://10.0.0.5:8786": (
        "grade", ["--CourseAutograde.scheduler=tcp://10.0.0.5:8786"]),
    "ringzero grade 03_cost_models --student ada": ("grade", ["--student=ada"]),
    "ringzero grade --force 03_cost_models": ("grade", ["--force"]),
    "ringzero grade 03_cost_models": ("grade", []),  # what the configuration says of jobs and students stands
    "ringzero grade 03_cost_models --ExecuteWithPapermill.sandbox=False --jobs 2": (
        "grade", ["--CourseAutograde.jobs=2", "--ExecuteWithPapermill.sandbox=False"]),
    "python -m ringzero_course.authoring.sample_class --lab 04_ddp": ("authoring.sample_class:sample_class", {"lab": "04_ddp"}),
    "python -m ringzero_course.authoring.sample_class --into {here}": ("authoring.sample_class:Course", {"top": "{here}"}),
    "python -m ringzero_course.grading.build_labs --root {here}/none": ("grading.build_labs:labs", {"root": "{here}/none"}),
}  # fmt: skip

# Those that run whole: words that are then printed, or in the file that the option names.
SHOWN = {
    "ringzero --version": "version",
    "ringzero doctor --json": '"name": "Python"',
    "ringzero plan llama3-8b --gpus 8 --batch 64": "64 sequences of 8192 on 8 H100",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --gpu A100": "on 8 A100",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --gpus-per-node 3": "nodes have 3 GPUs each",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --infiniband ZDR": "ZDR",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --sequence 1024": "64 sequences of 1024",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --reached 0.00001": "MFU 0.0%",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --dollars 0": "0.00 dollars a step",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --tokens 1e9": "for 1e+09 tokens",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --top 1": "\n1. ",
    "ringzero plan llama3-8b --gpus 8 --batch 64 --json {here}/file": '"dollars_a_step"',
    "ringzero explain {here}/dumps --world-size 3": "rank 2 left no record",
    "ringzero explain {here}/dumps --svg {here}/file": "<svg",
    "ringzero explain {here}/dumps --json {here}/file": '"sentence"',
    "ringzero timeline {here}/traces --html {here}/file": "<h1>Timeline</h1>",
    "ringzero timeline {here}/traces --svg {here}/file": "<svg",
    "ringzero timeline {here}/traces --json {here}/file": '"ranks"',
    "ringzero timeline {here}/traces --html {here}/file --step 99": "99",
    "ringzero grades 03_cost_models --csv {here}/file": "student,name,score",
    "ringzero grades 03_cost_models --canvas {here}/file": "SIS User ID",
    "ringzero grades 03_cost_models --items": "with the rest",
    "python -m ringzero_course.authoring.sample_class --only nobody": "no sample student sample_nobody",
}
ELSEWHERE = {  # options that other tests try, and how
    "ringzero bench unsynced --figure": "test_bench", "ringzero measure --json": "test_cluster", "ringzero same --json": "test_same",
    "ringzero run --trace": "test_run", "ringzero explain --torchrun": "test_live", "ringzero explain --pid": "test_live",
    "ringzero mutants --json": "test_mutants", "python -m ringzero_course.authoring.sample_class --update": "it writes into tests/",
    "python -m ringzero_course.grading.build_labs --check": "test_labs",
    "python -m ringzero.measure.gpu --only": "test_measure_gpu",
    "python -m ringzero.measure.gpu --skip": "test_measure_gpu",
    "python -m ringzero.measure.gpu --to": "test_measure_gpu",
    "python -m ringzero.measure.gpu --minutes": "test_measure_gpu",
}  # fmt: skip

# `nbgrader autograde tiny`, where ada and bob are graded: what is then asked of each notebook, or said.
GRADING = {
    "--ExecuteWithPapermill.parameters=WORLD_SIZE=2": {"parameters": {"WORLD_SIZE": 2, "DEVICE": "auto"}},
    "--ExecuteWithPapermill.parameters='{\"DEVICE\": \"strict\"}'": {
        "parameters": {"WORLD_SIZE": 4, "DEVICE": "strict"}},
    "--ExecuteWithPapermill.parameters=DEVICE=cpu --ExecuteWithPapermill.parameters=OWN=3": {
        "parameters": {"WORLD_SIZE": 4, "DEVICE": "cpu", "OWN": 3}},
    "--ExecuteWithPapermill.cell_seconds=7": {"cell_seconds": 7.0},
    "--ExecuteWithPapermill.notebook_seconds=70.5": {"notebook_seconds": 70.5},
    "--ExecuteWithPapermill.output_bytes=99": {"output_bytes": 99},
    "--ExecuteWithPapermill.sandbox=False": {"box": None},
    "--ExecuteWithPapermill.sandbox=false": {"box": None},
    "--ExecuteWithPapermill.sandbox=0": {"box": None},
    "--ExecuteWithPapermill.sandbox=True": {"box": sandbox.Limits()},
    "--ExecuteWithPapermill.limits=gpus=True": {"box": sandbox.Limits(gpus=True)},
    "--ExecuteWithPapermill.limits=memory=2147483648 --ExecuteWithPapermill.limits=processes=50": {
        "box": sandbox.Limits(memory=2**31, processes=50)},
    "--ExecuteWithPapermill.limits='{\"file\": 1000, \"gpus\": True}'": {"box": sandbox.Limits(file=1000, gpus=True)},
    "--ExecuteWithPapermill.seal=abc": {"seal": "abc"},
    "--student=ada": {"students": ["ada"]},
    "--force": {"students": ["ada", "bob"]},
    "--CourseAutograde.force=True": {"students": ["ada", "bob"]},
    "--CourseAutograde.jobs=3": {"jobs": 3},
    "--CourseAutograde.scheduler=tcp://10.0.0.5:8786": {"scheduler": "tcp://10.0.0.5:8786"},
    "--CourseAutograde.wait=False": {"waits": False},
    "--CourseAutograde.wait=True": {"waits": True},
}  # fmt: skip

# The same, where nothing is graded, and what is said.
REFUSED = {
    "--no-execute": "a cell that does not run would get full points. Leave out --no-execute",
    "--Execute.enabled=False": "Leave out --no-execute (Execute.enabled and ExecuteWithPapermill.enabled)",
    "--ExecuteWithPapermill.enabled=False": "a cell that does not run would get full points",
    "--ExecuteWithPapermill.sandbox=perhaps": "expected a boolean, not the str 'perhaps'",
    "--ExecuteWithPapermill.parameters=WORLD_SIZE=0": "WORLD_SIZE is 0; it is a number of ranks, from 1",
    "--ExecuteWithPapermill.parameters=WORLD_SIZE=four": "WORLD_SIZE is 'four'; it is a number of ranks",
    '--ExecuteWithPapermill.parameters=\'{"WORLD_SIZE": "4"}\'': "WORLD_SIZE is '4'; it is a number of ranks",
    "--ExecuteWithPapermill.parameters=DEVICE=tpu": "DEVICE is 'tpu'; it is auto, cpu, cuda, strict",
    "--ExecuteWithPapermill.parameters=DEVICE=cuda": "a sandbox has no GPU",
    "--ExecuteWithPapermill.parameters=MY-SIZE=3": "'MY-SIZE' is no name",
    "--ExecuteWithPapermill.parameters=4": "is '4'; a command line says --ExecuteWithPapermill.parameters=NAME=VALUE",
    "--ExecuteWithPapermill.limits=gpu=True": "a sandbox has no limit 'gpu'. It has memory, processes,",
    "--ExecuteWithPapermill.limits=memory=4G": "memory is '4G'; it is a whole number from 1",
    "--ExecuteWithPapermill.limits=gpus=1": "gpus is 1; it is True or False",
    "--ExecuteWithPapermill.cell_seconds=0": "cell_seconds is 0; it is a number of seconds over 0",
    "--ExecuteWithPapermill.notebook_seconds=nan": "notebook_seconds is nan; it is a number of seconds over 0",
    "--ExecuteWithPapermill.output_bytes=-1": "'output_bytes' trait of an ExecuteWithPapermill instance should not be",
    "--ExecuteWithPapermill.sandbx=False": "ExecuteWithPapermill has no setting 'sandbx'. It has cell_seconds,",
    "--ExecuteWithPapermil.sandbox=False": "there is no ExecuteWithPapermil. Did you mean --ExecuteWithPapermill?",
    "--CourseAutograde.job=2": "CourseAutograde has no setting 'job'",
    "--CourseAutograde.jobs=0": "'jobs' trait of a CourseAutograde instance should not be less than 1",
}
# In the texts, of other programs.
NOT_OURS = {"--array", "--cpus-per-task", "--mem", "--time", "--wrap", "--nthreads", "--death-timeout", "--duedate",
            "--standalone", "--nproc-per-node", "--traces", "--hidden", "--layers", "--every", "--batch"}  # fmt: skip
OF_TESTS = {"--thorough", "--seeds", "--published"}  # of `pytest` here


class SeenError(Exception):
    """What was to be seen was seen: the command need not go on."""


def typed(line):
    """A command line of ``ringzero`` or ``python -m``, run in this process: its status and what it printed."""
    program, *words = shlex.split(line)
    if program == "ringzero":
        done = CliRunner().invoke(cli.main, words)
        if done.exception is not None and not isinstance(done.exception, SystemExit | SeenError):
            raise done.exception
        return done.exit_code, done.output
    return importlib.import_module(words[1]).main(words[2:]), ""


def at(text, here):
    """A cell of a table, with the folder ``here`` in its place."""
    return text.replace("{here}", str(here)) if isinstance(text, str) else text


@pytest.fixture
def course(tmp_path, monkeypatch):
    """In place of the repository's course: a student handed in a lab and another is graded."""
    shutil.copy(TOP / courses.CONFIG, tmp_path)
    made = courses.Course(tmp_path)
    made.submit("ada", OTHER, b"no notebook")
    grade = courses.Grade({"test_count": (2.0, 3.0)}, Verdict("ok"))
    monkeypatch.setattr(courses.Course, "grades", lambda *_: {"ada": grade, "bob": grade, "cyd": grade})
    monkeypatch.setattr(courses, "repository", lambda: TOP)
    return made


@pytest.mark.parametrize("line", ASKED)
def test_an_option_reaches_what_it_is_for(line, tmp_path, monkeypatch):
    where, expected = ASKED[line]
    monkeypatch.setattr(sandbox, "missing_ability", lambda: None)
    asked = []
    if where == "grade":
        monkeypatch.setattr(subprocess, "run", lambda words, **_: asked.append(words) or SimpleNamespace(returncode=0))
        assert typed(line) == (0, "")
        assert asked == [[sys.executable, "-m", "nbgrader", "autograde", OTHER, *expected]]
        return
    room, _, name = where.partition(":")
    package = "ringzero_course" if importlib.util.find_spec(f"ringzero_course.{room.split('.')[0]}") else "ringzero"
    module = importlib.import_module(f"{package}.{room}".rstrip("."))
    signature = inspect.signature(getattr(module, name))

    def asks(*words, **more):
        bound = signature.bind(*words, **more)
        bound.apply_defaults()
        rows = [inspect.getgeneratorlocals(each) for each in words if inspect.isgenerator(each)]  # of a benchmark
        asked.append(dict(ChainMap(bound.arguments, *rows)))
        raise SeenError

    monkeypatch.setattr(module, name, asks)
    with contextlib.suppress(SeenError):
        typed(at(line, tmp_path))
    for argument, value in expected.items():
        found = asked[0][argument]
        assert (str(found) if isinstance(found, Path) else found) == at(value, tmp_path)


@pytest.mark.parametrize("line", SHOWN)
def test_an_option_shows(line, course, tmp_path, monkeypatch, capsys):
    (tmp_path / "traces").mkdir()
    save(on_cpus(Job(ranks=2, steps=2)), tmp_path / "traces")
    (tmp_path / "dumps").mkdir()
    samples.job(tmp_path / "dumps", 2, lambda rank: rank.call("all_reduce", 12))
    if "course" not in line:
        monkeypatch.setattr(courses, "Course", lambda top: course)
    monkeypatch.setattr("ringzero.doctor.CHECKS", [importlib.import_module("ringzero.doctor").python])
    _, said = typed(at(line, tmp_path))
    captured = capsys.readouterr()
    file = tmp_path / "file"
    said = file.read_text() if file.exists() and file.stat().st_size else said + captured.out + captured.err
    assert SHOWN[line] in said
    if line.endswith("--top 1"):
        assert "\n2. " not in said


# Grading.


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A course with two submissions, of the repository's configuration."""
    made, handed = make_course(tmp_path_factory.mktemp("options"))
    shutil.copy(TOP / courses.CONFIG, made.top)
    for name in ("ada", "bob"):
        made.submit(name, LAB, handed.filled())
    return made


@pytest.fixture
def grade(tiny, monkeypatch, capfd):
    """``grade(LINE)``: `nbgrader autograde tiny` with these words, in this process. No notebook runs: each scores."""
    monkeypatch.chdir(tiny.top)
    monkeypatch.setattr(sandbox, "missing_ability", lambda: None)
    seen = SimpleNamespace(settings=[], students=[], waits=None, jobs=1, scheduler="")

    def run(nb, settings):
        seen.settings.append(settings)
        ran = [nbformat.from_dict(cell) for cell in nb.cells]
        for cell in ran:
            if cell.get("metadata", {}).get("nbgrader", {}).get("grade") and cell.cell_type == "code":
                cell.outputs = [new_output("execute_result", data={"text/plain": "2.0"}, execution_count=1)]
        return ran, [], 0.0

    def executing_ahead(jobs, scheduler, settings, log):
        seen.jobs, seen.scheduler = jobs, scheduler
        raise ahead.NoWorkersError("seen")

    def grading(root, what, wait, tell):
        seen.waits = wait
        return one_at_a_time(root, what, wait, tell)

    init_assignment, one_at_a_time = autograde.CourseAutograde.init_assignment, autograde.one_at_a_time.grading
    monkeypatch.setattr(run_notebook, "run", run)
    monkeypatch.setattr(ahead, "executing_ahead", executing_ahead)
    monkeypatch.setattr(autograde.one_at_a_time, "grading", grading)
    monkeypatch.setattr(autograde, "end_leftovers", lambda: None)
    monkeypatch.setattr(
        autograde.CourseAutograde,
        "init_assignment",
        lambda self, lab, student: seen.students.append(student) or init_assignment(self, lab, student),
    )

    def graded(line):
        NbGraderApp.clear_instance()
        AutogradeApp.clear_instance()
        seen.settings, seen.students, seen.status = [], [], 0
        app = NbGraderApp()
        capfd.readouterr()
        try:
            app.initialize(["autograde", LAB, *shlex.split(line)])
            app.start()
        except NoStart:  # the command of `nbgrader` that was asked for ended well
            pass
        except SystemExit as end:
            seen.status = end.code
        finally:
            NbGraderApp.clear_instance()
            AutogradeApp.clear_instance()
        seen.said = "".join(capfd.readouterr())
        return seen

    return graded


@pytest.mark.parametrize("line", GRADING)
def test_a_setting_reaches_each_notebook(line, grade, tiny):
    shutil.rmtree(tiny.root / "autograded", ignore_errors=True)
    if "force" in line:
        assert grade("").students == ["ada", "bob"]
        assert grade("").students == []
    seen, expected = grade(line), GRADING[line]
    for name, value in expected.items():
        if name in ("students", "jobs", "scheduler", "waits"):
            assert getattr(seen, name) == value, seen.said
        else:
            assert [getattr(settings, name) for settings in seen.settings] == [value, value], seen.said


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_graded(line, grade, tiny):
    shutil.rmtree(tiny.root / "autograded", ignore_errors=True)
    seen = grade(line)
    assert (seen.status, seen.students) == (1, [])
    assert REFUSED[line] in seen.said
    assert "Traceback" not in seen.said
    assert not (tiny.root / "autograded").exists()


def test_a_default_that_is_spelled_out_grades_nobody_again(grade):
    limits = [
        f"--ExecuteWithPapermill.limits={name}={value}" for name, value in (("memory", 8 * 2**30), ("gpus", False))
    ]
    spelled = ["--ExecuteWithPapermill.sandbox=True", "--ExecuteWithPapermill.parameters=WORLD_SIZE=4", *limits,
               "--ExecuteWithPapermill.cell_seconds=120", "--LimitOutput.max_lines=1000"]  # fmt: skip
    assert grade("--force").students == ["ada", "bob"]
    assert grade(" ".join(spelled)).students == []
    assert grade("").students == []
    assert grade("--ExecuteWithPapermill.cell_seconds=119").students == ["ada", "bob"]
    assert grade("").students == ["ada", "bob"]


def test_a_step_that_executes_is_needed(grade, tiny, monkeypatch):
    with open(tiny.top / courses.CONFIG, "a") as config:
        config.write("\nc.Autograde.autograde_preprocessors = ['nbgrader.preprocessors.SaveAutoGrades']\n")
    try:
        seen = grade("--force")
    finally:
        shutil.copy(TOP / courses.CONFIG, tiny.top)
    assert (seen.status, seen.students) == (1, [])
    assert "autograde_preprocessors has no ExecuteWithPapermill" in seen.said


@pytest.mark.parametrize("value", [1, 4, 0, -1, True, "4", 2.0, None])
def test_labs_and_the_grader_take_the_same_numbers_of_ranks(value):
    _take_the_same({"WORLD_SIZE": value, "DEVICE": "auto"})


@pytest.mark.parametrize("value", [*execute.DEVICES, "tpu", "", None, "cuda:0"])
def test_labs_and_the_grader_take_the_same_devices(value):
    _take_the_same({"WORLD_SIZE": 4, "DEVICE": value})


def _take_the_same(parameters):
    from traitlets import TraitError

    from ringzero_course.lab.parameters import LabError, check_parameters

    taken = []
    for take, error in ((check_parameters, LabError), (execute.whole_parameters, TraitError)):
        try:
            take(parameters)
            taken.append(True)
        except error:
            taken.append(False)
    assert taken[0] == taken[1]


# A machine without bubblewrap.


@pytest.fixture(scope="session")
def bare_path(tmp_path_factory):
    """A PATH on which are all programs of this machine but bubblewrap."""
    folder = tmp_path_factory.mktemp("bare")
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            if program.name != "bwrap" and not (folder / program.name).is_symlink() and os.access(program, os.X_OK):
                (folder / program.name).symlink_to(program)
    return str(folder)


def without_bubblewrap(bare_path, *words, top):
    environment = os.environ | {"PATH": bare_path, "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "src")])}
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=top, env=environment, capture_output=True, text=True, check=False
    )


PRINTS = "import time\nprint('x' * 5000)\ndef double(x):\n    return 2 * x"
HANGS = "def triple(x):\n    while True:\n        pass"


def test_without_bubblewrap_a_class_is_refused_and_both_ways_out_grade(bare_path, tmp_path):
    course, handed = make_course(tmp_path)
    shutil.copy(TOP / courses.CONFIG, tmp_path)
    course.submit("ada", LAB, handed.filled(double=PRINTS, triple=HANGS))
    done = without_bubblewrap(bare_path, "nbgrader", "autograde", LAB, top=tmp_path)
    assert done.returncode == 1
    assert "Nothing was graded: a sandbox needs bwrap (not on the PATH). apt-get install bubblewrap." in done.stderr
    assert "Traceback" not in done.stderr
    assert not (course.root / "autograded").exists()
    line = re.search(r"c\.ExecuteWithPapermill\.sandbox = False", done.stderr)[0]

    option = re.search(r"--ExecuteWithPapermill\.\S+", done.stderr)[0]  # as the sentence has it
    words = [option, *(f"--ExecuteWithPapermill.{each}" for each in
             ("cell_seconds=2", "output_bytes=99", "parameters=WORLD_SIZE=3"))]  # fmt: skip
    done = without_bubblewrap(bare_path, "nbgrader", "autograde", LAB, *words, top=tmp_path)
    assert done.returncode == 0, done.stderr
    grade = course.grades(LAB)["ada"]
    assert grade.cells["test_double"] == (2.0, 2.0)
    assert "OUTPUT LIMIT in cell [2]: all after 99 bytes is dropped" in grade.verdict.notes
    assert any("stopped, at most 2 s" in note for note in grade.verdict.notes)

    with open(tmp_path / courses.CONFIG, "a") as config:
        config.write(f"\n{line}\n")
    course.submit("ada", LAB, handed.filled())
    done = without_bubblewrap(bare_path, "nbgrader", "autograde", LAB, top=tmp_path)
    assert done.returncode == 0, done.stderr
    assert course.grades(LAB)["ada"].score == 5


@pytest.mark.parametrize("grades_anything", [True, False])
def test_the_sample_class_says_what_is_missing(grades_anything, tmp_path, monkeypatch, capsys):
    missing = ("bwrap", "not on the PATH", "apt-get install bubblewrap")
    monkeypatch.setattr(sandbox, "missing_ability", lambda: missing)
    for step in ("hand_out", "submit", "autograde", "feedback"):
        monkeypatch.setattr(courses.Course, step, lambda *_: 0)
    expected = json.loads((TOP / "tests" / "sample_class" / "expected.json").read_text())["sample_perfect"]
    cells = {name: tuple(pair) for name, pair in expected["cells"].items()}
    grade = courses.Grade(cells, Verdict(expected["verdict"]))
    monkeypatch.setattr(courses.Course, "grades", lambda *_: {"sample_perfect": grade} if grades_anything else {})
    monkeypatch.setattr(courses.Course, "forget", lambda *_: None)
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "nbgrader.log").write_text("the reason")
    status = sample_class.main(["--into", str(tmp_path), "--only", "perfect"])
    said = capsys.readouterr()
    assert status == (not grades_anything)
    if grades_anything:
        assert "No sandboxes here: bwrap, not on the PATH. These submissions are the course's own" in said.out
        assert "apt-get install bubblewrap" in said.out
    else:
        assert said.err.endswith("the reason\n")


def test_papermill_sets_the_parameters_of_a_lab(tmp_path):
    lab = nbformat.read(TOP / "labs" / f"{ONE}.ipynb", as_version=4)
    place = next(i for i, cell in enumerate(lab.cells) if "parameters" in cell.metadata.get("tags", []))
    lab.cells = [*lab.cells[: place + 1], new_code_cell("print(WORLD_SIZE, DEVICE)")]
    nbformat.write(lab, tmp_path / "lab.ipynb")
    words = ["papermill", "lab.ipynb", "out.ipynb", "-p", "WORLD_SIZE", "3", "-p", "DEVICE", "strict"]
    done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[-1].outputs[0].text == "3 strict\n"


# The tables are complete.


def commands(command=cli.main, path="ringzero"):
    """Each command line of ``ringzero`` with its options."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), f"{path} {name}")
    options = [each.opts for each in command.params if isinstance(each, click.Option)]
    yield path, [name for names in options for name in names if name.startswith("--") or len(names) == 1]


def options_of(module):
    """Those that a program of ``python -m`` has."""
    return re.findall(r'add_argument\(\s*"(--[a-z-]+)"', inspect.getsource(importlib.import_module(module)))


def test_each_option_has_a_row():
    rows = [*ASKED, *SHOWN, *ELSEWHERE]
    there = [*commands(), *((f"python -m {module.removesuffix('.__main__')}", options_of(module)) for module in (
        "ringzero_course.authoring.sample_class", "ringzero_course.grading.build_labs", "ringzero.measure.gpu.__main__"))]  # fmt: skip
    without = [
        f"{path} {option}"
        for path, options in there
        for option in options
        if not any(row.startswith(path) and option in row.split() for row in rows)
    ]
    assert not without, "give each a row in a table of this file"
    for row in [*ASKED, *SHOWN, *ELSEWHERE]:
        path, options = max((each for each in there if row.startswith(each[0])), key=lambda each: len(each[0]))
        words = {word for word in shlex.split(row) if word.startswith("--") and "." not in word}
        assert words <= {*options}, f"{path} has no such option"


def test_each_setting_of_grading_has_a_row():
    for configured in (execute.ExecuteWithPapermill, autograde.CourseAutograde):
        own = {name for name, trait in configured.class_traits(config=True).items() if trait.this_class is configured}
        named = {found for row in [*GRADING, *REFUSED] for found in re.findall(rf"{configured.__name__}\.(\w+)=", row)}
        assert own <= named


@pytest.mark.parametrize("text", TEXTS)
def test_each_option_in_a_text_has_a_row(text):
    rows = {word.partition("=")[0] for row in [*ASKED, *SHOWN, *ELSEWHERE, *GRADING, *REFUSED] for word in row.split()}
    for option in re.findall(r"(?<![\w-])--[A-Za-z][\w.-]*", (TOP / text).read_text()):
        assert option.rstrip(".-") in rows | NOT_OURS | OF_TESTS, "give it a row in a table of this file"
