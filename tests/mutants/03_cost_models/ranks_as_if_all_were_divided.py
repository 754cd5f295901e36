"""16 bytes over the memory of all GPUs, whatever the stage."""
# caught by: test_least_ranks
# mistake: stages_mixed_up
# %% least_ranks
def least_ranks(params, stage, memory):
    return ceil(16 * params / memory)
