"""Keeps the output of the second run."""
# caught by: test_checkpointed
# mistake: kept_in_memory
# %% checkpointed: changed
#       def backward(ctx, gradient):
# +         global OUTPUT
#           inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
# @@
#                   torch.cuda.set_rng_state(on_gpu)
# -             output = ctx.function(*inputs)
# +             OUTPUT = output = ctx.function(*inputs)
#           torch.autograd.backward(output, gradient)
