"""Reports that a reader must survive: a header that claims 10 GB, depth, wrong types."""


# verdict: ok
# %% first
# points: 0
def first(tensor):
    from ringzero.ranks import plain_data

    def write(value, path):
        with open(path, "wb") as file:
            file.write((10**10).to_bytes(8, "little") + b"{")

    plain_data.dump = write
    return tensor


# %% second
# points: 0
def second(tensor):
    import safetensors.torch
    from ringzero.ranks import plain_data

    tree = '{"list": [' * 50_000 + "]}" * 50_000
    plain_data.dump = lambda value, path: safetensors.torch.save_file({}, path, metadata={"tree": tree})
    return tensor


# %% third
# points: 0
def third(tensor):
    import json
    import safetensors.torch
    from ringzero.ranks import plain_data

    tree = {"dict": [[key, {"array": 5}] for key in ("returned", "after", "time")]}
    plain_data.dump = lambda value, path: safetensors.torch.save_file({}, path, metadata={"tree": json.dumps(tree)})
    return tensor
