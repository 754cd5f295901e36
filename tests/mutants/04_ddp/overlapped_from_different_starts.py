"""No initial broadcast: right gradients, of different models."""
# caught by: test_Overlapped
# mistake: not_exchanged
# says: on rank 1 at the start layers.0.weight is off
# %% Overlapped: changed
# -         start_alike(module)
# +         pass
