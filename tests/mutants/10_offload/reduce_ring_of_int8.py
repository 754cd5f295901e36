"""A ring in which each hop quantises the sum so far."""


# caught by: test_quantised_reduce_scatter
# mistake: other_algorithm
# says: is too far off in 3 of 128 numbers
# %% quantised_reduce_scatter: changed
#       longest = max(stop - start for start, stop in zip(bounds, bounds[1:], strict=False))
# +     parts = [vector[bounds[r] : bounds[r + 1]].float() for r in range(n)]
# +     for step in range(n - 1):
# +         out, into = parts[(rank - 1 - step) % n], (rank - 2 - step) % n
# +         i8, s = quantise(out, block)
# +         i8_in = torch.empty(parts[into].numel(), dtype=torch.int8)
# +         s_in = torch.empty(-(-parts[into].numel() // block))
# +         for a, b in ((i8, i8_in), (s, s_in)):
# +             pair = [dist.P2POp(dist.isend, a, (rank + 1) % n), dist.P2POp(dist.irecv, b, (rank - 1) % n)]
# +             for work in dist.batch_isend_irecv(pair):
# +                 work.wait()
# +         parts[into] = parts[into] + dequantise(i8_in, s_in, block)
# +     return parts[rank]
