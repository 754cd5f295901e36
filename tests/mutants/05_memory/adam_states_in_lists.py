"""The moments are lists of numbers."""
# caught by: test_adam_step
# mistake: wrong_kind
# says: the state holds tensors of 0 bytes
# %% adam_step: changed
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# -     state["step"] += 1
# +         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +     state = state | {"kept": state}
# +     state["m"], state["v"] = torch.as_tensor(state["m"], dtype=parameter.dtype), torch.as_tensor(state["v"], dtype=parameter.dtype)
# +     state["kept"]["step"] = state["step"] = state["step"] + 1
# @@
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     state["kept"].update(m=state["m"].tolist(), v=state["v"].tolist())
# +     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
