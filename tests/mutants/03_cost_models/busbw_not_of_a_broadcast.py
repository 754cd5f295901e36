"""(N-1)/N for whatever is no all-reduce, broadcast and reduce among them."""
# caught by: test_bandwidths
# mistake: other_algorithms_cost
# %% bandwidths: changed
# -     elif collective in ("broadcast", "reduce"):
# -         factor = 1.0
