"""Gathers the next layer while this one is computed, as FSDP does: two are whole."""


# caught by: test_Zero3
# mistake: kept_in_memory
# says: was whole, and not computed then
# %% Zero3: changed
# -         for layer, flat in zip(layers, self.flats, strict=True):
# -             layer.register_forward_pre_hook(lambda *_, flat=flat: flat.gather())
# +         for i, (layer, flat) in enumerate(zip(layers, self.flats, strict=True)):
# +             layer.register_forward_pre_hook(lambda *_, i=i: self.gather_two(i))
# @@
#               layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
# +
# +     def gather_two(self, i):
# +         for flat in self.flats[i + (i > 0) : i + 2]:
# +             flat.gather()
