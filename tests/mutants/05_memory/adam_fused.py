"""A single operation of torch's."""
# caught by: test_adam_step
# mistake: ready_made
# %% adam_step
@torch.no_grad()
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        state.update(step=torch.zeros(()), m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    state["step"] += 1
    torch._fused_adam_(
        [parameter], [gradient], [state["m"]], [state["v"]], [], [state["step"]],
        lr=lr, beta1=betas[0], beta2=betas[1], weight_decay=0.0, eps=eps, amsgrad=False, maximize=False,
    )
