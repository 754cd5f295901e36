"""Leaves out a degree."""
# caught by: test_plan
# mistake: poor_plan
# says: not a dict with data, tensor, pipeline
# %% plan
def plan(nodes):
    return {"data": nodes, "tensor": 8}
