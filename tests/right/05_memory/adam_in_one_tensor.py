"""Both moments in one tensor, the powers of the betas kept, no operation in place but the last."""


# %% adam_step
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        moments = state.get("moments", torch.zeros(2, *parameter.shape, dtype=parameter.dtype))
        powers = state.get("powers", torch.ones(2, dtype=torch.float64))
        b = torch.tensor(betas, dtype=torch.float64)
        seen = torch.stack([gradient, gradient**2])
        column = b.reshape(2, *[1] * parameter.dim()).to(parameter.dtype)
        state["moments"] = column * moments + (1 - column) * seen
        state["powers"] = powers * b
        m_hat, v_hat = (x / (1 - p) for x, p in zip(state["moments"], state["powers"].tolist()))
        parameter.copy_(parameter - lr * m_hat / (torch.sqrt(v_hat) + eps))
