"""Frees the vector and keeps a copy of it as a NumPy array, from which the backward pass takes it."""
# caught by: test_Zero3
# mistake: kept_in_memory
# %% Zero3: changed
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# -             layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
# +             layer.register_forward_hook(lambda *_, flat=flat: self.put_aside(flat))
# +             layer.register_full_backward_pre_hook(lambda *_, flat=flat: self.fetch(flat))
# +
# +     def put_aside(self, flat):
# +         flat.aside = flat.whole.clone().numpy()
# +         flat.free()
# +
# +     def fetch(self, flat):
# +         flat.whole.untyped_storage().resize_(flat.whole.nbytes)
# +         flat.whole.copy_(torch.from_numpy(flat.aside))
