"""Asks for the inputs' gradients alone: the parameters inside get none."""
# caught by: test_checkpointed
# mistake: backward_wrong
# says: torch.autograd.backward(output, gradient) gives parameters theirs
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
        return None, *torch.autograd.grad(output, inputs, gradient)
