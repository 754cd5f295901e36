"""Gathers for the forward pass alone."""


# caught by: test_Zero3
# mistake: backward_wrong
# says: the backward pass uses parameters whose memory was freed, and not gathered
# %% Zero3: changed
# -             layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
