"""Empty files, in the one folder of the machine that its kernel can write: each takes one of the disk's inodes."""

# verdict: limit
# says: DISK LIMIT
# %% triple
import os, time
import ipykernel

folder = os.path.dirname(ipykernel.get_connection_file())
for number in range(60_000):
    os.mknod(f"{folder}/hostile-{number}")
time.sleep(10)
