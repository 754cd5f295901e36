"""Lays out five parameters, and leaves out those behind them."""
# caught by: test_Flat
# mistake: last_left_out
# %% Flat: changed
# -         self.parameters = list(parameters)
# +         self.parameters = list(parameters)[:5]
