"""The modern form of an autograd function, and a dataclass made inside: both use enum and inspect of Python."""


# %% checkpointed
class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(function, *inputs):
        state = torch.get_rng_state()
        return function(*inputs), state

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.function, ctx.state = inputs[0], output[1]
        ctx.save_for_backward(*inputs[1:])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, gradient, _):
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.random.fork_rng(), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            torch.autograd.backward(ctx.function(*inputs), gradient)
        return None, *(x.grad for x in inputs)


def checkpointed(function, *inputs):
    import dataclasses
    import re

    @dataclasses.dataclass
    class Call:
        name: str

    assert re.compile("c", re.IGNORECASE).match(Call("C").name)
    return Recomputed.apply(function, *inputs)[0]
