"""The tests are gone, an answer, and the cell of the parameters."""
# verdict: student fault
# says: cell test_double was missing
# %% triple
# points: 0
# %% hand in
import nbformat

notebook = nbformat.read(path, as_version=4)
gone = ("parameters", "test_double", "test_triple", "triple")
notebook.cells = [each for each in notebook.cells if each.id not in gone]
nbformat.write(notebook, path)
