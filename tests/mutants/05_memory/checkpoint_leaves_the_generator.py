"""Sets the generator back and leaves it there: what follows draws numbers that were drawn before."""
# caught by: test_checkpointed
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
        with torch.enable_grad():
            torch.set_rng_state(ctx.random)
            output = ctx.function(*inputs)
        torch.autograd.backward(output, gradient)
        return None, *[x.grad for x in inputs]
