"""After h steps the gradient is averaged, not the parameters."""


# caught by: test_local_sgd
# mistake: parameters_for_gradients
# says: gradients were averaged when due, not parameters
# %% local_sgd: changed
# -         optimizer.step()
# -         if step % h == 0 or step == len(batches):
# -             for p in model.parameters():
# -                 if p.requires_grad:
# -                     dist.all_reduce(p.data)
# -                     p.data /= dist.get_world_size()
# +         if step % h == 0 or step == len(batches):
# +             for p in model.parameters():
# +                 if p.requires_grad:
# +                     dist.all_reduce(p.grad)
# +                     p.grad /= dist.get_world_size()
# +         optimizer.step()
