"""The book's BERT: as on one process whatever the ranks, and as never interrupted after a kill."""

import functools
import itertools
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from click.testing import CliRunner

from ringzero import Cluster, RankError, launch
from ringzero.ranks.cluster import address, missing_ability

EXAMPLES = Path(__file__).resolve().parents[2] / "book" / "examples"
sys.path.insert(0, str(EXAMPLES))  # the ranks look where this process does

import bert  # noqa: E402

TINY = "--steps 12 --every 4 --batch 24 --layers 1 --hidden 16 --heads 2 --length 12 --vocabulary 60 --lr 0.02"


real_samples = functools.cache(bert.samples)  # reading them takes seconds


def made_up():
    """Instead of the real documentation: each part has favourite words."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij", k=4)) for _ in range(70)]
    for part in range(len(bert.PARTS)):
        for _ in range(60):
            yield part, " ".join(draw.choices(words[part * 10 : part * 10 + 12], k=draw.randint(4, 14)))


def trained(line, dies_at=None, wrap=bert.DistributedDataParallel):
    """On a rank: train on made-up sentences; rank 1 is killed when it has made ``dies_at`` steps."""
    bert.documentation = made_up
    step, made = torch.optim.AdamW.step, []

    def counted(*args):
        made.append(step(*args))
        if dist.get_rank() == 1 and len(made) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    torch.optim.AdamW.step = counted
    return bert.train(bert.options(line), wrap)


def curve(line=TINY, world_size=2, **options):
    first, *others = launch(lambda: trained(line, **options), world_size=world_size, device="cpu").returns
    assert all(other == first for other in others)
    return first


@pytest.fixture(scope="module")
def uninterrupted():
    return curve()


def test_the_curve_is_that_of_one_process_without_any_wrapper(uninterrupted):
    """With dropout on. 1e-4: ranks add in another order than one process, and each step builds on the last."""
    alone = curve(world_size=1, wrap=lambda module: module)
    assert len(alone["losses"]) == 12
    assert alone["accuracies"].keys() == {4, 8, 12}
    for ranks in (uninterrupted, curve(world_size=4)):
        torch.testing.assert_close(ranks["losses"], alone["losses"], rtol=1e-4, atol=0)
        assert ranks["accuracies"] == pytest.approx(alone["accuracies"], abs=0.04)
        assert ranks["baseline"] == alone["baseline"]


def test_it_learns():
    result = curve(TINY + " --steps 60 --every 60")
    assert result["losses"][-1] < 0.6 * result["losses"][0]
    assert result["accuracies"][60] > 0.6 > 0.3 > result["baseline"]


def test_a_killed_run_goes_on_bit_for_bit(tmp_path, uninterrupted):
    """Rank 1 dies between two checkpoints; what was trained since the last one is trained again."""
    line = f"{TINY} --checkpoint {tmp_path / 'bert.pt'}"
    with pytest.raises(RankError, match="rank 1 .*SIGKILL"):
        curve(line, dies_at=7)
    assert curve(line) == {**uninterrupted, "began": 4}
    assert os.listdir(tmp_path) == ["bert.pt"]


def test_a_run_goes_on_with_other_numbers_of_ranks(tmp_path, uninterrupted):
    line = f"{TINY} --checkpoint {tmp_path / 'bert.pt'} --steps "
    for world_size, steps in ((3, 4), (1, 8), (2, 12)):
        result = curve(line + str(steps), world_size)
    assert result["began"] == 8
    torch.testing.assert_close(result["losses"], uninterrupted["losses"], rtol=1e-4, atol=0)


def test_a_checkpoint_that_will_not_do_is_named(tmp_path):
    path = tmp_path / "bert.pt"
    line = f"{TINY} --checkpoint {path} --steps "
    curve(line + "4")
    with pytest.raises(RankError, match=r"bert.pt is of another run \(lr 0.02, now 0.5\); name another file"):
        curve(line + "8 --lr 0.5")
    whole = path.read_bytes()
    for size in (0, 100, len(whole) - 1, len(whole) // 2):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"bert.pt is damaged, or none \(.*; delete it to start anew"):
            bert._read(path, {})
    with pytest.raises(RankError, match="bert.pt is damaged"):
        curve(line + "8")
    path.write_bytes(whole)
    assert curve(line + "8")["began"] == 4
    with pytest.raises(RankError, match="no checkpoint can be written to .*/nowhere; make that directory"):
        curve(f"{TINY} --checkpoint {tmp_path}/nowhere/bert.pt")


def test_a_crash_while_saving_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "bert.pt"
    bert.save(path, {"step": 1})

    def half(state, file):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(OSError, match="no space"):
        bert.save(path, {"step": 2})
    assert torch.load(path) == {"step": 1}


def test_padding_changes_nothing():
    torch.manual_seed(0)
    model = bert.Bert(50, 16, 7, 16, 2, 2, 0.0).eval()
    short, padded = torch.tensor([[1, 5, 9, 12]]), torch.tensor([[1, 5, 9, 12, 0, 0, 0]])
    torch.testing.assert_close(model(short), model(padded))
    assert not torch.allclose(model(short), model(torch.tensor([[1, 5, 9, 12, 4, 0, 0]])))


def test_no_docstring_is_trained_and_tested_on(monkeypatch):
    names = ["".join(letters) for letters in itertools.product("klmn", repeat=4)]
    several = [(0, f"{name} begins a text here. Then {name} goes on and on. At last {name} ends it.") for name in names]
    monkeypatch.setattr(bert, "documentation", lambda: several)
    sets = [tokens for tokens, _ in bert.samples(12, 1000)]
    assert [len(tokens) % 3 for tokens in sets] == [0, 0]  # all sentences of a docstring, or none
    assert sum(map(len, sets)) == 3 * len(names)
    assert (sets[1] == bert.UNKNOWN).any(1).all()  # their own words are not among those trained on


def test_the_real_documentation_has_enough_of_each_part():
    (tokens, parts), (_, tested) = real_samples(32, 4000)
    assert tokens.shape == (len(parts), 32)
    assert (tokens[:, 0] == bert.CLS).all()
    assert tokens.max() == 3999
    assert tested.bincount(minlength=len(bert.PARTS)).min() > 50
    assert len(parts) > 4 * len(tested) > 4000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--steps 0", "Invalid value for '--steps': 0 is not in the range x>=1"),
        ("--dropout 1", "Invalid value for '--dropout': 1.0 is not in the range 0<=x<1"),
        ("--steps many", "Invalid value for '--steps': 'many' is not a valid integer"),
        ("--hidden 10", "--hidden 10 does not divide by --heads 4"),
        ("--batch 100000", "--batch 100000 is more than the 3"),
        ("--stpes 3", "No such option '--stpes'"),
    ],
)
def test_a_bad_flag_is_named(monkeypatch, line, message):
    monkeypatch.setattr(bert, "documentation", made_up)
    for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    result = CliRunner().invoke(bert.main, shlex.split(line))
    assert result.exit_code
    assert f"Error: {message}" in result.output
    assert not dist.is_initialized()


def test_a_batch_that_the_ranks_cannot_share_is_named():
    with pytest.raises(RankError, match="--batch 25 does not divide by 2 ranks; give a multiple of 2"):
        curve(TINY + " --batch 25")


@pytest.mark.skipif(missing_ability() is not None, reason=f"no emulated cluster here: {missing_ability()}")
def test_the_slurm_script_trains_on_two_nodes_as_one_process_does(tmp_path, monkeypatch):
    """The script as it stands; only Slurm's own two programs are played."""
    small = [
        "--steps",
        "4",
        "--every",
        "2",
        "--layers",
        "1",
        "--hidden",
        "16",
        "--checkpoint",
        str(tmp_path / "bert.pt"),
    ]
    played = {"scontrol": f"echo {address(0)}; echo {address(1)}", "srun": 'printf "%s\\0" "$@" > srun.args'}
    for program, body in played.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / program).chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "RANKS_PER_NODE": "1", "SLURM_JOB_NODELIST": "n[1-2]"}
    subprocess.run(["bash", EXAMPLES / "bert.sbatch", *small], cwd=tmp_path, env=environment, check=True)
    command = (tmp_path / "srun.args").read_text().split("\0")[:-1]
    with Cluster(nodes=2, ranks_per_node=1, inter_node="1gbit") as cluster:
        first, second = cluster.run("sh", "-c", f'cd {EXAMPLES}; PATH={path} exec "$@"', "sh", *command)
    monkeypatch.setattr(bert, "samples", real_samples)
    alone = CliRunner().invoke(bert.main, small[:-2])
    assert "2 ranks" in first
    assert "step" not in second
    lines = [re.findall(r"^step \d+: loss \d\.\d\d", said, re.MULTILINE) for said in (first, alone.output)]
    assert lines[0] == lines[1]
    assert len(lines[0]) == 2
