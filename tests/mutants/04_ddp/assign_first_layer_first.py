"""In the order of the model: the first bucket is full when the backward pass is over."""
# caught by: test_assign
# mistake: order_of_layers
# %% assign: changed
# -     for i in reversed(range(len(sizes))):
# +     for i in range(len(sizes)):
