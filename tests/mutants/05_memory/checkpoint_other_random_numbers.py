"""The second run draws other masks: right only without dropout."""
# caught by: test_checkpointed
# mistake: random_numbers
# says: does the second run draw the random numbers of the first?
# %% checkpointed: changed
# -         ctx.random = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
# @@
# -         inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
# -         with torch.enable_grad(), torch.random.fork_rng():
# -             on_cpu, on_gpu = ctx.random
# -             torch.set_rng_state(on_cpu)
# -             if on_gpu is not None:
# -                 torch.cuda.set_rng_state(on_gpu)
# +         inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
# +         with torch.enable_grad():
