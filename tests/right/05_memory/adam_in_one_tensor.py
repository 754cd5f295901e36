"""Both moments in one tensor, and views of it beside it; the count is a tensor of whole numbers."""


# %% adam_step
@torch.no_grad()
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        state["moments"] = torch.zeros(2, *parameter.shape, dtype=parameter.dtype)
        state["m"], state["v"] = state["moments"]
        state["step"] = torch.tensor(0)
    state["step"] += 1
    for moment, new, beta in zip((state["m"], state["v"]), (gradient, gradient**2), betas):
        moment.copy_(beta * moment + (1 - beta) * new)
    m_hat, v_hat = (x / (1 - beta ** state["step"]) for x, beta in zip(state["moments"], betas))
    parameter.copy_(parameter - lr * m_hat / (torch.sqrt(v_hat) + eps))
