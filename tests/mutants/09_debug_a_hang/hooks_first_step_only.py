"""The hooks are taken off after the first step."""
# caught by: test_train_with_hooks
# mistake: some_times_only
# %% train_with_hooks: changed
#
# -     for parameter in model.parameters():
# -         parameter.register_post_accumulate_grad_hook(average)
# +     hooks = [parameter.register_post_accumulate_grad_hook(average) for parameter in model.parameters()]
#
# @@
#           torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
# +         for hook in hooks:
# +             hook.remove()
#           with torch.no_grad():
