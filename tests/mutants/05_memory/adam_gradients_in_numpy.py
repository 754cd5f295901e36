"""Keeps every gradient, in NumPy arrays that no count of tensors sees."""
# caught by: test_adam_step
# mistake: kept_in_memory
# says: bytes are kept in NumPy arrays or lists
# %% adam_step: changed
#       state["step"] += 1
# +     state.setdefault("gradients", []).append(gradient.numpy().copy())
