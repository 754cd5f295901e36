"""Where temporary folders go."""

import tempfile

LONGEST = 40  # characters of a folder in which a socket's path still fits: the system allows about 100


def short_temporary_folder(below: int = 0) -> str:
    """The folder for temporary files, or ``/tmp`` if its name is too long for the path of a Unix socket in it.

    ``below`` is the length of the names of folders between the two.
    """
    usual = tempfile.gettempdir()
    return usual if len(usual) + below < LONGEST else "/tmp"
