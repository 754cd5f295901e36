import functools
import os
import re
import shutil
import signal
import tempfile
import zlib
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
    "lab 09", "lab 03", "test_peers", "test_cluster", "test_strict", "lab 10", "lab 07", "lab 08", "lab 05", "lab 11",
    "test_mutants", "test_methods", "test_compression", "test_survival", "test_parameter_server", "test_gossip",
    "test_local_sgd", "test_zero", "test_zeropp", "test_offload", "test_muon", "test_bert", "test_collectives",
    "test_data_parallel", "test_transformers", "test_launch", "test_bench_launch",
)  # fmt: skip

# How often a test runs: one of its cases in so many with a commit, and others with the next; 0 is by night alone
# (``--thorough``). By the name of a test, of a file or of a room, whichever is nearest; all of a file that is named on
# the command line. By its room's number at least one case of a test runs.
TURNS = {
    # rooms
    "book": 5, "collectives": 5, "course": 5, "data_parallel": 5, "dumps": 5, "explain": 5, "measure": 5, "peers": 5,
    "ranks": 5, "same": 5, "steps": 5, "strict": 5, "unsynced": 5, "zero": 5,
    # every page or every lab, with each commit others
    "test_a_page_in_light_and_dark": 6, "test_a_page_fits_a_telephone": 6, "test_axe_can_read_all_text_in_dark_mode": 6,
    "test_the_text_of_figures_can_be_read_on_a_telephone": 6, "test_axe_finds_only_what_is_the_theme_s": 6,
    "test_without_a_script_and_on_paper_the_figure_stays": 6, "test_untouched_notebook_gets_nothing": 10,
    "test_wrong_solution_loses_points": 5, "test_wrong_solution_loses_points_with_other_numbers": 50,
    "test_reference_gets_every_point_with_other_numbers": 4, "test_other_numbers_of_ranks": 4,
    "test_same_points_the_second_time": 2, "test_another_right_solution_gets_every_point": 6,
    "test_the_instructors_cells_need_nothing_of_the_others": 5,
    "test_what_the_table_calls_right_is_right": 8,
    # one case that takes more than ten seconds
    "test_measured_is_as_planned": 5, "test_a_disk_that_is_full": 5, "test_the_right_rank_and_line_are_named": 5,
    "test_a_page_runs_when_what_it_depends_on_has_changed": 5, "test_broken_programs_cannot_be_edited_away": 5,
    "test_costs_in_micropython_are_those_here": 5, "test_a_fault_of_the_grader_is_not_a_score": 5,
    "test_a_gradebook_that_another_program_holds": 5, "test_each_room_imports_only_what_its_extra_brings": 5,
    "test_the_right_solution_gets_full_marks_and_finds_no_other_files": 5,
    "test_ranks_in_a_box_do_not_see_the_graders_environment": 5, "test_a_fault_in_a_test_cell_is_graded_again": 5,
    "test_zero_holds_and_sends_what_the_formulas_say": 5, "test_all_collectives_in_rows_and_columns": 5,
    "test_a_warm_rank_that_ended_between_calls_is_replaced": 5,
    "test_a_pool_is_lent_until_its_borrower_breaks_it_or_ends_with_it": 5,
    "test_new_ranks_have_what_calls_import": 5,
    "test_a_changed_notebook_is_graded_again_without_a_timestamp": 5, "test_an_endless_loop_is_not_run_again": 5,
    "test_without_bubblewrap_a_class_is_refused_and_both_ways_out_grade": 5, "test_rows_are_plain_data": 5,
    "test_formulas_agree_with_the_counted_schedules": 5, "test_output_and_the_last_value_come_back_by_rank": 5,
    "test_nothing_is_left_after_stop": 5, "test_a_page_that_fails_ends_the_build_and_runs_again": 5,
    "test_the_curve_is_that_of_one_process_without_any_wrapper": 5, "test_on_five_ranks": 5,
    "test_ranks_that_do_not_come_to_the_students_code_are_no_score": 5, "test_ranks_in_a_box_begin_as_others_do": 5,
    "test_an_interrupt_ends_the_ranks_and_the_next_call_works": 5, "test_ranks_know_their_place": 5,
    "test_quantised_training_learns_as_plain_training_does": 5, "test_nothing_that_the_wheel_asks_for_is_missing": 5,
    "test_without_error_feedback_training_is_worse": 5, "test_one_that_hangs_is_ended_with_all_that_it_started": 5,
    "test_the_link_between_nodes_is_limited_and_inside_a_node_it_is_not": 5, "test_a_cell_that_measures_runs_alone": 5,
    "test_the_first_script_of_chapter_2_runs_without_this_library": 5, "test_what_hostile_calls_leave_is_counted": 5,
    "test_daemons_a_rank_started_are_ended_with_the_call": 5, "test_parameters_cell_removed": 5,
    "test_a_class_built_on_an_older_one_is_not_checked": 5, "test_another_release_grades_all_again": 5,
    "test_options_types_and_awkward_models_bit_for_bit": 5, "test_on_strict_which_has_nccl_s_rules": 5,
    "test_a_second_grader_waits_or_says_who_is_at_work": 5,
    "test_two_levels_train_as_one_process_on_the_whole_batch": 5,
    "test_every_home_trains_as_the_device_bit_for_bit": 5, "test_the_trace_has_every_operation": 5,
    "test_whoever_is_killed_while_writing_finds_the_last_complete_step": 5,
    "test_typical_mistakes_are_said_in_the_students_own_lines": 5, "test_what_happens_once_costs_nothing": 2,
    # by night: what a change rarely breaks and what takes minutes. The bare machine's `make course` grades the class of
    # three with each commit, so the class of ten can wait.
    "test_bench_grading": 0, "test_bench_launch": 0, "test_bench_offload": 0, "test_gradebook_server": 0,
    "test_gradescope": 0, "test_grading_ahead": 0, "test_grading_killed": 0, "test_one_submission": 0,
    "test_seminar": 0, "test_the_cuda_kernel_compiles": 0,
    # the sample class of ten
    "test_the_sample_class_gets_the_committed_grades": 0, "test_others_submissions_are_left_alone": 0,
    "test_the_submission_that_hangs_costs_its_budget_and_says_who_waits": 0,
    "test_feedback_shows_the_checks_table_and_the_failing_line": 0,
    # the grader, where something is waited for
    "test_a_grader_that_is_killed_is_run_again_and_ends_the_same": 0,
    "test_a_kernel_that_talks_without_end_is_ended": 0, "test_a_kernel_that_takes_no_message_has_ended": 0,
    "test_a_notebook_has_a_wall_clock_of_its_own": 0, "test_the_same_submission_gets_the_same_verdict_again": 0,
    "test_who_knows_the_public_cases_alone_loses_in_a_sealed_course": 0,
    # wrong solutions through the real grader
    "test_a_wrong_solution_is_caught_and_a_right_one_survives": 0,
    "test_the_command_shows_the_sentence_and_the_seconds": 0,
    # the contributors' page followed in a copy of the repository
    "test_new_cell": 0,
    # BERT from another run's checkpoint; the bytes of ZeRO++ between nodes; networks of nodes, beyond that they work
    "test_a_checkpoint_that_will_not_do_is_named": 0, "test_a_run_goes_on_with_other_numbers_of_ranks": 0,
    "test_bytes_across_and_inside_nodes_are_those_of_the_formula": 0,
    "test_the_network_ends_with_the_process_that_made_it": 0,
    "test_under_torchrun_launch_joins_its_ranks_and_aligns_their_clocks": 0,
    # a wheel installed and used; two nodes train
    "test_wheel": 0, "test_measure": 0, "test_bench_launch_measures_the_peers_that_are_there": 0,
    "test_the_slurm_script_trains_on_two_nodes_as_one_machine_does": 0,
    "test_the_slurm_script_trains_on_two_nodes_as_one_process_does": 0,
}  # fmt: skip

