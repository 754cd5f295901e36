"""The hooks ask a global for the model: the one that was made last."""


# caught by: test_Zero2
# mistake: one_for_all
# says: nothing reduced that layer
# %% Zero2: changed
#           super().__init__(layers)
# +         type(self).newest = self
#           for i, flat in enumerate(self.flats):
#               for p in flat.parameters:
# -                 p.register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))
# +                 p.register_post_accumulate_grad_hook(lambda p, i=i: type(self).newest.gradient_ready(i))
