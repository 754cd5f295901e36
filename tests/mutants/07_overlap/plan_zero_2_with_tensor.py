"""ZeRO-2 in a pipeline."""
# caught by: test_plan
# mistake: poor_plan
# %% plan: changed
# -     return {"data": 8 * nodes // 32, "tensor": 8, "pipeline": 4, "stage": 1}
# +     return {"data": 8 * nodes // 32, "tensor": 8, "pipeline": 4, "stage": 2}
