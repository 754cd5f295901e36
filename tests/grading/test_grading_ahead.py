"""A class on several processes or Dask's workers: the grades are those of one grader, also when a worker is lost."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from dask.distributed import Client, LocalCluster

from ringzero_course.grading import ahead, kernels
from tests.grading.test_grading import CLASS, LAB, TOP, command, make_course

NAMES = ["a_good", "b_untouched", "c_kernel_exits", "h_fails_hidden", "i_truncated", "z_good"]
ONLY_WORKERS_EXECUTE = """
import sys
import ringzero_course.grading.run_notebook as _run_notebook
if any(".jobs=2" in word or ".scheduler=" in word for word in sys.argv):
    def _run(*_):
        raise AssertionError("executed in the grader's own process")
    _run_notebook.run = _run  # workers do not read this file
"""
SETTINGS = kernels.Settings({}, 5.0, 5.0, 1000, None)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course, handed = make_course(tmp_path_factory.mktemp("ahead"), ONLY_WORKERS_EXECUTE)
    for name in NAMES:
        course.submit(name, LAB, CLASS[name][0](handed))
    course.submit("twin", LAB, CLASS["a_good"][0](handed))  # the same notebook as another student's
    return course


@pytest.fixture(scope="module")
def alone(course):
    assert command("nbgrader", "autograde", LAB, top=course.top).returncode == 1
    return taken(course)


def cluster_of(workers):
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, scheduler_port=0)


def taken(course):
    """The grades, which are then forgotten."""
    found = {
        name: (grade.as_data(), grade.verdict.reason, grade.verdict.notes, grade.without_table)
        for name, grade in course.grades(LAB).items()
    }
    for folder in ("autograded", "graded"):
        shutil.rmtree(course.root / folder)
    (course.root / "gradebook.db").unlink()
    course.nbgrader("generate_assignment", LAB, "--force", check=True)
    return found


def test_two_processes_give_the_grades_of_one(course, alone):
    done = command("nbgrader", "autograde", LAB, "--CourseAutograde.jobs=2", top=course.top)
    assert done.returncode == 1, done.stderr
    assert "A person must look at 1 of 7:\n  i_truncated" in done.stderr.replace("\n      ", "\n  ")
    assert taken(course) == alone


def test_a_worker_is_killed_half_way(course, alone):
    own = {"threads_per_worker": 1, "dashboard_address": None, "scheduler_port": 0}
    with LocalCluster(n_workers=2, **own) as cluster, Client(cluster) as client:
        words = [
            sys.executable,
            "-m",
            "nbgrader",
            "autograde",
            LAB,
            f"--CourseAutograde.scheduler={client.scheduler.address}",
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "src")])}
        grader = subprocess.Popen(words, cwd=course.top, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            while not (course.root / "autograded" / NAMES[1] / LAB / "verdict.json").exists():
                assert grader.poll() is None, grader.stderr.read()
                time.sleep(0.05)
            while not (busy := [address for address, tasks in client.processing().items() if tasks]):
                assert grader.poll() is None, "nothing was left to execute"
            lost = next(worker for worker in cluster.workers.values() if worker.worker_address == busy[0])
            os.kill(lost.pid, signal.SIGKILL)
            said = grader.communicate()[1]
        finally:
            grader.kill()
            grader.wait()
    assert grader.returncode == 1, said
    assert taken(course) == alone


def test_a_worker_with_another_package_is_refused_by_name():
    with cluster_of(1) as cluster, Client(cluster) as client:
        (worker,) = client.run(_changes_its_package)
        with (
            pytest.raises(ahead.NoWorkersError, match=f"{worker} cannot grade: it has another version"),
            ahead.executing_ahead(1, cluster.scheduler_address, SETTINGS, None),
        ):
            raise AssertionError("not refused")


def _changes_its_package():
    from ringzero_course.grading import ahead

    ahead.of_package = lambda: "another"


def test_a_scheduler_that_does_not_answer_or_has_no_worker_is_named(monkeypatch):
    monkeypatch.setattr(ahead, "ANSWER_SECONDS", 1)
    with (
        pytest.raises(ahead.NoWorkersError, match="no Dask scheduler answers at tcp://127.0.0.1:9 "),
        ahead.executing_ahead(1, "tcp://127.0.0.1:9", SETTINGS, None),
    ):
        raise AssertionError("not refused")
    with cluster_of(0) as cluster:
        address = cluster.scheduler_address
        with (
            pytest.raises(ahead.NoWorkersError, match=f"has no worker. Start one: dask worker {address} --nthreads 1"),
            ahead.executing_ahead(1, address, SETTINGS, None),
        ):
            raise AssertionError("not refused")
