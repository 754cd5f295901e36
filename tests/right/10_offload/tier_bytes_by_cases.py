"""Every placement spelled out, in exact fractions."""


# %% tier_bytes
def tier_bytes(params, n, layer, states="device", parameters="device", precision="mixed"):
    from fractions import Fraction

    psi = Fraction(params) / n
    small = 2 if precision == "mixed" else 4
    device = host = file = Fraction(0)
    if states == "device":
        device += (small + 12) * psi
    elif states == "host":
        host += (small + 12) * psi
    else:
        host += small * psi
        file += 12 * psi
    doubled = precision == "fp32" and states == parameters
    if not doubled and parameters == "device":
        device += small * psi
    if not doubled and parameters == "host":
        host += small * psi
    if not doubled and parameters == "file":
        file += small * psi
    return [device + small * layer, host, file]
