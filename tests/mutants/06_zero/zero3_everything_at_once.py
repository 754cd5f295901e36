"""The first layer gathers all of them."""


# caught by: test_Zero3
# mistake: kept_in_memory
# says: during the forward pass rank 0 held
# %% Zero3: changed
# -             layer.register_forward_pre_hook(lambda *_, flat=flat: flat.gather())
# +             if layer is layers[0]:
# +                 layer.register_forward_pre_hook(lambda *_: [flat.gather() for flat in self.flats] and None)
