"""Layers stay whole until the backward pass."""


# caught by: test_Zero3
# mistake: kept_in_memory
# says: 8.3 layers: what was gathered is still there
# %% Zero3: changed
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())
