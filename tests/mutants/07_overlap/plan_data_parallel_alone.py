"""A copy of the model on each GPU."""
# caught by: test_plan
# mistake: poor_plan
# says: needs 1473 GB of 74
# %% plan
def plan(nodes):
    return {"data": 8 * nodes, "tensor": 1, "pipeline": 1, "stage": 0}
