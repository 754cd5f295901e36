"""Notes the random state after the first run."""
# caught by: test_checkpointed
# mistake: random_numbers
# %% checkpointed: changed
#           ctx.function = function
# +         ctx.save_for_backward(*inputs)
# +         output = function(*inputs)
#           ctx.random = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
# -         ctx.save_for_backward(*inputs)
# -         return function(*inputs)
# +         return output
#
