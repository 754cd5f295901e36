"""Has autograd keep a copy of each layer for the backward pass, as if it were an activation."""


# caught by: test_Zero3
# mistake: uncounted_way
# says: a layer was not gathered where it is needed
# %% Zero3: changed
# + class Keep(torch.autograd.Function):
# +     @staticmethod
# +     def forward(ctx, x, flat):
# +         ctx.flat = flat
# +         ctx.save_for_backward(flat.whole.clone())
# +         return x.view_as(x)
# +
# +     @staticmethod
# +     def backward(ctx, gradient):
# +         ctx.flat.whole.untyped_storage().resize_(ctx.flat.whole.nbytes)
# +         ctx.flat.whole.copy_(ctx.saved_tensors[0])
# +         return gradient, None
# +
# +
#   class Zero3(Zero2):
# @@
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# -             layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
# +             layer.register_forward_hook(lambda layer, x, y, flat=flat: (Keep.apply(y, flat), flat.free())[0])
