"""Sets one seed before each of the two runs."""
# caught by: test_checkpointed
# mistake: random_numbers
# %% checkpointed: changed
#           ctx.save_for_backward(*inputs)
# +         torch.manual_seed(0)
# +         ctx.random = torch.get_rng_state(), None
#           return function(*inputs)
