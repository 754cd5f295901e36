"""The last layer stays whole between forward and backward pass, and is not gathered again: it sends less."""


# %% Zero3: changed
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# -             layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
# +             if layer is not layers[-1]:
# +                 layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# +                 layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
