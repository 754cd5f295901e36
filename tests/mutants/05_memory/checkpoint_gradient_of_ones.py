"""Starts the second backward pass from ones and not from the gradient that came."""
# caught by: test_checkpointed
# mistake: backward_wrong
# says: the gradient of the input is off
# %% checkpointed
def checkpointed(function, *inputs):
    return Recomputed.apply(function, *inputs)


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, *inputs):
        ctx.function, ctx.random = function, torch.get_rng_state()
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad(), torch.random.fork_rng():
            torch.set_rng_state(ctx.random)
            output = ctx.function(*inputs)
        torch.autograd.backward(output, torch.ones_like(output))
        return None, *[x.grad for x in inputs]
