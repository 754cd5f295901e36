"""Clears the place first, also where the gradient already lies in it."""
# caught by: test_Bucket
# mistake: overwritten
# says: the gradient of bias is all zeros
# %% Bucket: changed
# -             view.copy_(parameter.grad)
# +             view.zero_()
# +             view += parameter.grad
