"""To the left and to the right, whatever the weights say."""


# caught by: test_gossip
# mistake: weights_ignored
# says: rank 0 sent 296 bytes to rank 2 in 1 round, expected 0; weights[2][0] is 0, x has 296 bytes
# %% gossip
def gossip(x, weights):
    r, n = dist.get_rank(), dist.get_world_size()
    left, right = (r - 1) % n, (r + 1) % n
    if n == 1:
        return x.clone()
    from_left, from_right = torch.empty_like(x), torch.empty_like(x)
    together = [dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, from_left, left)]
    together += [dist.P2POp(dist.isend, x, left), dist.P2POp(dist.irecv, from_right, right)]
    for work in dist.batch_isend_irecv(together):
        work.wait()
    return weights[r][r] * x + weights[r][left] * from_left + weights[r][right] * from_right
