"""Half the tensor parallelism: twice the activations."""
# caught by: test_plan
# mistake: poor_plan
# says: needs 92 GB of 74
# %% plan
def plan(nodes):
    return {"data": nodes // 2, "tensor": 4, "pipeline": 4, "stage": 1}
