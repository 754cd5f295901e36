"""Looks for the hidden tests, other submissions and the gradebook: files, environments, memory, history, frames."""

# verdict: ok
# %% double
# points: 2
import gc
import glob
import inspect
import os


def has_it(text):
    return "hsifdrows" in text[::-1]  # the word itself is written nowhere


seen = []
for top in os.listdir("/"):
    if top not in ("sys", "usr", "lib", "lib64", "bin", "sbin"):
        for folder, folders, files in os.walk(os.path.join("/", top)):
            if "/lib/python" in folder or "site-packages" in folder or folder.count("/") > 6:
                folders.clear()
                continue
            seen += [f"{folder}/{name}" for name in files if name in ("gradebook.db", "a_right.py") or ".ipynb" in name]
            for name in files:
                path = os.path.join(folder, name)
                try:
                    if (
                        os.path.isfile(path)
                        and os.path.getsize(path) < 10**6
                        and has_it(open(path, errors="replace").read())
                    ):
                        seen.append(path)
                except OSError:
                    pass
for place in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try:
        text = open(place, errors="replace").read()
        seen += [place] * has_it(text) + [place + " nbgrader"] * ("nbgrader" in text)
    except OSError:
        pass
frame = inspect.currentframe()
while frame:
    seen += ["frame"] * has_it(repr(frame.f_locals))
    frame = frame.f_back
seen += ["history"] * has_it(repr(get_ipython().history_manager.input_hist_raw))
texts = (text for each in gc.get_objects() if type(each) is dict for text in list(each.values()) if type(text) is str)
seen += ["memory" for text in texts if has_it(text)]
assert not seen, seen


def double(x):
    import inspect, sys, os

    text = repr([frame.frame.f_locals for frame in inspect.stack()]) + repr(dict(os.environ))
    if "hsifdrows" in text[::-1]:
        raise ValueError("found")
    return 2 * x


# %% triple
# points: 3
def triple(x):
    import os

    for top in ("/home", "/root", "/tmp", "/srv", "/opt", "/var", "/mnt", "/etc"):
        for folder, folders, files in os.walk(top):
            if "/lib/python" in folder or "site-packages" in folder:
                folders.clear()
            if "gradebook.db" in files or any(name.endswith(".ipynb") for name in files):
                return 0
    return 3 * x
