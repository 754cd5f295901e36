"""``ringzero explain`` on dumps of NCCL in the formats of torch 2.5 to 2.13: the cause, the ranks, their lines."""

import pytest

from ringzero.dumps import explain
from ringzero.explain.partial import AllThere, NoRecord, Passed
from tests.dumps.samples import FORMATS, Rank, job


def healthy(rank):
    rank.call("broadcast", 10).call("all_reduce", 12).call("all_reduce", 12)


def absent(rank):
    """Rank 2 leaves out the second all-reduce; NCCL lets the others go on to the next call."""
    healthy(rank)
    if rank.rank != 2:
        rank.call("all_gather", 14, state="started").call("barrier", 15, state="scheduled")


def another_collective(rank):
    healthy(rank)
    rank.call("reduce_scatter" if rank.rank == 1 else "all_gather", 20 + rank.rank // 2, state="started")


def another_size(rank):
    healthy(rank)
    rank.call("all_reduce", 16, state="started", size=(1000 if rank.rank == 3 else 1024,))


def another_type(rank):
    healthy(rank)
    rank.call("all_reduce", 16, state="started", dtype="Half" if rank.rank == 0 else "Float")


def left_out(rank):
    """Rank 1 skips line 31 and goes on with the next lines, so that it meets the others one call late."""
    healthy(rank)
    for line in (30, 31, 32, 33):
        if (rank.rank, line) != (1, 31):
            rank.call("all_reduce", line, state="started" if line == 33 else "completed")


def in_a_subgroup(rank):
    healthy(rank)
    if rank.rank in (1, 3):
        rank.call("all_reduce", 40, group="7")
    if rank.rank == 1:
        rank.call("all_reduce", 41, group="7", state="started")
    elif rank.rank != 3:
        rank.call("all_reduce", 42, state="started")


def message_missing(rank):
    healthy(rank)
    if rank.rank == 0:
        rank.message("recv", 1, 50, state="started")
    else:
        rank.call("all_reduce", 52, state="started")


def batches_in_other_orders(rank):
    """Each stands behind another message in its rank's queue."""
    peer = 1 - rank.rank
    if rank.rank < 2:
        rank.message("send", peer, 60, state="started").message("recv", peer, 61, state="scheduled")


def message_left_out(rank):
    """Rank 1 leaves out its send and issues what follows, which the others have behind what waits for it."""
    healthy(rank)
    if rank.rank == 2:
        rank.message("recv", 1, 62, state="started")
    rank.call("all_reduce", 63, state="scheduled" if rank.rank == 2 else "started")


def left_out_of_a_subgroup(rank):
    """The same with a collective: rank 3 goes on to the one of all ranks."""
    healthy(rank)
    if rank.rank == 1:
        rank.call("all_reduce", 64, group="7", state="started")
    rank.call("all_reduce", 65, state="scheduled" if rank.rank == 1 else "started")
    if rank.rank == 3:
        rank.call("barrier", 66, state="scheduled")


GROUPS = {"7": [1, 3]}
EXPECTED = {  # program -> (ranks to look at, what its sentence begins with)
    absent: ([2], "rank 2 never entered all_gather #1; ranks 0, 1, 3 wait there, train.py line 14; rank 2 is at"),
    another_collective: (
        [1],
        "rank 1 stands apart: the ranks disagree on collective #4: ranks 0, 2, 3 called all_gather #1, train.py line "
        "20 and train.py line 21; rank 1 called reduce_scatter #1",
    ),
    another_size: (
        [3],
        "rank 3 stands apart: the ranks disagree on collective #4: ranks 0, 1, 2 called all_reduce #3 on 4096 bytes of "
        "float32, train.py line 16; rank 3 called all_reduce #3 on 4000 bytes",
    ),
    another_type: (
        [0],
        "rank 0 stands apart: the ranks disagree on collective #4: ranks 1, 2, 3 called all_reduce #3 on 4096 bytes of "
        "float32, train.py line 16; rank 0 called all_reduce #3 on 2048 bytes of float16",
    ),
    left_out: (
        [1],
        "rank 1 left out all_reduce #4; ranks 0, 2, 3 called it, train.py line 31; rank 1 called the next one in its "
        "place, train.py line 32.",
    ),
    in_a_subgroup: ([3], "rank 3 never entered "),
    message_missing: (
        [0, 1],
        "a cycle: rank 0 waits to receive from rank 1, train.py line 50; rank 1 waits in all_reduce for rank 0, "
        "train.py line 52.",
    ),
    message_left_out: (
        [1],
        "rank 1 stands apart: rank 1 sent rank 2 nothing; rank 2 waits to receive from rank 1, train.py line 62; "
        "rank 1 waits in all_reduce, train.py line 63.",
    ),
    left_out_of_a_subgroup: (
        [3],
        "rank 3 never entered all_reduce #1; rank 1 waits there, train.py line 64; rank 3 waits in all_reduce, "
        "train.py line 65.",
    ),
    batches_in_other_orders: ([0, 1], "gloo forgives this, NCCL does not: "),
}


@pytest.mark.parametrize("torch", FORMATS)
@pytest.mark.parametrize("program", EXPECTED, ids=lambda program: program.__name__)
def test_the_cause_is_named(program, torch, tmp_path):
    found = explain([job(tmp_path, 4, program, GROUPS, torch=torch)])
    ranks, begins = EXPECTED[program]
    assert found.sentence.startswith(begins), found.sentence
    assert (found.ranks, found.is_wrong) == (ranks, True)
    assert found.next


@pytest.mark.parametrize("torch", FORMATS)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_job_in_which_all_ended_is_right(torch, as_json, tmp_path):
    def program(rank):
        healthy(rank)
        rank.batch([("send", (rank.rank + 1) % 4), ("recv", (rank.rank - 1) % 4)], 70)
        rank.coalesced("_broadcast_oop", [(3,), (5,)], 71)
        if rank.rank in (1, 3):
            rank.call("all_reduce", 72, group="7")
        rank.call("barrier", 73)

    found = explain([job(tmp_path, 4, program, GROUPS, torch=torch, as_json=as_json)])
    assert not found.is_wrong, found.sentence
    assert (found.cause, found.ranks, found.notes(), found.next) == (None, [], [], "")


def test_json_has_no_lines_and_that_is_said(tmp_path):
    found = explain([job(tmp_path, 4, absent, as_json=True)])
    assert found.ranks == [2]
    assert "ranks 0, 1, 3 wait there, at a line that the dump does not hold" in found.sentence


def test_a_full_buffer_is_aligned_by_the_numbers_of_the_collectives(tmp_path):
    """Rank 2 came 50 calls less far, so that its buffer begins earlier."""

    def program(rank):
        for number in range(350 if rank.rank == 2 else 400):
            rank.call("all_reduce", 12, state="completed" if number < 350 else "scheduled")

    found = explain([job(tmp_path, 4, program, last=200)])
    assert found.sentence.startswith(
        "rank 2 never entered all_reduce (collective #351 of its group); ranks 0, 1, 3 wait there, train.py line 12"
    )
    assert any("last operations only" in note for note in found.notes())


def test_ranks_whose_buffers_have_nothing_in_common(tmp_path):
    def program(rank):
        for number in range(10 if rank.rank == 2 else 400):
            rank.call("all_reduce", 12, state="completed" if number < 10 else "scheduled")

    found = explain([job(tmp_path, 4, program, last=200)])
    assert found.ranks == [2]
    assert "rank 2 never entered all_reduce (collective #201 of its group)" in found.sentence


def test_a_rank_without_a_dump_is_suspected_and_not_accused(tmp_path):
    found = explain([job(tmp_path, 4, absent, without=[2])])
    assert isinstance(found.cause, AllThere)
    assert found.sentence.startswith("rank 2 left no record; ranks 0, 1, 3 wait in all_gather #1, train.py line 14")
    assert found.notes() == ["No dump of rank 2: there is no file of it."]


def test_another_rank_without_a_dump_changes_nothing(tmp_path):
    found = explain([job(tmp_path, 4, another_collective, without=[3])])
    assert found.ranks == [1]
    assert "ranks 0, 2 called all_gather #1" in found.sentence


def test_a_message_from_a_rank_without_a_dump_is_no_cause(tmp_path):
    found = explain([job(tmp_path, 4, message_missing, without=[1])])
    assert found.ranks == [0], found.sentence  # it is the one that did not come to the all-reduce


def test_only_a_rank_is_missing(tmp_path):
    found = explain([job(tmp_path, 4, healthy, without=[3])])
    assert isinstance(found.cause, NoRecord)
    assert found.ranks == [3]


def test_a_collective_that_the_root_has_left_already(tmp_path):
    def program(rank):
        healthy(rank)
        if rank.rank != 3:
            rank.call("broadcast", 80)

    found = explain([job(tmp_path, 4, program)])
    assert isinstance(found.cause, Passed)
    assert found.sentence.startswith("rank 3 never entered broadcast #2; ranks 0, 1, 2 passed it, train.py line 80")


def test_all_are_there_and_it_does_not_end(tmp_path):
    def program(rank):
        healthy(rank)
        rank.call("all_reduce", 90, state="started")

    found = explain([job(tmp_path, 4, program)])
    assert found.is_wrong
    assert found.sentence.startswith("ranks 0, 1, 2, 3 wait in all_reduce #3, train.py line 90, to which all ranks")


def test_one_rank_that_calls_once_more_stands_apart(tmp_path):
    def program(rank):
        healthy(rank)
        if rank.rank == 1:
            rank.call("all_reduce", 12, state="started")

    found = explain([job(tmp_path, 4, program)])
    assert found.ranks == [1]
    assert found.sentence.startswith("rank 1 stands apart: ranks 0, 2, 3 never entered all_reduce #3; rank 1 waits")


def test_who_waits_for_nothing_is_blamed_and_not_who_waits_for_it(tmp_path):
    def program(rank):
        healthy(rank)
        if rank.rank == 1:
            rank.call("all_reduce", 41, group="7", state="started")
        elif rank.rank != 3:
            rank.call("all_reduce", 42, state="started")

    found = explain([job(tmp_path, 4, program, GROUPS)])
    assert found.ranks == [3]
    assert "py-spy" in found.next


def test_parts_of_a_coalesced_call_are_one_call_that_ends_with_its_last_entry(tmp_path):
    def program(rank):
        healthy(rank)
        rank.coalesced("all_reduce", [(3,), (5,)], 71)
        if rank.rank:
            rank.coalesced("all_reduce", [(3,), (5,)], 72, state="started")

    found = explain([job(tmp_path, 4, program)])
    assert found.sentence.startswith("rank 0 never entered all_reduce #4; ranks 1, 2, 3 wait there, train.py line 72")


def test_a_batch_whose_messages_never_change_their_states_has_ended(tmp_path):
    def program(rank):
        rank.batch([("send", (rank.rank + 1) % 4), ("recv", (rank.rank - 1) % 4)], 70)

    assert not explain([job(tmp_path, 4, program)]).is_wrong


def test_a_program_is_named_by_the_users_line_and_not_by_an_installed_library(tmp_path):
    def program(rank):
        healthy(rank)
        if rank.rank:
            rank.call("all_reduce", 12, state="started")
            library = {"name": "backward", "filename": "/opt/venv/lib/python3.11/site-packages/accel/a.py", "line": 7}
            rank.entries[-1]["frames"].insert(1, library)

    assert "train.py line 12" in explain([job(tmp_path, 2, program)]).sentence


@pytest.mark.parametrize("missing", [0, 511, 1023])
def test_a_thousand_ranks_make_a_short_sentence(missing, tmp_path):
    def program(rank):
        for _ in range(20):
            rank.call("all_reduce", 12)
        if rank.rank != missing:
            rank.call("all_gather", 14, state="started")

    found = explain([job(tmp_path, 1024, program)])
    assert found.ranks == [missing]
    assert f"rank {missing} never entered all_gather #1; ranks " in found.sentence
    assert len(found.sentence) < 300
    assert len(found.rows()) == 2
    assert len(found.figure().html) < 200_000


def test_a_rank_that_left_something_out_is_named_before_one_that_may_belong_to_a_group(tmp_path):
    """Ranks 0 and 2 came to the broadcast that rank 1 left out, so the barrier in which they wait is no riddle."""
    for number in range(3):
        rank = Rank(number, {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]}, backend="gloo")
        if number != 1:
            rank.call("broadcast", 10)
        rank.call("barrier", 11, group="1", state="scheduled")
        as_gloo(rank).write(tmp_path)
    rank = as_gloo(Rank(3, {"0": [0, 1, 2, 3]}, backend="gloo").call("broadcast", 10, state="scheduled"))
    rank.write(tmp_path)
    assert explain([tmp_path]).ranks == [1]