# A lab's notebook takes a minute to run. The notebooks of one lab in so many run with a commit, unless a lab or file is
# named; what labs and their checks are made of is tested without one.
LABS = 5

# With ``--quick``: of each room what takes seconds. Files, and tests of files. Others are not even collected.
QUICK = {
    "test_mutants::test_there_are_wrong_solutions_for_every_test_cell",
    "test_mutants::test_what_counts_as_caught",  # authoring
    "test_notation", "test_page_python", "test_recorded_on_gpus",  # book
    "test_collectives::test_equal_to_torch_distributed[3]",
    "test_collectives::test_ranks_agree_on_the_sign_of_zero",  # collectives
    "test_one_submission::test_the_students_repository_gets_nothing_but_a_workflow",  # connect
    "test_costs", "test_unsynced_costs", "test_published_numbers",  # costs
    "test_rooms", "test_public_surface", "test_torchs_inside", "test_doctor",  # course
    "test_join", "test_leftover_gradients",  # data_parallel
    "test_command::test_what_it_says_and_saves",  # dumps
    "test_diagnose::test_an_error_in_one_rank_is_not_explained_away",  # explain
    "test_figures", "test_profiled",  # figures
    "test_items", "test_feedback", "test_build_labs", "test_watches",  # grading
    "test_claims", "test_traffic", "test_apart",  # lab
    "test_prediction", "test_tasks",  # measure
    "test_peers::test_the_table_has_every_program_and_trainer",
    "test_peers::test_nothing_of_ours_is_silently_wrong",  # peers
    "test_durable",  # processes
    "test_devices",  # ranks
    "test_memory",  # record
    "test_network", "test_planner", "test_steps",  # steps
    "test_same::test_the_command_says_and_saves_what_it_found",  # same
    "test_strict::test_part_of_a_batch_may_end_before_the_rest",  # strict
    "test_presence",  # unsynced
    "test_zero_groups", "test_zero_gradients_seen", 
    "test_zero::test_bytes_held_equal_the_formula_to_the_byte[2]",  # zero
}  # fmt: skip

