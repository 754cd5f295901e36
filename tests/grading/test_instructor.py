"""``ringzero release`` and ``ringzero grades``: what they do, and what they say when something is missing."""

import csv
import io
import shutil
import zipfile

import pytest
from click.testing import CliRunner

from ringzero import cli
from ringzero_course.authoring import submission
from ringzero_course.connect import collect, similar
from ringzero_course.grading import course as courses
from ringzero_course.grading import exports, needs, report
from ringzero_course.grading.verdict import Verdict

LAB = "03_cost_models"


def ringzero(*words):
    done = CliRunner().invoke(cli.main, words)
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    top = tmp_path_factory.mktemp("instructor")
    shutil.copy(courses.repository() / courses.CONFIG, top)
    return courses.Course(top)


@pytest.fixture(autouse=True)
def in_place_of_the_repositorys(course, monkeypatch):
    monkeypatch.setattr(courses, "Course", lambda top: course)


def test_a_lab_that_does_not_exist_is_named_beside_those_that_do():
    for command in ("release", "grades"):
        status, said = ringzero(command, "03_cost")
        assert status == 2
        assert "there is no lab '03_cost'; the labs are 01_collectives, " in said


def test_grading_what_is_not_released_says_so(course):
    assert not course.root.exists()
    for handed_in in (False, True):
        if handed_in:
            course.submit("ada", LAB, submission.submission(LAB))
        done = course.nbgrader("autograde", LAB)
        assert done.returncode == 1
        assert f"{LAB} is not released in this course. Do that first: ringzero release {LAB}" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (course.root / "autograded" / "ada").exists()


def test_from_release_to_a_table(course, tmp_path, monkeypatch):
    status, said = ringzero("release", LAB)
    assert status == 0, said
    handed_out = course.root / "release" / LAB / f"{LAB}.ipynb"
    assert str(handed_out) in said
    assert "### BEGIN HIDDEN TESTS" not in handed_out.read_text()

    assert "needs a look: ada: not graded: run nbgrader autograde" in ringzero("grades", LAB)[1]
    grade = courses.Grade(
        {"test_count": (2.0, 3.0), "a_plan": (0.0, 3.0)}, Verdict("ok"), ("a_plan",), name="Ada Lovelace"
    )
    monkeypatch.setattr(type(course), "grades", lambda *_: {"ada": grade})
    course.submit("bob", LAB, b"not a notebook")
    file = tmp_path / "grades.csv"
    status, said = ringzero("grades", LAB, "--csv", str(file))
    assert status == 0, said
    assert "needs a look: ada: a_plan waits for a grade" in said
    assert "needs a look: bob: not graded" in said
    assert "test_count" not in said.partition("with the rest")[2]
    status, said = ringzero("grades", LAB, "--items")
    assert status == 0, said
    assert "test_count       3   2.00    0%              –" in said
    assert list(csv.reader(file.read_text().splitlines())) == [
        ["student", "name", "score", "so far", "out of", "penalty", "late hours", "waits for a person", "verdict"],
        ["ada", "Ada Lovelace", "", "2.0", "6.0", "0.0", "0.0", "a_plan waits for a grade", "ok"],
        ["bob", "", "", "", "", "", "", "not graded: run nbgrader autograde", "not graded"],
    ]


def test_nobody_has_handed_in():
    assert "nobody has handed in 05_memory" in ringzero("grades", "05_memory")[1]


def test_what_is_not_final_is_no_zero_for_canvas():
    waits = courses.Grade({"t": (2.0, 3.0)}, Verdict("ok"), manual=("t",), lms_id="17")
    graded = {
        "ada": courses.Grade({"t": (0.3, 3.0)}, Verdict("ok"), name="Ada Lovelace", lms_id="9", penalty=0.1),
        "bob": waits,
        "cyd": courses.Grade({"t": (0.0, 3.0)}, Verdict("invalid submission", "is empty")),
        "dan": courses.Grade({"t": (0.0, 3.0)}, Verdict("student fault", "NotImplementedError")),
    }
    file = io.StringIO()
    exports.write_canvas(file, LAB, graded)
    assert list(csv.reader(file.getvalue().splitlines())) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LAB],
        ["    Points Possible", "", "", "", "", "3.0"],
        ["Ada Lovelace", "9", "", "ada", "", "0.2"],
        ["bob", "17", "", "bob", "", ""],
        ["cyd", "", "", "cyd", "", ""],
        ["dan", "", "", "dan", "", "0.0"],
    ]


