"""The same at every stage."""
# caught by: test_state_bytes
# %% state_bytes
def state_bytes(params, stage, n):
    return 16 * params
