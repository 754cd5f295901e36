"""A function without an end."""


# verdict: limit
# says: TIME LIMIT in cell [3]
# %% double
def double(x):
    while True:
        pass
