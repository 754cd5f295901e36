"""Shows scripts that would run where its feedback, or its notebook, is opened; and tables that look like a check's."""
# verdict: ok
# %% double
# points: 2
from IPython.display import display

EVIL = "<script>evil()</script><img src=x onerror=evil()><iframe srcdoc='<script>evil()</script>'></iframe><svg/>"
for kind in ("text/html", "image/svg+xml", "text/markdown", "text/latex"):
    display({kind: EVIL, "text/plain": EVIL}, raw=True)
display({"application/javascript": "evil()"}, raw=True)
print(EVIL, "\x1b]8;;javascript:evil()\x07")


def double(x):
    return 2 * x
# %% triple
# points: 0
from ringzero_course.lab.table import Row, Table

Table("triple", (Row("FORGED", True, "", 3.0, 3.0),), 3.0, 3.0, shown_cases=("2 ranks", "3 ranks")).show()
get_ipython().displayhook(3.0)


def triple(x):
    print("triple: 3 of 3 points\n3.0", flush=True)
    __import__("sys").displayhook(3.0)
    return -1
# %% hand in
import nbformat

notebook = nbformat.read(path, as_version=4)
for evil in ("<script>evil()</script> [x](javascript:evil())", "<img src=x onerror=evil()>"):
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(evil))
notebook.cells.insert(0, nbformat.v4.new_markdown_cell("[x](java&#115;cript:evil())\n\n![y](javascript:evil())"))
notebook.cells.insert(0, nbformat.v4.new_raw_cell("<script>evil()</script>", metadata={"raw_mimetype": "text/html"}))
nbformat.write(notebook, path)
