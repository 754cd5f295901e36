import functools
import re
import shutil
from pathlib import Path

import pytest
import torch

from ringzero.ranks import call, pool
from tests.in_turn import in_turn

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = "--no-sandbox --disable-gpu --disable-background-networking --no-first-run --disable-component-update"
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH (apt install chromium)")


# Groups of tests that take longest. They begin first, so that no worker is left alone with one of them at the end.
SLOWEST = (
    "test_book", "test_hostile", "lab 06", "lab 04", "test_grading", "lab 02", "lab 01", "test_generated_faults",
    "lab 09", "lab 03", "test_peers", "test_cluster", "test_strict", "lab 10", "lab 07", "lab 08", "lab 05",
    "test_mutants", "test_methods", "test_compression", "test_survival", "test_parameter_server", "test_gossip",
    "test_local_sgd", "test_zero", "test_zeropp", "test_offload", "test_muon", "test_bert", "test_collectives",
    "test_data_parallel", "test_transformers", "test_launch", "test_bench_launch",
)  # fmt: skip

# Tests of which one in so many runs, unless all are asked for; with 2 ranks all do.
PARTS = {
    "test_wrong_solution_loses_points[": 16,
    "test_wrong_solution_loses_points_with_other_numbers[": 140,
    "test_reference_gets_every_point_with_other_numbers[": 11,
    "test_other_numbers_of_ranks[": 4,
}

torch.set_num_threads(1)  # threads of one process wait for each other where the cores are taken by other tests

# A call of ``launch`` that sets no limit gets one that no load on the machine makes it reach.
call.launch.__kwdefaults__["timeout"] = 1200.0

# Sooner or later a test process has an optimizer step on its ranks: they start with what that imports.
acquire = pool.acquire
pool.acquire = functools.wraps(acquire)(lambda world_size, job=b"": acquire(world_size, job + b"torch.optim"))


def group_of(nodeid):
    """Of a test's id: its lab, whose kernel all tests of the lab share, or else its file."""
    file, _, name = nodeid.partition("::")
    if lab := re.search(r"test_lab_(\d\d)", file) or ("test_labs" in file and re.search(r"[\[-](\d\d)_", name)):
        return f"lab {lab[1]}"
    return Path(file).stem


def pytest_collection_modifyitems(config, items):
    """The slowest groups first. Of tests that are many and alike some, others with each commit."""
    for test, parts in PARTS.items():
        some = [item for item in items if test in item.nodeid and not item.nodeid.endswith("-2]")]
        left = {*some} - {*in_turn(some, parts, config)}
        if left:
            config.hook.pytest_deselected(items=[*left])
            items[:] = [item for item in items if item not in left]
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(group_of(item.nodeid), len(places)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of one group run on one worker. xdist's own ``loadgroup`` does nothing with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return ByGroup(config, log)


def pytest_addoption(parser):
    parser.addoption(
        "--seeds",
        type=int,
        default=1,
        help="with how many seeds test_strict runs each program; so many kills more in test_offload; at how many "
        "random moments test_survival kills ranks, if more than 3; for half of the kills in test_gossip, test_pairwise "
        "and test_parameter_server",
    )
    parser.addoption(
        "--thorough",
        action="store_true",
        help="try every wrong solution, with other sizes and models too, and all numbers of ranks; otherwise some, and "
        "others with each commit",
    )
    parser.addoption("--published", metavar="FILE", help="check the package against this file of published numbers")


@pytest.fixture(scope="session", autouse=True)
def no_rank_outlives_the_tests():
    yield
    pool.stop()


@pytest.fixture(scope="session")
def reference(request):
    """The instructor's notebook of a lab, run from top to bottom in a live kernel."""
    pytest.importorskip("nbgrader")
    from ringzero.grading import build_labs
    from tests.live_notebook import kernel_of

    with kernel_of(build_labs.source_notebook(request.param)) as kernel:
        kernel.run_all()
        yield kernel


def pytest_generate_tests(metafunc):
    """A test that takes ``reference`` runs on the lab that its module names, ``LAB``, or on all of its ``LABS``."""
    if "reference" in metafunc.fixturenames:
        stated = [mark for mark in metafunc.definition.iter_markers("parametrize") if "reference" in mark.args[0]]
        if not stated:
            labs = getattr(metafunc.module, "LABS", None) or [metafunc.module.LAB]
            metafunc.parametrize("reference", labs, indirect=True, scope="session")


@pytest.fixture(scope="module")
def browser():
    """One for all tests of a module: a second one cannot start beside the first."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        yield chromium
        chromium.close()
