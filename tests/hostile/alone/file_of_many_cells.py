"""Many cells that are empty, which take the grader minutes to prepare and to show."""

# verdict: invalid submission
# says: over the limit
# %% hand in
import json

notebook = json.loads(path.read_text())
notebook["cells"] += [{"cell_type": "code", "id": f"n{i}", "metadata": {}, "outputs": [], "source": "", "execution_count": None} for i in range(100_000)]
path.write_text(json.dumps(notebook))
