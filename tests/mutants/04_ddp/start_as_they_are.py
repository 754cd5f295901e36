"""No broadcast: everyone keeps the random numbers it drew."""
# caught by: test_start_alike
# mistake: not_exchanged
# %% start_alike
def start_alike(module):
    pass
