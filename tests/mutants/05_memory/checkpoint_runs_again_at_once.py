"""The second run follows the first, and its graph waits."""
# caught by: test_checkpointed
# mistake: kept_in_memory
# %% checkpointed
def checkpointed(function, *inputs):
    return Recomputed.apply(function, *inputs)


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, *inputs):
        state = torch.get_rng_state()
        function(*inputs)
        torch.set_rng_state(state)
        ctx.inputs = [x.detach().requires_grad_() for x in inputs]
        with torch.enable_grad():
            ctx.output = function(*ctx.inputs)
        return ctx.output.detach()

    @staticmethod
    def backward(ctx, gradient):
        torch.autograd.backward(ctx.output, gradient)
        return None, *[x.grad for x in ctx.inputs]
