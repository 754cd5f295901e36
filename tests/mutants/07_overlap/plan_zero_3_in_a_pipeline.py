"""ZeRO-3 in a pipeline."""
# caught by: test_plan
# mistake: poor_plan
# says: would reduce them for each
# %% plan
def plan(nodes):
    return {"data": nodes // 4, "tensor": 8, "pipeline": 4, "stage": 3}
