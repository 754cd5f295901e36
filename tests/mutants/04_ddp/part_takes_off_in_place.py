"""Takes the model's output off y in place: the caller's targets are gone."""


# caught by: test_loss_of_part
# mistake: changes_its_input
# says: changed the x or the y that it was given
# %% loss_of_part: changed
# -     error = model(x[rank::n]) - y[rank::n]
# +     error = y[rank::n]
# +     error -= model(x[rank::n])
