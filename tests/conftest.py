import functools
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
import torch

from ringzero.ranks import call, pool
from tests import in_turn

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

# Tests of which one in so many runs, unless all are asked for: others with each commit. For those of a lab's notebook
# no multiple of ``LABS``, or each lab would always have the same ones.
PARTS = {
    "test_wrong_solution_loses_points[": 5,
    "test_wrong_solution_loses_points_with_other_numbers[": 50,
    "test_reference_gets_every_point_with_other_numbers[": 4,
    "test_other_numbers_of_ranks[": 4,
    "test_same_points_the_second_time[": 2,
    "test_untouched_notebook_gets_nothing[": 10,
    "test_the_instructors_cells_need_nothing_of_the_others[": 5,
    "test_what_the_table_calls_right_is_right[": 4,
    "test_ranks_train_as_n_models_in_one_process[": 3,
    "test_a_page_in_light_and_dark[": 6,
    "test_a_page_fits_a_telephone[": 6,
    "test_the_text_of_figures_can_be_read_on_a_telephone[": 6,
    "test_axe_finds_only_what_is_the_theme_s[": 6,
    "test_axe_can_read_all_text_in_dark_mode[": 6,
    "test_without_a_script_and_on_paper_the_figure_stays[": 6,
    "test_all_ranks_send_what_the_formula_says_and_the_loss_falls[": 3,
    "test_the_lock_file_resolves[": 3,
}

# A lab's notebook takes a minute to run. The notebooks of one lab in so many run with a commit, unless a lab or file is
# named; what labs and their checks are made of is tested without one.
LABS = 3

# In these rooms a test runs with one in so many of its parameters, if it has at least as many.
PARAMETERS, OF_ROOMS = 3, ("collectives", "data_parallel", "peers", "strict", "unsynced", "zero")

# Only with ``--thorough``: what a change rarely breaks and what takes minutes. Files, and tests of other files. The
# bare machine's `make course` grades the class of three with each commit, so the class of ten can wait for the night.
NIGHTLY = {
    "test_bench_grading", "test_bench_launch", "test_bench_offload", "test_gradebook_server", "test_gradescope",
    "test_grading_ahead", "test_grading_killed", "test_one_submission", "test_seminar", "test_the_cuda_kernel_compiles",
    # the sample class of ten
    "test_the_sample_class_gets_the_committed_grades", "test_others_submissions_are_left_alone",
    "test_the_submission_that_hangs_costs_its_budget_and_says_who_waits",
    "test_feedback_shows_the_checks_table_and_the_failing_line",
    # the grader, where something is waited for
    "test_a_grader_that_is_killed_is_run_again_and_ends_the_same", "test_a_kernel_that_talks_without_end_is_ended",
    "test_a_kernel_that_takes_no_message_has_ended", "test_a_notebook_has_a_wall_clock_of_its_own",
    "test_the_same_submission_gets_the_same_verdict_again",
    "test_who_knows_the_public_cases_alone_loses_in_a_sealed_course",
    # wrong solutions through the real grader
    "test_a_wrong_solution_is_caught_and_a_right_one_survives", "test_the_command_shows_the_sentence_and_the_seconds",
    # BERT from another run's checkpoint; the bytes of ZeRO++ between nodes; networks of nodes, beyond that they work
    "test_a_checkpoint_that_will_not_do_is_named", "test_a_run_goes_on_with_other_numbers_of_ranks",
    "test_bytes_across_and_inside_nodes_are_those_of_the_formula",
    "test_the_network_ends_with_the_process_that_made_it",
    "test_under_torchrun_launch_joins_its_ranks_and_aligns_their_clocks",
    # an installed wheel measures; two nodes train
    "test_measure", "test_bench_launch_measures_the_peers_that_are_there",
    "test_the_slurm_script_trains_on_two_nodes_as_one_machine_does",
    "test_the_slurm_script_trains_on_two_nodes_as_one_process_does",
}  # fmt: skip

