"""Fills /tmp and /dev/shm, which are its own, and leaves a shared memory segment."""


# verdict: student fault
# says: OSError
# %% triple
# points: 3
def triple(x):
    return 3 * x


from multiprocessing.shared_memory import SharedMemory

left = SharedMemory("hostile-segment", create=True, size=2**20)
for folder in ("/tmp", "/dev/shm"):
    try:
        for number in range(10**6):
            with open(f"{folder}/hostile-{number}", "wb") as file:
                file.write(bytes(2**22))
    except OSError as error:
        full = error
raise full
