"""Texts that a page's renderer takes hours for: a name with many dots, and formulas that do not end."""

# verdict: ok
# %% hand in
import nbformat

notebook = nbformat.read(path, as_version=4)
for text in ("\\begin{a}" * 10_000, "[](" * 20_000, f"```python\n{'a.' * 60_000}\n```"):
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(text))
nbformat.write(notebook, path)
