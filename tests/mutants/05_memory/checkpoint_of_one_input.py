"""Takes the first input and hands the others on as they are: no gradient for them."""
# caught by: test_checkpointed
# mistake: backward_wrong
# says: take every input out of it with detach()
# %% checkpointed
def checkpointed(function, *inputs):
    return Recomputed.apply(function, *inputs)


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, *inputs):
        ctx.function, ctx.random, ctx.others = function, torch.get_rng_state(), inputs[1:]
        ctx.save_for_backward(inputs[0])
        return function(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad(), torch.random.fork_rng():
            torch.set_rng_state(ctx.random)
            output = ctx.function(x, *ctx.others)
        torch.autograd.backward(output, gradient)
        return None, x.grad, *[None for _ in ctx.others]