def as_gloo(rank):
    """The same rank, with a dump as gloo's recorder writes it: states that never change, and groups without ranks."""
    for entry in rank.entries:
        entry |= {"state": "scheduled", "time_discovered_completed_ns": None}
    rank.config = {"": {"name": "", "desc": "", "ranks": "[]"}}
    return rank


def test_gloo_names_no_members_so_who_used_the_group_belongs_to_it(tmp_path):
    def program(number, groups, waits=(0, 1, 3)):
        rank = Rank(number, {"0": [0, 1, 2, 3], "1": [0, 2]}, backend="gloo")
        rank.call("all_reduce", 10)
        if number in (0, 2) and groups:
            rank.call("all_reduce", 11, group="1")
        if number == 0:
            rank.call("all_reduce", 12, group="1", state="scheduled")
        elif number in waits:
            rank.call("all_reduce", 13, state="scheduled")
        return rank

    for *how, begins in (
        (True, "rank 2 never entered "),
        (
            False,
            "rank 2 stands apart: ranks 0, 2 never entered all_reduce #2; ranks 1, 3 wait there, train.py line 13; ",
        ),
        (False, range(4), "ranks 1, 2, 3 never used the group of all_reduce #1; rank 0 waits there, train.py line 12."),
    ):
        for number in range(4):
            as_gloo(program(number, *how)).write(tmp_path)
        found = explain([tmp_path])
        assert found.sentence.startswith(begins), found.sentence
        assert any("no sends and receives" in note for note in found.notes())


