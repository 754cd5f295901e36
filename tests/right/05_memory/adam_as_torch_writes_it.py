"""The form of torch's own code: lerp, addcmul, addcdiv, a step that is a tensor; the parameter's data is changed."""


# %% adam_step
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    if "step" not in state:
        state["step"] = torch.tensor(0.0)
        state["exp_avg"] = torch.zeros_like(parameter.data)
        state["exp_avg_sq"] = torch.zeros_like(parameter.data)
    state["step"] += 1
    t = state["step"].item()
    state["exp_avg"].lerp_(gradient, 1 - beta1)
    state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    denominator = (state["exp_avg_sq"].sqrt() / math.sqrt(1 - beta2**t)).add_(eps)
    parameter.data.addcdiv_(state["exp_avg"], denominator, value=-lr / (1 - beta1**t))


# %% adamw_step
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    parameter.data -= lr * weight_decay * parameter.data
    adam_step(parameter, gradient, state, lr=lr, betas=betas, eps=eps)
