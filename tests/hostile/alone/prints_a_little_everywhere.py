"""Each of many cells prints less than a cell may; all together would fill the page that shows them."""

# verdict: limit
# says: OUTPUT LIMIT
# %% hand in
import json

notebook = json.loads(path.read_text())
cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": "print('x' * 900_000)", "execution_count": None}
notebook["cells"] = [cell | {"id": f"n{i}"} for i in range(60)] + notebook["cells"]
path.write_text(json.dumps(notebook))
