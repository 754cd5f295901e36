"""The files that a visitor of the repository looks for: there, in the form that their readers need, and true."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FORMS = sorted(path.name for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]


def read(name):
    return yaml.safe_load((ROOT / name).read_text())


@pytest.mark.parametrize("page", PAGES)
def test_links_between_the_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", (ROOT / page).read_text()):
        assert (ROOT / target).exists(), f"{page} links to {target}"


def test_the_citation_has_our_licence_and_authors():
    citation = read("CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "type"} <= citation.keys()
    assert " AND ".join(citation["license"]) == PROJECT["license"]
    assert [each["name"] for each in citation["authors"]] == [each["name"] for each in PROJECT["authors"]]


def test_the_paper_has_our_authors_and_cites_what_its_bibliography_has():
    _, header, text = (ROOT / "paper/paper.md").read_text().split("---\n", 2)
    authors = [each["name"] for each in yaml.safe_load(header)["authors"]]
    assert authors == [each["name"] for each in read("CITATION.cff")["authors"]]
    entries, book = (works(ROOT / name) for name in ("paper/paper.bib", "book/references.bib"))
    assert set(re.findall(r"@(\w+)", text)) == entries.keys()
    assert {key: entry for key, entry in entries.items() if key in book and entry != book[key]} == {}


def works(bibliography):
    """``{key: entry}`` of a BibTeX file."""
    entries = re.findall(r"^@\w+\{(\w+),(.*?)^\}", bibliography.read_text(), re.MULTILINE | re.DOTALL)
    return {key: " ".join(entry.split()) for key, entry in entries}


@pytest.mark.parametrize("form", FORMS)
def test_an_issue_form_is_one(form):
    content = read(f".github/ISSUE_TEMPLATE/{form}")
    assert {"name", "description", "body"} <= content.keys()
    ids = [field["id"] for field in content["body"]]
    assert len(set(ids)) == len(ids)
    for field in content["body"]:
        assert field["type"] in {"input", "textarea", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]
    assert any(field.get("validations", {}).get("required") for field in content["body"])


def test_there_is_a_form_for_each_way_in_which_a_check_can_be_wrong():
    assert FORMS == ["bug.yml", "right_solution_refused.yml", "wrong_solution_accepted.yml"]


@pytest.mark.parametrize(("workflow", "runs"), [("ci", [".ci/run"]), ("nightly", ["make nightly", "make newest"])])
def test_a_workflow_runs_what_people_run(workflow, runs):
    content = read(f".github/workflows/{workflow}.yml")
    events = content[True]  # YAML 1.1 reads "on" as true
    assert set(events) == {"ci": {"push", "pull_request"}, "nightly": {"schedule", "workflow_dispatch"}}[workflow]
    jobs = content["jobs"].values()
    assert all(job["steps"][0]["uses"].startswith("actions/checkout@") for job in jobs)
    assert [job["steps"][-1]["run"].partition(" TORCH=")[0] for job in jobs] == runs


def test_the_container_and_binder_use_what_the_repository_has():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    targets = re.findall(r"make (\w+)", " ".join((container["postCreateCommand"], container["postAttachCommand"])))
    assert targets == ["labs", "lab"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    for line in (ROOT / "binder" / "requirements.txt").read_text().splitlines():
        if line.startswith(("-r ", "-c ")):
            assert (ROOT / "binder" / line.split()[1]).is_file()
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)
    (version,) = re.findall(r"python-([\d.]+)", (ROOT / "binder" / "runtime.txt").read_text())
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_references_that_are_on_arxiv_or_in_a_journal_carry_a_doi():
    entries = re.split(r"(?m)^@", (ROOT / "book" / "references.bib").read_text())[1:]
    for entry in entries:
        if "arXiv:" in entry or entry.startswith("article"):
            assert re.search(r"doi = \{10\.\d{4,5}/\S+\}", entry), entry
    dois = re.findall(r"doi = \{(.*)\}", "".join(entries))
    assert len(set(dois)) == len(dois)