def test_who_needs_a_look_and_why():
    late = courses.Grade({}, Verdict("ok"), late_seconds=3 * 3600.0, penalty=2.0, without_table=("test_a",))
    graded = {
        "ada": courses.Grade({}, Verdict("ok")),
        "bob": courses.Grade({}, Verdict("limit", "no end after 20 s"), manual=("why",)),
        "cyd": late,
    }
    assert needs.of_class(graded, {"ada", "bob", "cyd", "dan"}) == {
        "bob": ["limit: no end after 20 s", "why waits for a grade"],
        "cyd": ["test_a ran and left no table of its checks", "late by 3 h, 2 points off"],
        "dan": [needs.NOT_GRADED],
    }
    page = report.page("<lab>", graded, {"dan"})
    assert "Who needs a look (3 of 4)" in page
    assert "limit: no end after 20 s<br>why waits for a grade" in page
    assert "<lab>" not in page


ZIPS = {
    "Canvas": (
        {"doejane_LATE_12_34_04_ddp-1.ipynb": b"late", "bitb_56_78_04_ddp.ipynb": b"b"},
        {"doejane_12": b"late", "bitb_56": b"b"},
    ),
    "Canvas, two of one name": (
        {"doejane_12_34_04_ddp.ipynb": b"1", "doejane_56_78_04_ddp-2.ipynb": b"2", "doejane_56_79_notes.ipynb": b"0"},
        {"doejane_12": b"1", "doejane_56": b"2"},
    ),
    "Canvas, no letters of a to z": (
        {"müllerjörg_5_6_04_ddp.ipynb": b"m", "李明_7_8_04_ddp.ipynb": b"l"}, {"müllerjörg_5": b"m", "李明_7": b"l"}
    ),
    "Canvas, a group": ({"the_a_team_9_10_04_ddp.ipynb": b"t"}, {"the_a_team_9": b"t"}),
    "Canvas, anonymous": (
        {"anon_Xk3fq_9_04_ddp.ipynb": b"x", "LATE_anon_b2C4d_8_04_ddp.ipynb": b"b"},
        {"anon_xk3fq": b"x", "anon_b2c4d": b"b"},
    ),
    "Canvas, a name of digits": ({"1234_5_6_04_ddp.ipynb": b"d"}, {"1234_5": b"d"}),
    "Moodle": ({"Jane Doe_77_assignsubmission_file_/04_ddp.ipynb": b"j"}, {"jane_doe_77": b"j"}),
    "folders": ({"class/ada/04_ddp/04_ddp.ipynb": b"a", "bob/04_ddp.ipynb": b"b"}, {"ada": b"a", "bob": b"b"}),
    "two of one": ({"ada/notes.ipynb": b"0", "ada/04_ddp.ipynb": b"1", "ada/other.ipynb": b"2"}, {"ada": b"1"}),
    "a way out": ({"../../evil/04_ddp.ipynb": b"e", "x.txt": b"", "04_ddp.ipynb": b""}, {"evil": b"e"}),
}  # fmt: skip


@pytest.mark.parametrize("made_by", ZIPS)
def test_notebooks_out_of_a_zip_file(made_by, tmp_path):
    files, expected = ZIPS[made_by]
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    found, left_out = collect.notebooks(tmp_path / "all.zip", "04_ddp")
    assert {student: each.content for student, each in found.items()} == expected
    assert len(left_out) == len(files) - len(expected)


