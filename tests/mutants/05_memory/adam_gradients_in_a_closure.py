"""Keeps the last gradients outside the state."""
# caught by: test_adam_step
# mistake: kept_in_memory
# says: are kept outside the state
# %% adam_step: changed
# - @torch.no_grad()
# + LAST = []
# +
# +
# + @torch.no_grad()
# @@
#       state["step"] += 1
# +     LAST.append(gradient.clone())
