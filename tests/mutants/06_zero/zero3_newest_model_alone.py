"""gradient_ready frees the layer of the model that was made last."""


# caught by: test_Zero3
# mistake: one_for_all
# says: another model is trained in turn
# %% Zero3: changed
#           super().__init__(layers)
# +         Zero3.newest = self
# @@
# -             self.flats[i].free()
# +             Zero3.newest.flats[i].free()
