"""Where nothing comes it returns the x that it was given."""


# caught by: test_gossip
# mistake: copy_or_view
# says: returned the x it was given, or a view of it, not a new tensor
# %% gossip: changed
# -     mixed = weights[r][r] * x
# +     if not received and weights[r][r] == 1:
# +         return x
# +     mixed = weights[r][r] * x
