"""The Mandelbrot set of SIDE x SIDE points in float64, 256 steps at most, by iterate() and by
gd.vectorize, both with two real numbers and with a complex one, which should cost the same; NumPy
with masks and, where another Python has it, Numba on two threads, in one run.

mandelbrot.py SIDE [ROUNDS [PYTHON]], with a daemon. PYTHON has numpy and numba. The least of the rounds
counts; NumPy, which takes minutes, has one, of at most 2048 points. All have the coordinates of a row
and of a column.

Of 1536 x 1536 on two cores of an EPYC the complex text took 0.98 of the real one's time, gd.vectorize
1.08, of a complex number 1.13, with abs(z) in each step 1.29, and NumPy 17.
"""

import json
import subprocess
import sys
import time

import numpy as np

N_STEPS = 256
TEXT = (f"z = 0*(cr + ci); zr = z; zi = z; k = int32(z); "
        f"int32(iterate({N_STEPS}, k = k + 1, zr = zr*zr - zi*zi + cr, zi = 2*zr*zi + ci, "
        f"until = zr*zr + zi*zi > 4))")
COMPLEX = (f"c = complex(cr, ci); z = 0j; k = int32(0*real(c)); "
           f"int32(iterate({N_STEPS}, k = k + 1, z = z*z + c, until = abs2(z) > 4))")


def escaped(cr, ci):
    """For gd.vectorize: of one point."""
    zr = zi = 0.0
    for k in range(N_STEPS):
        if zr*zr + zi*zi > 4:
            return k
        zr, zi = zr*zr - zi*zi + cr, 2*zr*zi + ci
    return N_STEPS


def escaped_complex(cr, ci):
    c, z = complex(cr, ci), 0j
    for k in range(N_STEPS):
        if z.real*z.real + z.imag*z.imag > 4:
            return k
        z = z*z + c
    return N_STEPS


def escaped_by_abs(cr, ci):
    """As most write it, with a root in each step."""
    c, z = complex(cr, ci), 0j
    for k in range(N_STEPS):
        if abs(z) > 2:
            return k
        z = z*z + c
    return N_STEPS


def axes(side):
    return np.linspace(-2, 0.6, side)[None, :], np.linspace(-1.3, 1.3, side)[:, None]


def masked(cr, ci):
    """Those that go on are computed by themselves, in every step."""
    cr, ci = (np.ascontiguousarray(a).ravel() for a in np.broadcast_arrays(cr, ci))
    counts = np.zeros(len(cr), "i4")
    left = np.arange(len(cr))
    zr, zi = np.zeros_like(cr), np.zeros_like(cr)
    for _ in range(N_STEPS):
        squares = zr*zr, zi*zi
        goes_on = squares[0] + squares[1] <= 4
        left, cr, ci, zr, zi = (a[goes_on] for a in (left, cr, ci, zr, zi))
        zr, zi = zr*zr - zi*zi + cr, 2*zr*zi + ci
        counts[left] += 1
    return counts


def numbas():
    from numba import njit, prange, set_num_threads
    set_num_threads(2)

    @njit(parallel=True, fastmath=False)
    def loop(cr, ci, counts):
        for i in prange(counts.shape[0]):
            for j in range(counts.shape[1]):
                zr = zi = 0.0
                k = 0
                while k < N_STEPS and zr*zr + zi*zi <= 4:
                    zr, zi = zr*zr - zi*zi + cr[j], 2*zr*zi + ci[i]
                    k += 1
                counts[i, j] = k

    def run(cr, ci):
        counts = np.empty((ci.shape[0], cr.shape[1]), "i4")
        loop(cr[0], ci[:, 0], counts)
        return counts

    run(*axes(4))
    return run


def seconds(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, int(np.sum(result, dtype="i8"))


def peer(side):
    """In a process of its own, a round for each line of its input."""
    run = numbas()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(seconds(lambda: run(*axes(side)))), flush=True)


def main():
    import gpuarrayd as gd
    side = int(sys.argv[1])
    n_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    cr, ci = axes(side)
    out = gd.empty((side, side), "i4")

    def by(text):
        gd.evaluate(text, cr=cr, ci=ci, out=out)
        return out

    vectorized = [gd.vectorize(f, otypes="i4") for f in (escaped, escaped_complex, escaped_by_abs)]
    other = None
    if len(sys.argv) > 3:
        other = subprocess.Popen([sys.argv[3], __file__, "peer", str(side)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        other.stdout.readline()
    ways = {"iterate": lambda: by(TEXT), "complex": lambda: by(COMPLEX),
            "vectorize": lambda: vectorized[0](cr, ci, out=out),
            "v complex": lambda: vectorized[1](cr, ci, out=out),
            "v abs": lambda: vectorized[2](cr, ci, out=out)}
    times = {**{name: [] for name in ways}, "numba": []}
    for _ in range(n_rounds):
        for name, way in ways.items():
            times[name].append(seconds(way))
        if other:
            print("go", file=other.stdin, flush=True)
            times["numba"].append(json.loads(other.stdout.readline()))
    times["numpy"] = [seconds(lambda: masked(cr, ci))] if side <= 2048 else []
    if other:
        other.communicate()
    own = min(times["iterate"])[0]
    for name, found in times.items():
        if found:
            best, total = min(found)
            print(f"{name:9} {best:8.3f} s  {best / own:6.2f} times ours   steps {total}")


if __name__ == "__main__":
    peer(int(sys.argv[2])) if sys.argv[1] == "peer" else main()
