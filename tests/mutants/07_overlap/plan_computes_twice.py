"""Recomputes all, though it would fit without."""
# caught by: test_plan
# mistake: poor_plan
# says: % slower
# %% plan
def plan(nodes):
    return {"data": nodes // 2, "tensor": 2, "pipeline": 8, "stage": 1, "recomputation": "full"}
