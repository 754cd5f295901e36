"""zero_grad is forgotten: each step goes along the sum of all gradients so far."""
# caught by: test_local_sgd
# says: call zero_grad
# %% local_sgd: changed
# -         optimizer.zero_grad()
