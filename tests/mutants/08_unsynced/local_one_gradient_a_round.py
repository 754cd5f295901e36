"""zero_grad once in a round: the gradients of its h steps add up."""


# caught by: test_local_sgd
# mistake: counted_twice
# says: are still in p.grad
# %% local_sgd: changed
# -         optimizer.zero_grad()
# +         if step % h == 1 or h == 1:
# +             optimizer.zero_grad()
