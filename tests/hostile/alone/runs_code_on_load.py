"""Its pickle runs code where it is loaded. That must be a box, never the tests' kernel or the grader."""


# verdict: ok
# %% double
# points: 2
class OnLoad:
    def __reduce__(self):
        look = "open('/tmp/hostile-escaped', 'w') if 'RINGZERO_STUDENTS_KERNEL' in __import__('os').environ else None"
        look += (
            "\n__import__('os').system('touch /tmp/hostile-escaped ~/hostile-escaped /hostile-escaped 2>/dev/null')"
        )
        return exec, (look,)


loaded = OnLoad()


def double(x):
    loaded
    return 2 * x
