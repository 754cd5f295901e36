"""The last layer stays whole between forward and backward pass, and is not gathered again."""


# caught by: test_Zero3
# mistake: kept_in_memory
# says: when the forward pass came to its end, layer 9 on rank 0 was whole
# %% Zero3: changed
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# -             layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
# +             if layer is not layers[-1]:
# +                 layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# +                 layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
