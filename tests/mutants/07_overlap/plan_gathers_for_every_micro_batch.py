"""ZeRO-3 with a small data-parallel group gathers for every micro-batch."""
# caught by: test_plan
# mistake: poor_plan
# says: % slower
# %% plan
def plan(nodes):
    return {"data": nodes, "tensor": 8, "pipeline": 1, "stage": 3}
