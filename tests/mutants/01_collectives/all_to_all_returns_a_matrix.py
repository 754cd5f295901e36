"""Stacked, where one vector was asked for; chunks of unlike sizes are none the worse, since all are this rank's."""


# caught by: test_all_to_all
# mistake: wrong_kind
# says: expected (400,)
# %% all_to_all: changed
# -     return torch.cat(arrived)
# +     return torch.stack(arrived)
