"""Other numbers for checks: what makes a run what it is stays, everything else changes; and what claims catch."""

import pytest

from ringzero.grading import catches
from ringzero.lab import Check, harness, other_shapes
from ringzero.lab.harness import host_tier, training, window


@pytest.fixture
def use():
    yield other_shapes.use
    other_shapes.use(0)


@pytest.mark.parametrize("shape", [1, 2, 3])
def test_runs_have_other_numbers_and_the_same_rests(use, shape):
    use(shape)
    check = Check("reduce", points=1, world_size=4)
    whole, rest, few = (check.run(numel=numel, root=0) for numel in (400, 403, 1))
    assert (whole.numel % 4, rest.numel % 4, few.numel) == (0, 3, 1)
    assert whole.numel > 400 < rest.numel
    use(0)
    lab = Check("reduce", points=1, world_size=4).run(numel=400, root=0)
    assert lab.numel == 400
    assert lab.case.seed != whole.case.seed
    assert lab.case.options == whole.case.options == {"root": 0}


@pytest.mark.parametrize("shape", [1, 2, 3])
def test_models_are_wider_and_deeper_and_keep_what_they_are_for(use, shape):
    use(shape)
    train = {"world_size": 4, "harness": training.train}
    plain = Check("DDP", 1, **train).run(seed=1, cap=300)
    tied = Check("DDP", 1, **train).run(seed=1, hidden=(7, 7, 7), tied=(1, 2))
    assert len(plain.option("hidden")) == 4
    assert {*plain.option("hidden")} != {11, 5, 13}
    assert len({*tied.option("hidden")}) == 1
    for case in (plain, tied):
        training.model_of(**case.case.options)
    through = Check("forward", 1, 4, harness=window.through).run(seed=1, k=2)
    sizes = window.sizes_of(through.option("widths"))
    assert len({*sizes}) == len(sizes)
    assert sizes != window.sizes_of(window.WIDTHS)
    adam = Check("HostAdam", 1, 4, harness=host_tier.train, ranks=1).run(seed=1)
    assert adam.option("sizes") != host_tier.SIZES


def test_numbers_of_plain_functions_change_and_kinds_do_not(use):
    use(2)
    run = Check("kept_bytes", 1, 4).run(96, 1, 2048, 12288, 96, "full", element=4)
    assert run.case.args == (98, 1, 2050, 12290, 98, "full")
    assert run.case.options == {"element": 4}
    near = [Check("tree_cost", 1, 4).run(n).case.args[0] for n in (5, 9, 64, 65, 2**49 + 1)]
    assert near == [5, 11, 256, 257, 2**51 + 1]
    fits = Check("least_ranks", 1, 4).run(2_000_000_000, 3, 32_000_000_000)
    assert fits.case.args == (6_000_000_000, 3, 96_000_000_000)
    blocks = Check("quantise", 1, 4, harness=harness.quantised.there_and_back).run(size=1000, block=64, seed=2)
    size, block = blocks.option("size"), blocks.option("block")
    assert (size // block, size % block) == (1000 // 64, 1000 % 64)


def test_options_of_a_run_may_have_any_name(use):
    use(1)
    gossip = Check("gossip", 1, 4, harness=harness.mixing.rounds).run(kind="star", seed=2, shape=(4, 3))
    assert gossip.case.options == {"kind": "star", "seed": 1002, "shape": (4, 4)}
    down = Check("mean", 1, 4, harness=harness.compressed.feed_back).run(size=40, k=4, seed=4, kind="downhill")
    assert down.case.options == {"size": 40, "k": 4, "seed": 1004, "kind": "downhill"}


TABLE = """ring: 1 of 4 points
  pass  1.00/1.00  the sum
  FAIL  0.00/1.00  peers
                   rank 0 sent to rank 2
  FAIL  0.00/1.00  bytes
                   as for “peers”
  FAIL  0.00/1.00  the sum
                   rank 1: too many"""


def test_what_a_claim_catches_is_read_from_the_table():
    found = catches.outcomes(TABLE)
    assert [row.claim for row in found] == ["ring: the sum", "ring: peers", "ring: bytes", "ring: the sum (2)"]
    assert [row.holds for row in found] == [True, False, False, False]
    assert [row.catches for row in found] == [False, True, False, True]


def test_claims_that_catch_nothing_are_named_at_the_end():
    one = catches.outcomes(TABLE)
    other = catches.outcomes(TABLE.replace("  FAIL  0.00/1.00  the sum", "  pass  1.00/1.00  the sum"))
    claims = catches.by_claim({"one": one, "other": other})
    assert claims["ring: peers"] == (["one", "other"], ["other"])
    assert claims["ring: the sum (2)"] == (["one"], [])
    said = catches.report({"one": one, "other": other})
    assert "     2      1  ring: peers" in said
    assert "only this: other" in said
    assert said.endswith(
        "3 of 4 claims catch nothing that no other catches\n2 catch nothing:\n  ring: the sum\n  ring: bytes"
    )
