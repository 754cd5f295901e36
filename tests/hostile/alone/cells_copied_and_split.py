"""A cell is there twice, another was cut in two, and none says of which version its metadata is."""
# verdict: ok
# says: cell double is there more than once
# says: cell triple is there more than once
# %% hand in
import copy
import nbformat

notebook = nbformat.read(path, as_version=4)
cell = {each.id: each for each in notebook.cells}
for name in ("double", "test_double"):
    again = copy.deepcopy(cell[name])
    again.id = f"{name}-again"
    notebook.cells.insert(notebook.cells.index(cell[name]), again)
first = copy.deepcopy(cell["triple"])
first.id, first.source = "triple-first", "factor = 3"
cell["triple"].source = "def triple(x):\n    return factor * x"
notebook.cells.insert(notebook.cells.index(cell["triple"]), first)
for each in notebook.cells:
    each.metadata.get("nbgrader", {}).pop("schema_version", None)
nbformat.write(notebook, path)