torch.set_num_threads(1)  # threads of one process wait for each other where the cores are taken by other tests

# A call of ``launch`` that sets no limit gets one that no load on the machine makes it reach.
call.launch.__kwdefaults__["timeout"] = 1200.0


def group_of(nodeid):
    """Of a test's id: its lab, whose kernel all tests of the lab share, or else its file."""
    file, _, name = nodeid.partition("::")
    if lab := re.search(r"test_lab_(\d\d)", file) or ("test_labs" in file and re.search(r"[\[-](\d\d)_", name)):
        return f"lab {lab[1]}"
    return Path(file).stem


def waiting(items, named):
    """Those of the ``items`` that are for another commit or for the night.

    Where a room or a lab is ``named``, only tests that are many and alike wait for another commit.
    """
    commit, left = in_turn.number_of_the_commit(), set()
    if not named:
        notebooks = [item for item in items if "reference" in getattr(item, "fixturenames", ())]
        today = in_turn.in_turn(sorted({group_of(item.nodeid) for item in notebooks}), LABS)
        left = {item for item in notebooks if group_of(item.nodeid) not in today}
        commit //= LABS  # so that each lab has each of its tests in turn
    cases = defaultdict(list)
    for item in items:
        if item not in left:
            cases[item.path, getattr(item, "originalname", item.name)].append(item)
    for (path, test), some in cases.items():
        room = path.parent.name
        name = next((name for name in (test, path.stem, room) if name in TURNS), "")
        turns = TURNS.get(name, 1)
        if turns and named and (name == room or len(some) < turns):
            continue
        if name == room:
            turns = min(turns, len(some))
        first = commit + zlib.crc32(f"{path.name} {test}".encode())
        left |= {item for place, item in enumerate(some) if not turns or (first + place) % turns}
    return left


def quick_names_of(item):
    stem = item.path.stem
    return {stem, f"{stem}::{getattr(item, 'originalname', '')}", f"{stem}::{item.name}"}


def pytest_ignore_collect(collection_path, config):
    if config.getoption("quick") and collection_path.suffix == ".py":
        return collection_path.stem not in {name.partition("::")[0] for name in QUICK} or None
    return None


def pytest_configure(config):
    if not os.access(Path.home(), os.W_OK):  # IPython, matplotlib and uv write there, and complain where they cannot
        os.environ["HOME"] = home = tempfile.mkdtemp(prefix="rz-home-")
        config.add_cleanup(functools.partial(shutil.rmtree, home, ignore_errors=True))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is behind a shell's &, and programs would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    in_turn.thorough = config.getoption("thorough")


def pytest_collection_modifyitems(config, items):
    """The slowest groups first. Of tests that are many and alike some, others with each commit."""
    quick, named = config.getoption("quick"), config.option.keyword or config.option.file_or_dir
    if quick:
        left = {item for item in items if not quick_names_of(item) & QUICK}
    elif in_turn.thorough or any(".py" in name for name in config.option.file_or_dir):
        left = set()
    else:
        left = waiting(items, bool(named))
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
    from ringzero_course.grading import build_labs
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
