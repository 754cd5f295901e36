"""put() adds to what is in the buffer: from the second step on, the last mean is in it."""


# caught by: test_Bucket
# mistake: counted_twice
# says: the gradient of weight is off
# %% Bucket: changed
# -             view.copy_(parameter.grad)
# +             view += parameter.grad
