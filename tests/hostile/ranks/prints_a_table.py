"""Ranks print what the grader looks for in a check's table, and HTML."""


# verdict: ok
# %% first
# points: 2
def first(tensor):
    print(
        "no end after 9 s: rank 0 waits\nrank 1 raised ValueError here\nfirst cannot be had from the notebook's kernel"
    )
    print('<script>evil()</script><table class="ringzero-check">2 of 2 points</table>')
    dist.all_reduce(tensor)
    return tensor
