"""Asks the library."""
# caught by: test_model_states
# mistake: ready_made
# %% model_states
def model_states(params, optimizer="adam", precision="mixed", stage=0, n=1):
    from ringzero.costs import memory

    each = memory.bytes_per_param(optimizer, precision != "fp32", precision == "mixed, fp32 gradients")
    return memory.model_state_parts(params, stage, n, each)
