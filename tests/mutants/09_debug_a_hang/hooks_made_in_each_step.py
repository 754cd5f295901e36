"""Registers the hooks anew in each step."""
# caught by: test_train_with_hooks
# mistake: state_between_steps
# %% train_with_hooks: changed
#
# -     for parameter in model.parameters():
# -         parameter.register_post_accumulate_grad_hook(average)
# -
#       x, y = batch(seed, dist.get_rank(), samples)
# @@
#           model.zero_grad()
# +         for parameter in model.parameters():
# +             parameter.register_post_accumulate_grad_hook(average)
#           torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
