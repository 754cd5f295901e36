"""Returns float64, whatever it was given."""
# caught by: test_all_to_all
# mistake: wrong_kind
# %% all_to_all: changed
# -     return torch.cat(arrived)
# +     return torch.cat(arrived).double()
