"""Keeps inputs and random state in a dict by function: two calls of one layer are mixed up."""
# caught by: test_checkpointed
# mistake: one_for_all
# %% checkpointed: changed
#       return Recomputed.apply(function, *inputs)
# +
# +
# + KEPT = {}
#
# @@
#           ctx.function = function
# -         ctx.random = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
# -         ctx.save_for_backward(*inputs)
# +         random = torch.get_rng_state(), torch.cuda.get_rng_state() if inputs[0].is_cuda else None
# +         KEPT[function] = inputs, random
#           return function(*inputs)
# @@
#       def backward(ctx, gradient):
# -         inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
# +         inputs, random = KEPT.pop(ctx.function)
# +         inputs = [x.detach().requires_grad_(x.requires_grad) for x in inputs]
#           with torch.enable_grad(), torch.random.fork_rng():
# -             on_cpu, on_gpu = ctx.random
# +             on_cpu, on_gpu = random
#               torch.set_rng_state(on_cpu)
