"""Sets the generator back after the first run."""
# caught by: test_checkpointed
# mistake: random_numbers
# %% checkpointed: changed
# -         return function(*inputs)
# +         output = function(*inputs)
# +         torch.set_rng_state(ctx.random[0])
# +         return output
