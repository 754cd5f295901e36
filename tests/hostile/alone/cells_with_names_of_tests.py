"""Cells of its own with names and metadata of tests, and of what papermill injects: code for the tests' kernel."""
# verdict: ok
# %% hand in
import nbformat

notebook = nbformat.read(path, as_version=4)
test = next(cell for cell in notebook.cells if cell.id == "test_double")
evil = 'import os\nif "RINGZERO_STUDENTS_KERNEL" in os.environ:\n    open("/tmp/hostile-escaped", "w")\nWORLD_SIZE = 1'
for name in ("test_double", "test_other"):
    metadata = {"nbgrader": {**test.metadata.nbgrader, "grade_id": name}}
    notebook.cells.insert(0, nbformat.v4.new_code_cell(evil, metadata=metadata))
    notebook.cells.insert(0, nbformat.v4.new_code_cell(evil, metadata=metadata | {"tags": ["injected-parameters"]}))
notebook.cells.insert(0, nbformat.v4.new_code_cell(evil, metadata={"tags": ["injected-parameters"]}))
nbformat.write(notebook, path)
