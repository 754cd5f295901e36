"""A notebook, but of another lab."""

# verdict: invalid submission
# says: another notebook
# %% hand in
import nbformat

nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]), path)
