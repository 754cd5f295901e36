"""Takes all layers for as long as the mean of them."""
# caught by: test_smallest_window
# mistake: one_for_all
# says: the window is 2, expected 3
# %% smallest_window: changed
#       layers = len(copies)
# +     copies, computes = [sum(copies) / layers] * layers, [sum(computes) / layers] * layers
