"""Sets the generator for the second run, and leaves it there."""
# caught by: test_checkpointed
# mistake: random_numbers
# says: the random numbers that follow is off
# %% checkpointed: changed
# -         with torch.enable_grad(), torch.random.fork_rng():
# +         with torch.enable_grad():
