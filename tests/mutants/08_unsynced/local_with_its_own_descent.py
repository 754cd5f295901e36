"""Plain descent in place of the optimizer that it was given."""


# caught by: test_local_sgd
# mistake: argument_ignored
# says: rank 0 called optimizer.step() 0 times for 6 batches
# %% local_sgd: changed
# -         optimizer.step()
# +         for p in model.parameters():
# +             if p.grad is not None:
# +                 p.data -= 0.2 * p.grad
