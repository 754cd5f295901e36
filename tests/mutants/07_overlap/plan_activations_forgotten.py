"""ZeRO-3 divides the states, and nobody divides the activations."""
# caught by: test_plan
# mistake: part_missing
# says: GB of it are activations
# %% plan
def plan(nodes):
    return {"data": 8 * nodes, "tensor": 1, "pipeline": 1, "stage": 3}
