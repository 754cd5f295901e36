"""Tensor parallelism over the network."""
# caught by: test_plan
# mistake: poor_plan
# says: would leave the node of 8
# %% plan
def plan(nodes):
    return {"data": nodes // 4, "tensor": 32, "pipeline": 1, "stage": 1}