@pytest.mark.parametrize("torch", ["2.5", "2.13"])
def test_the_example_of_pytorchs_tutorial(torch, tmp_path):
    """Of two equal loops one has a sum between them. torchfrtrace says that rank 1 misses the fifth, rank 0's last."""

    def crash(rank):
        for line, first in ((26, "completed"), (33, "started"), (44, "scheduled")):
            if line == 33 and rank.rank == 0:
                rank.call("all_reduce", line, size=(4, 5), state=first)
            for number in range(2 if line != 33 else 0):
                waits = "started" if line == 44 and rank.rank == 1 and number == 0 else first
                rank.call("all_reduce", line, size=(3, 4), state=waits)

    found = explain([job(tmp_path, 2, crash, torch=torch)])
    assert found.sentence == (
        "rank 0 called all_reduce #3, train.py line 33, once more than rank 1; rank 1 called the next one in its "
        "place, train.py line 44."
    )


def in_two_by_four(rank):
    """Two groups of four ranks, and four groups across; rank 6 leaves out its second all_reduce."""
    inner, across = "1" if rank.rank < 4 else "2", str(3 + rank.rank % 4)
    rank.call("all_reduce", 88, group=inner).call("reduce_scatter", 141, group=across)
    if rank.rank != 6:
        rank.call("all_reduce", 88, group=inner, state="started" if rank.rank > 3 else "completed")
    if rank.rank in (0, 1, 2, 3, 6):
        rank.call("reduce_scatter", 141, group=across, state="started")