def test_a_file_that_cannot_be_read_is_left_out_alone(tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("ada", "bob", "eve"):
            archive.writestr(f"{name}/04_ddp.ipynb", name * 100)
    entry = zipfile.ZipFile(tmp_path / "all.zip").getinfo("bob/04_ddp.ipynb")
    content = bytearray((tmp_path / "all.zip").read_bytes())
    content[entry.header_offset + 30 + len(entry.filename) + 3] ^= 255  # of what it holds, behind its header
    (tmp_path / "all.zip").write_bytes(content)
    found, left_out = collect.notebooks(tmp_path / "all.zip", "04_ddp")
    assert sorted(found) == ["ada", "eve"]
    (why,) = left_out
    assert why.startswith("bob/04_ddp.ipynb: it cannot be read (")


def test_of_two_the_one_that_can_be_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in ("04_ddp.ipynb", "04_ddp_again.ipynb"):
            archive.writestr(f"ada/{name}", name)
    content = (tmp_path / "all.zip").read_bytes().replace(b"ipynb04_ddp_again", b"ipynb04_ddp_AGAIN")  # not its CRC
    (tmp_path / "all.zip").write_bytes(content)
    found, left_out = collect.notebooks(tmp_path / "all.zip", "04_ddp")
    assert found == {"ada": collect.Collected(b"04_ddp.ipynb", "ada/04_ddp.ipynb")}
    assert len(left_out) == 1


def test_collecting_puts_the_notebooks_in_their_place(course, tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("eve/final.ipynb", b"whatever")
    status, said = ringzero("collect", LAB, str(tmp_path / "all.zip"))
    assert status == 0, said
    assert (course.root / "submitted" / "eve" / LAB / f"{LAB}.ipynb").read_bytes() == b"whatever"
    (tmp_path / "no.zip").write_text("no")
    status, said = ringzero("collect", LAB, str(tmp_path / "no.zip"))
    assert status == 2
    assert "is no zip file" in said


def test_a_number_of_canvas_is_who_it_is(course, tmp_path):
    """Not the name: two of one name in two zip files, one of them in the roster by another name."""
    with course.gradebook() as gradebook:
        gradebook.update_or_create_student("jane", first_name="Jane", last_name="Doe", lms_user_id="12")
    for number, file in (("12", "first.zip"), ("56", "second.zip")):
        with zipfile.ZipFile(tmp_path / file, "w") as archive:
            archive.writestr(f"doejane_LATE_{number}_3_{LAB}.ipynb", number)
        status, said = ringzero("collect", LAB, str(tmp_path / file))
        assert status == 0, said
        assert f"late, says Canvas: when, belongs in {course.root}/submitted/" in said
    assert {student: (course.root / "submitted" / student / LAB / f"{LAB}.ipynb").read_text()
            for student in ("jane", "doejane_56")} == {"jane": "12", "doejane_56": "56"}  # fmt: skip
    assert course.roster() == {"12": "jane", "56": "doejane_56"}


def test_a_name_in_utf_8_that_does_not_say_so(tmp_path):
    """As Canvas writes it: the flag for UTF-8 is not set."""
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("m__ller_5_6_04_ddp.ipynb", b"m")
    content = (tmp_path / "all.zip").read_bytes().replace(b"m__ller", "müller".encode())
    (tmp_path / "all.zip").write_bytes(content)
    found, left_out = collect.notebooks(tmp_path / "all.zip", "04_ddp")
    assert (list(found), left_out) == (["müller_5"], [])


def test_jobs_and_a_scheduler_are_two_ways():
    status, said = ringzero("grade", LAB, "--jobs", "2", "--scheduler", "tcp://here:1")
    assert status == 2
    assert "--jobs 2 is for this machine" in said


def test_similar_exports_what_students_wrote(course, tmp_path):
    mine = "def ring_cost(n):\n    return 2 * (n - 1), 2 * (n - 1) / n"
    course.submit("eve", LAB, submission.submission(LAB, {"ring_cost": mine}, filled=False))
    course.submit("fay", LAB, submission.submission(LAB, filled=False))
    course.submit("gus", LAB, b"not a notebook")
    status, said = ringzero("similar", LAB, "--into", str(tmp_path / "out"))
    assert status == 0, said
    assert "left out: fay: as it was handed out" in said
    assert "left out: gus: no notebook that can be read (JSONDecodeError)" in said
    text = (tmp_path / "out" / "solutions" / "eve" / f"{LAB}.py").read_text()
    assert mine in text
    assert "check.score()" not in text
    compile(text, "eve", "exec")
    template = (tmp_path / "out" / similar.TEMPLATE / f"{LAB}.py").read_text()
    assert "NotImplementedError" in template
    assert mine not in template
    rows = list(csv.reader((tmp_path / "out" / "info.csv").read_text().splitlines()))
    assert ["filename", "label"] in rows
    assert [f"solutions/eve/{LAB}.py", "eve"] in rows
    assert ringzero("similar", LAB, "--into", str(tmp_path / "out"))[0] == 2
