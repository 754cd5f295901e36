"""The last layer is not freed after the forward pass, but gathered again."""


# caught by: test_Zero3
# mistake: kept_in_memory
# says: layer 9 on rank 0 was whole
# %% Zero3: changed
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# +             if layer is not layers[-1]:
# +                 layer.register_forward_hook(lambda *_, flat=flat: flat.free())
