"""The random state of a function's last call, for all of its calls."""
# caught by: test_checkpointed
# mistake: random_numbers
# %% checkpointed: changed
#       return Recomputed.apply(function, *inputs)
# +
# +
# + RANDOM = {}
#
# @@
#           ctx.function = function
# -         ctx.random = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
# +         RANDOM[function] = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
#           ctx.save_for_backward(*inputs)
# @@
#           with torch.enable_grad(), torch.random.fork_rng():
# -             on_cpu, on_gpu = ctx.random
# +             on_cpu, on_gpu = RANDOM[ctx.function]
#               torch.set_rng_state(on_cpu)
