"""Returns the gradients of each bucket in the order in which they came."""
# caught by: test_backward_pass
# mistake: reversed
# %% backward_pass: changed
# -         gradients += flat.split(sizes)
# -     return gradients[::-1]
# +         gradients = [*flat.split(sizes), *gradients]
# +     return gradients
