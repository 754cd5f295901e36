"""Frees the vector and keeps a copy of it."""


# caught by: test_Zero3
# mistake: kept_in_memory
# %% Zero3: changed
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# +             layer.register_forward_hook(lambda *_, flat=flat: self.put_aside(flat))
# @@
#               layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
# +
# +     def put_aside(self, flat):
# +         self.aside = {**getattr(self, "aside", {}), id(flat): flat.whole.clone()}
# +         flat.free()
