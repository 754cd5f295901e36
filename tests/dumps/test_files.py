"""Files are read without trust: a pickle runs nothing, a broken file costs its rank, and bad input is named."""

import builtins
import collections
import copyreg
import functools
import gzip
import io
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ringzero.dumps import explain, files
from tests.dumps.samples import job
from tests.dumps.test_explain import absent


class Calls:
    """Pickles as a call of ``function``."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def text(value):
    """Opcodes for a string."""
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def attacks(trace):
    """``{how: bytes}``: pickles each of which would write the file ``trace`` if it were loaded without care."""
    write = f"__import__('pathlib').Path({str(trace)!r}).touch()"
    command = f"touch {trace}"
    return {
        "reduce of os.system": pickle.dumps(Calls(os.system, command)),
        "reduce of exec": pickle.dumps(Calls(builtins.exec, write)),
        "reduce of eval, protocol 0 behind a first byte": b"\x80\x00cbuiltins\neval\n(V" + write.encode() + b"\ntR.",
        "a global by GLOBAL": b"\x80\x02cos\nsystem\n(" + text(command) + b"tR.",
        "a global by STACK_GLOBAL": b"\x80\x04" + text("os") + text("system") + b"\x93" + text(command) + b"\x85R.",
        "INST": b"\x80\x02(" + text(command) + b"ios\nsystem\n.",
        "OBJ": b"\x80\x02(cos\nsystem\n" + text(command) + b"o.",
        "NEWOBJ": b"\x80\x02csubprocess\nPopen\n(" + text(command) + b"t\x81.",
        "BUILD with a state": b"\x80\x02ccollections\nOrderedDict\n)R}" + text("x") + b"K\x01sb.",
        "an extension code": b"\x80\x02\x82\xf0(" + text(command) + b"tR.",
        "partial within the entries": pickle.dumps({"entries": [{"x": functools.partial(os.system, command)}]}),
        "a deep one in a dictionary": pickle.dumps(
            {"version": "2.10", "entries": [], "pg_config": {"0": Calls(exec, write)}}
        ),
        "a persistent object": b"\x80\x02" + text("x") + b"Q.",
        "subprocess": pickle.dumps(Calls(subprocess.call, ["touch", str(trace)])),
        "a class that is only data": pickle.dumps(collections.OrderedDict(entries=[])),
    }


@pytest.mark.parametrize("how", attacks("x"))
def test_a_pickle_runs_nothing(how, tmp_path):
    trace, file = tmp_path / "ran", tmp_path / "rank_0"
    file.write_bytes(attacks(trace)[how])
    copyreg.add_extension("os", "system", 0xF0)
    try:
        with pytest.raises(ValueError, match="rank_0"):
            explain([file])
    finally:
        copyreg.remove_extension("os", "system", 0xF0)
    assert not trace.exists()


def test_these_pickles_would_run(tmp_path):
    """Else the test above proves nothing."""
    trace = tmp_path / "ran"
    for how in ("reduce of exec", "a global by STACK_GLOBAL", "INST"):
        pickle.load(io.BytesIO(attacks(trace)[how]))
        assert trace.exists(), how
        trace.unlink()


@pytest.mark.parametrize("bytes_left", [0, 1, 100, -1])
def test_a_file_that_is_cut_short_costs_its_rank_and_no_other(bytes_left, tmp_path):
    file = job(tmp_path, 4, absent) / "nccl_trace_rank_3"
    file.write_bytes(file.read_bytes()[:bytes_left])
    found = explain([tmp_path])
    assert found.sentence.startswith("rank 2 never entered all_gather #1; ranks 0, 1 wait there, train.py line 14")
    (note,) = found.notes()
    assert str(file) in note


@pytest.mark.parametrize("content", [
    {"entries": 3}, {"entries": [3]}, {"entries": [{}]}, {"entries": [{"process_group": 7}]},
    {"entries": [{"process_group": ("0", "default_pg"), "profiling_name": "nccl:send 0->x"}]},
    {"entries": [{"process_group": ("0", "default_pg"), "input_sizes": [["a"]]}]},
    {"entries": [{"process_group": ("0", "default_pg"), "time_created_ns": [1]}]},
    {"entries": [], "pg_config": 3}, {"entries": [], "pg_config": {"0": 3}}, [1, 2], {"a": 1},
    {"entries": [], "pg_config": {"0": {"ranks": "[0, 99999999999]"}}},
    {"version": "1.5", "entries": []},
], ids=str)  # fmt: skip
def test_a_file_of_something_else_costs_its_rank_and_no_other(content, tmp_path):
    file = job(tmp_path, 4, absent) / "nccl_trace_rank_3"
    file.write_bytes(pickle.dumps(content))
    found = explain([tmp_path])
    assert found.sentence.startswith("rank 2 never entered all_gather #1; ranks 0, 1 wait there, train.py line 14")
    assert any(str(file) in note for note in found.notes()), found.notes()


def test_bad_input_is_named(tmp_path):
    with pytest.raises(ValueError, match="is not there"):
        explain([tmp_path / "nowhere"])
    with pytest.raises(ValueError, match="holds no file with a rank in its name"):
        explain([tmp_path])
    job(tmp_path, 2, absent)
    job(tmp_path, 1, absent, as_json=True)
    with pytest.raises(ValueError, match="are both of rank 0"):
        explain([tmp_path])


def test_compressed_files_and_other_names(tmp_path):
    job(tmp_path, 4, absent)
    for number, name in enumerate(("a_0.pickle.gz", "rank1_of_4.pkl", "host7_rank_2", "trace-3")):
        file = tmp_path / f"nccl_trace_rank_{number}"
        data = file.read_bytes()
        file.unlink()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (tmp_path / "notes.txt").write_text("not a dump")
    (tmp_path / "log_20261128.json").write_text("nor is this, in spite of the number")
    assert explain([tmp_path]).ranks == [2]
    assert files.rank_of(Path("rank1_of_4.pkl")) == 1


def test_it_needs_no_torch(tmp_path):
    """A login node has none, and the command must be there at once."""
    job(tmp_path, 4, absent)
    program = (
        "import sys\nfrom ringzero.dumps import explain\n"
        f"found = explain([{str(tmp_path)!r}])\nfound.figure()\n"
        "assert found.ranks == [2]\nassert not {'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
