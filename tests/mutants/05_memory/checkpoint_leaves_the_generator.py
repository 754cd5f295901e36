"""Sets the generator back and leaves it there: what follows draws numbers that were drawn before."""
# caught by: test_checkpointed
# mistake: random_numbers
# says: the random numbers that follow is off
# %% checkpointed: changed
# -         ctx.function = function
# -         ctx.random = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
# +         ctx.function, ctx.random = function, torch.get_rng_state()
# @@
# -         inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
# -         with torch.enable_grad(), torch.random.fork_rng():
# -             on_cpu, on_gpu = ctx.random
# -             torch.set_rng_state(on_cpu)
# -             if on_gpu is not None:
# -                 torch.cuda.set_rng_state(on_gpu)
# +         inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
# +         with torch.enable_grad():
# +             torch.set_rng_state(ctx.random)
