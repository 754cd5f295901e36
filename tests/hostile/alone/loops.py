"""A function without an end."""


# verdict: limit
# says: cell [3]: no end after 20 s: double was stopped
# %% double
def double(x):
    while True:
        pass
