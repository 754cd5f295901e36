"""Fills the one folder of the machine that its kernel can write: that of its sockets."""

# verdict: limit
# says: DISK LIMIT
# %% triple
import os, time
import ipykernel

folder = os.path.dirname(ipykernel.get_connection_file())
for number in range(10**5):
    with open(f"{folder}/hostile-{number}", "wb") as file:
        file.write(bytes(2**22))
    time.sleep(0.02)
