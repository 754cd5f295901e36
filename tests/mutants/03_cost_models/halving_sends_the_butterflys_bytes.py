"""2S log2 N bytes, as some texts have it."""
# caught by: test_halving_doubling_cost
# mistake: other_algorithms_cost
# %% halving_doubling_cost
def halving_doubling_cost(n):
    steps = n.bit_length() - 1
    rest = 2 if n > 2**steps else 0
    return 2 * steps + rest, 2.0 * steps + rest
