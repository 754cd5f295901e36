"""Of a format that does not exist yet."""

# verdict: invalid submission
# says: nbformat 99
# %% hand in
import json

path.write_text(json.dumps(json.loads(path.read_text()) | {"nbformat": 99}))