TWO_BY_FOUR = {"1": [0, 1, 2, 3], "2": [4, 5, 6, 7], "3": [0, 4], "4": [1, 5], "5": [2, 6], "6": [3, 7]}


def test_a_rank_that_waits_for_one_without_a_dump_is_not_blamed(tmp_path):
    """Rank 6 left no dump. Ranks 4, 5 and 7 wait for it, and rank 0 waits for rank 4."""
    found = explain([job(tmp_path, 8, in_two_by_four, groups=TWO_BY_FOUR, without=(6,))])
    assert found.ranks == [6]
    assert found.sentence.startswith("rank 6 left no record; ranks 4, 5, 7 wait in all_reduce #2, train.py line 88")


def test_what_to_look_at_lies_between_two_calls_of_a_rank_that_waits(tmp_path):
    found = explain([job(tmp_path, 8, in_two_by_four, groups=TWO_BY_FOUR)])
    assert found.ranks == [6]
    between = "after its reduce_scatter, train.py line 141, and before its reduce_scatter, train.py line 141"
    assert f"Next: what rank 6 did {between}: a branch" in found.next


def test_a_cycle_of_collectives_is_not_one_of_messages(tmp_path):
    def program(rank):
        if rank.rank == 2:
            rank.call("all_reduce", 14, group="1", state="started")
        else:
            rank.call("barrier", 13, state="started")

    found = explain([job(tmp_path, 4, program, groups={"1": [2, 3]})])
    assert found.sentence.startswith("a cycle: rank 2 waits in all_reduce for rank 3")
    assert found.next.startswith("Next: in which order these ranks call the collectives of their groups")


@pytest.mark.parametrize(("backend", "blamed"), [("gloo", [3]), ("nccl", [1])])
def test_with_gloo_a_rank_that_ended_takes_others_out_of_their_calls(backend, blamed, tmp_path):
    """Rank 3 ended, so gloo ended rank 1's part in the broadcast; NCCL would have left it waiting."""
    for number in range(3):
        rank = Rank(number, {"0": [0, 1, 2, 3]}, backend=backend).call("all_reduce", 10)
        if number != 1:
            rank.call("broadcast", 11, state="started")
        rank.write(tmp_path)
    assert explain([tmp_path], world_size=4).ranks == blamed
