"""A cell whose tags are a number, as is what is remembered of its last execution."""

# verdict: invalid submission
# says: 7 is not of type
# %% hand in
import json

notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    cell["metadata"] |= {"tags": 7, "execution": 7, "papermill": 7}
path.write_text(json.dumps(notebook))
