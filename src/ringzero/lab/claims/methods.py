"""What the methods send that synchronise less, in bytes: for claims of ``gives``."""


def bytes_a_step(
    method: str, n: int, rows: int, columns: int, h: int = 1, degree: int = 2, k: int = 0, r: int = 1
) -> float:
    """Bytes that one of ``n`` ranks sends in a step, on the average of many steps, for an fp32 matrix.

    An all-reduce of B bytes sends 2(n-1)/n B, an all-gather to which each rank gives B bytes (n-1) B.
    """
    whole = 4 * rows * columns
    reduced, gathered = 2 * (n - 1) / n, n - 1
    return {
        "DDP": reduced * whole,
        "local SGD": reduced * whole / h,
        "gossip": degree * whole,
        "top-k": gathered * 8 * k,
        "signs": gathered * -(-rows * columns // 8),
        "PowerSGD": reduced * 4 * r * (rows + columns),
    }[method]
