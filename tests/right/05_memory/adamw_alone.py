"""AdamW in one piece, without adam_step, on flat views; the state is a list under one name."""


# %% adamw_step
class Moments:
    """Both update rules in one."""

    def __init__(self, beta):
        self.beta = beta

    def after(self, old, new):
        return self.beta * old + (1 - self.beta) * new


def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    g = gradient.detach()
    t, m, v = state.get("all", (0, g * 0, g * 0))
    m, v = Moments(betas[0]).after(m, g), Moments(betas[1]).after(v, g.square())
    state["all"] = [t + 1, m, v]
    update = m / (1 - betas[0] ** (t + 1)) / ((v / (1 - betas[1] ** (t + 1))) ** 0.5 + eps)
    with torch.no_grad():
        parameter.copy_((1 - lr * weight_decay) * parameter - lr * update)
