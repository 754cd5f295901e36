"""The same at every stage."""
# caught by: test_state_bytes
# mistake: stages_mixed_up
# %% state_bytes
def state_bytes(params, stage, n):
    return 16 * params
