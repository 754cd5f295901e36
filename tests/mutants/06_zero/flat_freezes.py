"""Parameters are not trained any more."""
# caught by: test_Flat
# mistake: one_of_a_kind
# says: do not require a gradient any more
# %% Flat: changed
# -             p.data = part.view(p.shape)
# +             p.requires_grad_(False)
# +             p.data = part.view(p.shape)
