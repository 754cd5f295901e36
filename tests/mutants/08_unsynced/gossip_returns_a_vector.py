"""What comes back is flat, whatever x was."""


# caught by: test_gossip
# mistake: wrong_kind
# says: has shape (12,), expected (4, 3)
# %% gossip: changed
# -     return mixed
# +     return mixed.view(-1)
