"""``ringzero explain``: what it prints and saves, and its exit status."""

import json

import pytest
from click.testing import CliRunner

from ringzero import cli
from ringzero.dumps.command import command
from tests.dumps.samples import job
from tests.dumps.test_explain import absent, healthy


def run(*arguments):
    return CliRunner().invoke(command, [*map(str, arguments)])


@pytest.mark.parametrize(("program", "status"), [(absent, 1), (healthy, 0)])
def test_the_status_says_whether_something_is_wrong(program, status, tmp_path):
    done = run(job(tmp_path, 4, program))
    assert done.exit_code == status
    assert ("never entered" in done.output) == bool(status)


def test_bad_input_has_a_status_of_its_own(tmp_path):
    done = run(tmp_path)
    assert done.exit_code == 2
    assert "holds no file" in done.output


def test_what_it_says_and_saves(tmp_path):
    folder = tmp_path / "dumps"
    folder.mkdir()
    done = run(job(folder, 4, absent), "--json", tmp_path / "file", "--svg", tmp_path / "figure")
    sentence, after, *table = done.output.splitlines()
    saved = json.loads((tmp_path / "file").read_text())
    assert (saved["sentence"], saved["next"], saved["ranks"], saved["cause"]) == (sentence, after, [2], "NeverEntered")
    assert "py-spy" in after
    assert [row.split()[0] for row in table if row] == ["ranks", "2", "0,"]
    assert (tmp_path / "figure").read_text().startswith("<svg")
    printed = run(folder, "--json", "-")
    assert json.loads(printed.output) == saved


def test_it_is_a_command_of_ringzero():
    done = CliRunner().invoke(cli.main, ["explain", "--help"])
    assert "Say why a job hangs" in done.output
