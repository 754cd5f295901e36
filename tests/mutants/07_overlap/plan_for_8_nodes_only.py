"""Half as many stages as nodes: right for 8 nodes and more, too few for 4."""
# caught by: test_plan
# mistake: some_ranks_only
# says: with (4): the plan needs 78 GB of 74
# %% plan
def plan(nodes):
    return {"data": 2, "tensor": 8, "pipeline": nodes // 2, "stage": 1}
