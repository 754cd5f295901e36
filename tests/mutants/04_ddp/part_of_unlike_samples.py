"""x is dealt out in turn, y cut in pieces: the targets are other samples'."""


# caught by: test_loss_of_part
# mistake: wrong_place
# says: the mean over the ranks of the gradient
# %% loss_of_part: changed
# -     error = model(x[rank::n]) - y[rank::n]
# +     error = model(x[rank::n]) - y.tensor_split(n)[rank]
