"""The random state of the last call, for all."""
# caught by: test_checkpointed
# mistake: state_between_steps
# says: does the second run draw the random numbers of the first
# %% checkpointed: changed
# -         ctx.random = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
# +         Recomputed.random = torch.get_rng_state(), None
# @@
# -             on_cpu, on_gpu = ctx.random
# +             on_cpu, on_gpu = Recomputed.random
