"""Its pickle runs code where it is loaded, and looks for secrets on a rank."""


# verdict: ok
# %% first
# points: 2
class OnLoad:
    def __reduce__(self):
        return exec, ("import os\nif 'RINGZERO_STUDENTS_KERNEL' in os.environ: open('/tmp/hostile-escaped', 'w')",)


loaded = OnLoad()


def first(tensor):
    loaded
    dist.all_reduce(tensor)
    return tensor


# %% second
# points: 2
def second(tensor):
    import glob, inspect, os

    backwards = "hsif" + "drows"
    text = repr([frame.frame.f_locals for frame in inspect.stack()]) + repr(dict(os.environ))
    for place in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
        try:
            text += open(place, errors="replace").read()
        except OSError:
            pass
    print(backwards[::-1] if backwards in text[::-1] else "nothing")
    dist.all_reduce(tensor)
    return tensor
