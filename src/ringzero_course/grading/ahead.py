"""A class on many processors: Dask's workers execute notebooks before their turn comes.

One process does all the rest as it does without workers, one student after another: it prepares a notebook, takes the
executed one, scores it and writes the gradebook. So order, resuming and verdicts are those of one grader. A worker that
is lost costs time: Dask has another one execute its notebooks.
"""

import hashlib
import json
import logging
import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import dask
from dask.distributed import Client, LocalCluster, TimeoutError

from ringzero_course.boxes import sandbox
from ringzero_course.boxes.fence import end_leftovers
from ringzero_course.grading import run_notebook
from ringzero_course.grading.fingerprint import of_package
from ringzero_course.grading.kernels import Settings

EACH_WORKER = 16  # notebooks under way or done: so many can a slow one hold up
ANSWER_SECONDS = 20  # how long a scheduler may take to answer, and to have a worker
SAY_SECONDS = 30  # so often a wait without any worker is said

_one_at_a_time = threading.Lock()  # a fence takes all new processes of its process for the notebook's


class NoWorkersError(RuntimeError):
    """Nothing can be executed; the message says what to do."""


@contextmanager
def executing_ahead(jobs: int, scheduler: str, settings: Settings, log: logging.Logger) -> Iterator["Ahead"]:
    """Inside, ``ExecuteWithPapermill`` takes what workers executed: ``jobs`` processes here, or those of a Dask
    ``scheduler`` at that address.

    Raises NoWorkersError where there is no worker, or where one lacks what grading needs.
    """
    with _client(jobs, scheduler) as client:
        _refuse_others(client, settings)
        ahead = Ahead(client, settings, log)
        token = run_notebook.runner.set(ahead)
        try:
            yield ahead
        finally:
            run_notebook.runner.reset(token)
            ahead.cancel()


@contextmanager
def _client(jobs, scheduler):
    if not scheduler:
        own = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None, "scheduler_port": 0}
        with (
            tempfile.TemporaryDirectory(prefix="ringzero-dask-") as folder,
            LocalCluster(n_workers=jobs, local_directory=folder, silence_logs=logging.ERROR, **own) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(scheduler, timeout=ANSWER_SECONDS)
    except (OSError, ValueError) as error:
        raise NoWorkersError(f"no Dask scheduler answers at {scheduler} ({error}). Start one: dask scheduler") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=ANSWER_SECONDS)
        except TimeoutError:
            how = f"dask worker {scheduler} --nthreads 1"
            raise NoWorkersError(f"the scheduler at {scheduler} has no worker. Start one: {how}") from None
        yield client


def _refuse_others(client, settings):
    for worker, lacks in client.run(_what_lacks, of_package(), settings).items():
        if lacks:
            raise NoWorkersError(f"the worker at {worker} cannot grade: {lacks}")


def _what_lacks(package, settings):
    """Why this process does not grade as the one that asks would, or ""."""
    if of_package() != package:
        return "it has another version of the ringzero package. Install the same there, and start it again."
    if settings.box is not None and (missing := sandbox.missing_ability()) is not None:
        what, seen, fix = missing
        return f"a sandbox needs {what} ({seen}). {fix}."
    return ""


class Ahead:
    """Stands for ``run_notebook.run``. ``notebooks`` yields what will be asked for, in that order."""

    def __init__(self, client: Client, settings: Settings, log: logging.Logger):
        self._client, self._settings, self._log = client, settings, log
        self._under_way: deque = deque()  # (key, future)
        self.notebooks: Iterator = iter(())

    def look_ahead(self) -> None:
        """Have the workers begin with as many of the notebooks to come as they may."""
        most = EACH_WORKER * max(1, len(self._workers()))
        while len(self._under_way) < most and (nb := next(self.notebooks, None)) is not None:
            future = self._client.submit(_execute, nb, self._settings, of_package(), pure=False, retries=2)
            self._under_way.append((_key(nb), future))

    def __call__(self, nb, settings):
        """As ``run_notebook.run``."""
        key = _key(nb)
        if all(key != other for other, _ in self._under_way):  # the submission changed while its turn came
            return run_notebook.run(nb, settings)
        while self._under_way[0][0] != key:  # one whose turn came, but not to its execution
            self._under_way.popleft()[1].cancel()
        _, future = self._under_way.popleft()
        while True:
            try:
                return future.result(timeout=SAY_SECONDS)
            except TimeoutError:
                if not self._workers():
                    self._log.warning("No worker is left. Waiting for one.")

    def cancel(self) -> None:
        while self._under_way:
            self._under_way.pop()[1].cancel()

    def _workers(self):
        return self._client.scheduler_info(n_workers=-1)["workers"]


def _key(nb):
    """What makes two notebooks the same. Cells' ids do not count: nbformat invents them where there are none."""
    cells = [[cell.cell_type, cell.source, cell.metadata] for cell in nb.cells]
    return hashlib.sha256(json.dumps([cells, nb.metadata], sort_keys=True).encode()).hexdigest()


def _execute(nb, settings, package):
    """What a worker does."""
    for name in dask.config.get("distributed.nanny.pre-spawn-environ"):  # a kernel has as many threads as without Dask
        os.environ.pop(name, None)
    if lacks := _what_lacks(package, settings):
        raise NoWorkersError(lacks)
    with _one_at_a_time:
        end_leftovers()  # of a worker that was lost here
        return run_notebook.run(nb, settings)
