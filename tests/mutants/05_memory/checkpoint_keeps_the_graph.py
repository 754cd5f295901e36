"""Records the graph in the forward pass and keeps it in the context: nothing runs twice, nothing is saved."""
# caught by: test_checkpointed
# mistake: kept_in_memory
# says: in 1 call the function ran 1 times, expected twice in each
# %% checkpointed
def checkpointed(function, *inputs):
    return Recomputed.apply(function, *inputs)


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, *inputs):
        ctx.inputs = [x.detach().requires_grad_() for x in inputs]
        with torch.enable_grad():
            ctx.output = function(*ctx.inputs)
        return ctx.output.detach()

    @staticmethod
    def backward(ctx, gradient):
        torch.autograd.backward(ctx.output, gradient)
        return None, *[x.grad for x in ctx.inputs]
