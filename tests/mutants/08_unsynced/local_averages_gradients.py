"""Gradients are averaged in every step: data-parallel training."""


# caught by: test_local_sgd
# mistake: parameters_for_gradients
# says: that is what averaging in every step gives, of gradients or of parameters; average parameters, when due
# %% local_sgd: changed
# -         optimizer.step()
# -         if step % h == 0 or step == len(batches):
# -             for p in model.parameters():
# -                 if p.requires_grad:
# -                     dist.all_reduce(p.data)
# -                     p.data /= dist.get_world_size()
# +         for p in model.parameters():
# +             if p.requires_grad:
# +                 dist.all_reduce(p.grad)
# +                 p.grad /= dist.get_world_size()
# +         optimizer.step()
