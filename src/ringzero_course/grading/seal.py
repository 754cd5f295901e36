"""An instructor's secret, from which the hidden cases of a sealed course follow: see ``lab/specification.py``."""

import hashlib
import secrets
from pathlib import Path

from ringzero.processes import durable

SECRET = "secret"  # in the course directory


def of(root: Path) -> str:
    """The seal of the course directory ``root``: a hash of its secret; "" where it has none."""
    path = Path(root) / SECRET
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def make(root: Path) -> Path:
    """Give the course a secret. Raises FileExistsError where it has one."""
    path = Path(root) / SECRET
    if path.exists():
        raise FileExistsError(f"{path} is there already. With another secret all is graded again, by other cases.")
    root.mkdir(exist_ok=True)
    durable.write(path, secrets.token_hex(32) + "\n")
    path.chmod(0o600)
    return path
