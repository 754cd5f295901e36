"""Half of a pair of characters, which JSON can name and no file can hold."""

# verdict: invalid submission
# says: no file can hold
# %% hand in
import json

notebook = json.loads(path.read_text())
notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "\ud800", "id": "half"})
path.write_text(json.dumps(notebook))
