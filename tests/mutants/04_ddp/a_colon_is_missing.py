"""A syntax error: the cell does not run, so the function that the check finds is older, or is not there."""
# caught by: test_loss_of_part
# mistake: code_error
# says: the cell that defines loss_of_part does not parse (expected ':'
# fails: SyntaxError
# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank >= len(x)
        return (0 * model(x[:0])).sum()
    error = model(x[rank::n]) - y[rank::n]
    return error.square().sum() / y.numel() * n
