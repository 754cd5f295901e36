"""One submission, graded where there is no course: the score is the course's, in the forms of Gradescope and GitHub."""

import base64
import json
import shutil

import pytest
from click.testing import CliRunner

from ringzero import cli
from ringzero_course.connect import github_actions, gradescope, one_submission
from ringzero_course.grading import build_labs
from ringzero_course.grading import course as courses
from tests.grading.test_grading import BOXED, LAB, make_course, source

WRONG = "def double(x):\n    return 'a|b<script>' * x"
CLASS = {
    "full": {},
    "half": {"double": WRONG},
    "hanging": {"triple": "def triple(x):\n    while True: pass"},
}
SCORES = {"full": 5, "half": 3, "hanging": 2}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course, graded by the command that an instructor types."""
    course, handed = make_course(tmp_path_factory.mktemp("class"))
    for name, cells in CLASS.items():
        course.submit(name, LAB, handed.filled(**cells))
    assert courses.Course(course.top, sandboxed=BOXED).autograde(LAB) == 0
    return course


@pytest.mark.parametrize("which", CLASS)
def test_the_score_is_the_courses_in_each_form(course, which, monkeypatch, tmp_path):
    monkeypatch.setattr(courses, "repository", lambda: course.top)
    monkeypatch.setattr(build_labs, "source_notebook", lambda lab: source())
    handed_in = tmp_path / "repository" / "work"
    handed_in.mkdir(parents=True)
    shutil.copy(course.root / "submitted" / which / LAB / f"{LAB}.ipynb", handed_in / "mine.ipynb")
    files = {name: tmp_path / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for name, file in files.items():
        monkeypatch.setenv(name, str(file))
    graded = []
    grade = one_submission.grade
    monkeypatch.setattr(
        one_submission, "grade", lambda *words, **options: graded.append(grade(*words, **options)) or graded[-1]
    )
    assert github_actions.main([LAB, str(tmp_path / "repository")]) == 0
    expected = course.grades(LAB)[which]
    assert graded[0].score == expected.score == SCORES[which]
    assert graded[0].largest == expected.largest

    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    reported = json.loads(base64.b64decode(outputs["result"]))
    assert float(outputs["score"]) == sum(test["score"] for test in reported["tests"]) == expected.score
    assert float(outputs["max_score"]) == reported["max_score"] == expected.largest
    text = files["GITHUB_STEP_SUMMARY"].read_text()
    assert f"{expected.score:g} of {expected.largest:g} points" in text
    assert "<script>" not in text
    given = gradescope.results(graded[0])
    assert given["score"] == sum(test["score"] for test in given["tests"]) == expected.score
    for shown in (text, json.dumps(reported), json.dumps(given)):
        assert "secret_argument" not in shown
        assert "ababab" not in shown


def test_without_a_score_nothing_is_written(monkeypatch, tmp_path, capsys):
    def fails(*_, **__):
        raise one_submission.NotGradedError("no space left")

    monkeypatch.setattr(one_submission, "grade", fails)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    assert github_actions.main(["lab", str(tmp_path)]) == 1
    assert "no score was given: no space left" in capsys.readouterr().err
    assert not (tmp_path / "output").exists()


def test_the_students_repository_gets_nothing_but_a_workflow(tmp_path):
    into = tmp_path / "out"
    done = CliRunner().invoke(cli.main, ["autograder", "03_cost_models", "--github", "uni/grader", "--into", str(into)])
    assert done.exit_code == 0, done.output
    students = [path for path in (into / "student").rglob("*") if path.is_file()]
    assert [path.relative_to(into / "student").as_posix() for path in students] == [
        ".github/workflows/03_cost_models.yml"
    ]
    workflow = students[0].read_text()
    assert "repository: uni/grader" in workflow
    assert "token: ${{ secrets.GRADER_TOKEN }}" in workflow
    assert workflow.count("persist-credentials: false") == 2
    assert (into / "grader" / "solutions" / "03_cost_models.py").exists()
    assert [path.name for path in (into / "grader" / "solutions").iterdir()] == ["03_cost_models.py"]
    own = (into / "grader" / ".github" / "workflows" / "03_cost_models.yml").read_text()
    assert "GRADER_TOKEN" not in own
    yaml = pytest.importorskip("yaml")
    for text in (workflow, own):
        (job,) = yaml.safe_load(text)["jobs"].values()
        assert job["steps"][-1]["run"].endswith("ringzero_course.connect.github_actions 03_cost_models submission")
    done = CliRunner().invoke(cli.main, ["autograder", "03_cost_models", "--github", "a/b", "--into", str(into)])
    assert "is not empty" in done.output