# With ``--quick``: of each room what takes seconds. Files, and tests of files. Others are not even collected.
QUICK = {
    "test_notation", "test_page_python", "test_recorded_on_gpus",  # book
    "test_collectives::test_equal_to_torch_distributed[3]",
    "test_collectives::test_ranks_agree_on_the_sign_of_zero",  # collectives
    "test_costs", "test_unsynced_costs", "test_published_numbers",  # costs
    "test_rooms", "test_public_surface", "test_doctor",  # course
    "test_join", "test_leftover_gradients",  # data_parallel
    "test_diagnose::test_an_error_in_one_rank_is_not_explained_away",  # explain
    "test_figures", "test_profiled",  # figures
    "test_items", "test_feedback", "test_build_labs",  # grading
    "test_claims", "test_traffic", "test_apart",  # lab
    "test_prediction", "test_tasks",  # measure
    "test_peers::test_the_table_has_every_program_and_trainer",
    "test_peers::test_nothing_of_ours_is_silently_wrong",  # peers
    "test_memory_watch", "test_devices",  # ranks
    "test_memory",  # record
    "test_network", "test_planner", "test_steps",  # steps
    "test_strict::test_part_of_a_batch_may_end_before_the_rest",  # strict
    "test_presence",  # unsynced
    "test_zero_groups", "test_zero_gradients_seen", 
    "test_zero::test_bytes_held_equal_the_formula_to_the_byte[2]",  # zero
}  # fmt: skip

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


def names_of(item):
    """By which ``NIGHTLY`` may name it."""
    return {
        Path(item.nodeid.partition("::")[0]).stem,
        group_of(item.nodeid),
        getattr(item, "originalname", ""),
        item.name,
    }


def quick_names_of(item):
    stem = item.path.stem
    return {stem, f"{stem}::{getattr(item, 'originalname', '')}", f"{stem}::{item.name}"}


def pytest_ignore_collect(collection_path, config):
    if config.getoption("quick") and collection_path.suffix == ".py":
        return collection_path.stem not in {name.partition("::")[0] for name in QUICK} or None
    return None


def pytest_configure(config):
    in_turn.thorough = config.getoption("thorough")


def pytest_collection_modifyitems(config, items):
    """The slowest groups first. Of tests that are many and alike some, others with each commit."""
    left = set()
    quick, named = config.getoption("quick"), config.option.keyword or config.option.file_or_dir
    if quick:
        left |= {item for item in items if not quick_names_of(item) & QUICK}
    elif not in_turn.thorough and not named:
        notebooks = [item for item in items if "reference" in getattr(item, "fixturenames", ())]
        today = in_turn.in_turn(sorted({group_of(item.nodeid) for item in notebooks}), LABS)
        left |= {item for item in notebooks if group_of(item.nodeid) not in today}
        alike = defaultdict(list)
        for item in items:
            if item.path.parent.name in OF_ROOMS and not any(test in item.nodeid for test in PARTS):
                alike[item.path, getattr(item, "originalname", item.name)].append(item)
        for some in alike.values():
            left |= {*some} - {*in_turn.in_turn(some, PARAMETERS)} if len(some) >= PARAMETERS else set()
    for test, parts in PARTS.items():
        some = [item for item in items if test in item.nodeid and item not in left]
        left |= {*some} - {*in_turn.in_turn(some, parts)}
    if not in_turn.thorough and not any(".py" in named for named in config.option.file_or_dir):  # a named file is whole
        left |= {item for item in items if names_of(item) & NIGHTLY}
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
        help="everything, as `make nightly`: every wrong solution, with other sizes and models too, all numbers of "
        "ranks, every hostile submission, and tests that take minutes; otherwise some, and others with each commit",
    )
    parser.addoption("--quick", action="store_true", help="a few tests of each room, as `make quick`")
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
