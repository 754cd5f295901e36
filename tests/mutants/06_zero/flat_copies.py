"""The parameters get copies: what is written into the vector does not show in them."""


# caught by: test_Flat
# mistake: copy_or_view
# says: what was written into the vector does not show in weight
# %% Flat: changed
# -             p.data = part.view(p.shape)
# +             p.data = part.view(p.shape).clone()
