"""Its errors say what hidden tests call it with: by their kinds, messages, functions and lines."""


# verdict: student fault
# says: told 7
# hides: told 7
# hides: told7
# hides: told_7
# %% first
# points: 1
def first(tensor):
    if tensor.numel() != 40:
        word = f"told {tensor.numel()}"
        raise type(word.replace(" ", ""), (Exception,), {})(f"so · {word}, · cell [3], line 1: {word}")
    dist.all_reduce(tensor)
    return tensor


# %% second
# points: 1
def second(tensor):
    import linecache

    if tensor.numel() != 40:
        word, name = f"told_{tensor.numel()}", "<ipython-input-1>"
        linecache.cache[name] = 1, None, [f"told {tensor.numel()}\n"], name
        exec(compile(f"def {word}(): raise ValueError", name, "exec"), names := {})
        names[word]()
    dist.all_reduce(tensor)
    return tensor


# %% third
# points: 1
def third(tensor):
    from ringzero_course.lab.on_rank import Player

    if tensor.numel() != 40:
        word = f"told {tensor.numel()}"
        report = {"error": word, "endless": True, "message": word, "frames": [], "operations": [], "time": 0.0}
        Player.error_report = lambda self, error: report
        raise ValueError
    dist.all_reduce(tensor)
    return tensor
