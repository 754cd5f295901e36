"""The same plan for any number of nodes."""
# caught by: test_plan
# mistake: some_ranks_only
# says: are 64 GPUs, and the cluster has 32
# %% plan
def plan(nodes):
    return {"data": 2, "tensor": 8, "pipeline": 4, "stage": 1}
