"""Array jobs on this machine's GPU or CPU, in memory that a daemon took once, as with NumPy.

    import gpuarrayd as gd
    r = gd.evaluate("sqrt(a*a + b*b)", a=a, b=b)         # a, b: NumPy arrays of any kind
    x = gd.open("big.npy")                               # never loaded
    gd.save("y.npy", (gd.sqrt(x*x + 1) - x.mean()).astype("f4"))

Arrays may be larger than the device and larger than memory. Results are NumPy's.

    text form      evaluate; submit, which gives a Future
    lazy form      open, lazy: Lazy; compute, save; NumPy's functions by name: sqrt, where, sum,
                   mean, std ... with axis, keepdims, where, ddof (gpuarrayd._functions.reductions);
                   linalg.norm; median, quantile; cumsum, diff; histogram, bincount, take;
                   x @ y, matmul with alpha and beta, tensordot, einsum, diagonal
    streams        from_generator, stream, stream_writer
    functions      vectorize, stencil: of numbers and neighbours, written in Python;
                   map_blocks: of blocks, in this process
    random numbers random.default_rng(seed), NumPy's Generator; random.normal(seed=3) and its like
    files          open; list: what is in one, as Listed
    decompositions linalg.svd, pca, lstsq, qr ...; cov, corrcoef
    without memory arange, linspace, ones, full, eye, tril, triu, meshgrid, broadcast_to
    shared memory  empty, zeros, empty_like, zeros_like, asarray
    times          time_limits: a queue time-out and a deadline for jobs
    the daemon     connect, close, info, stats, ops
    errors         Error, and below it a class for each code (gpuarrayd.errors); Unsupported
    decompositions tensor.cp, tensor.tucker
    training       Dataset, DataLoader: batches of rows, shuffled exactly
    Dask           gpuarrayd.dask
"""

import builtins as _builtins
from typing import TYPE_CHECKING, Any

from . import _core, _loading, errors
from ._arrays import asarray, empty, empty_like, zeros, zeros_like
from ._jobs.evaluate import evaluate, submit
from ._files import Listed, list
from ._functions.functions import *  # noqa: F403
from ._functions.functions_of_one import *  # noqa: F403
from ._functions.functions_of_two import *  # noqa: F403
from ._functions.counts import *  # noqa: F403
from ._functions.einsum import *  # noqa: F403
from ._functions.gradients import *  # noqa: F403
from ._functions.near import *  # noqa: F403
from ._functions.products import *  # noqa: F403
from ._functions.quantiles import *  # noqa: F403
from ._functions.reductions import *  # noqa: F403
from ._functions.scans import *  # noqa: F403
from ._functions.triangles import *  # noqa: F403
from ._functions.windows import *  # noqa: F403
from ._lazy.array import Lazy, lazy, open
from ._lazy.blockwise import map_blocks
from ._lazy.moves import *  # noqa: F403
from ._lazy.reshaping import *  # noqa: F403
from ._lazy.results import compute, save
from ._lazy.streaming.streams import from_generator, stream, stream_writer
from ._session import close, connect, info, ops, stats
from .errors import *  # noqa: F403

if TYPE_CHECKING:
    from . import array_api as array_api
    from . import dask as dask
    from . import linalg as linalg
    from . import ndimage as ndimage
    from . import random as random
    from . import tensor as tensor
    from ._datasets.dataset import Dataset as Dataset
    from ._datasets.loader import DataLoader as DataLoader
    from ._linalg.spread import corrcoef as corrcoef
    from ._linalg.spread import cov as cov
    from .array_api import from_dlpack as from_dlpack
    from ._functions.creation import arange as arange
    from ._functions.creation import eye as eye
    from ._functions.creation import full as full
    from ._functions.creation import full_like as full_like
    from ._functions.creation import linspace as linspace
    from ._functions.creation import meshgrid as meshgrid
    from ._functions.creation import ones as ones
    from ._functions.creation import ones_like as ones_like
    from ._functions.creation import tril as tril
    from ._functions.creation import triu as triu
    from ._functions.derived import array_split as array_split
    from ._functions.derived import average as average
    from ._functions.derived import bitwise_invert as bitwise_invert
    from ._functions.derived import broadcast_shapes as broadcast_shapes
    from ._functions.derived import bitwise_left_shift as bitwise_left_shift
    from ._functions.derived import bitwise_right_shift as bitwise_right_shift
    from ._functions.derived import conj as conj
    from ._functions.derived import cumulative_prod as cumulative_prod
    from ._functions.derived import cumulative_sum as cumulative_sum
    from ._functions.derived import dsplit as dsplit
    from ._functions.derived import hsplit as hsplit
    from ._functions.derived import imag as imag
    from ._functions.derived import interp as interp
    from ._functions.derived import isin as isin
    from ._functions.derived import kron as kron
    from ._functions.derived import nanargmax as nanargmax
    from ._functions.derived import nanargmin as nanargmin
    from ._functions.derived import nancumprod as nancumprod
    from ._functions.derived import nancumsum as nancumsum
    from ._functions.derived import real as real
    from ._functions.derived import sliding_window_view as sliding_window_view
    from ._functions.derived import split as split
    from ._functions.derived import trapezoid as trapezoid
    from ._functions.derived import unstack as unstack
    from ._functions.derived import vsplit as vsplit
    from ._functions.dtypes import can_cast as can_cast
    from ._functions.dtypes import finfo as finfo
    from ._functions.dtypes import iinfo as iinfo
    from ._functions.dtypes import isdtype as isdtype
    from ._functions.dtypes import result_type as result_type
    from ._functions.sorting import argsort as argsort
    from ._functions.sorting import sort as sort
    from ._functions.sorting import unique_all as unique_all
    from ._functions.sorting import unique_counts as unique_counts
    from ._functions.sorting import unique_inverse as unique_inverse
    from ._functions.sorting import unique_values as unique_values
    from ._jobs.future import Future as Future
    from ._jobs.repeat import repeat as repeat
    from ._jobs.times import time_limits as time_limits
    from ._kernels.stencil import stencil as stencil
    from ._kernels.vectorize import vectorize as vectorize

__version__ = _core.versions().split(",")[0].split()[1]

__all__ = [
    "evaluate", "submit", "Future", "open", "list", "Listed", "lazy", "Lazy", "compute", "save",
    "empty", "empty_like", "zeros", "zeros_like", "asarray", "from_generator", "stream",
    "stream_writer", "time_limits", "vectorize", "stencil", "map_blocks", "Dataset", "DataLoader",
    "connect", "close", "info", "stats", "ops", "errors",
    # functions
    "negative", "positive", "reciprocal", "sign", "invert", "bitwise_count", "logical_not",
    "absolute", "fabs", "sqrt", "square", "cbrt", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
    "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg", "sinc", "erf", "erfc", "gamma",
    "lgamma", "expit", "logit", "floor", "ceil", "trunc", "rint", "spacing", "isnan",
    "isfinite", "isinf", "isposinf", "isneginf", "signbit", "bitwise_not", "abs", "asin",
    "acos", "atan", "asinh", "acosh", "atanh", "radians", "degrees", "gammaln", "fix", "add",
    "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "power",
    "float_power", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm",
    "logical_and", "logical_or", "logical_xor", "minimum", "maximum", "fmin", "fmax", "hypot",
    "logaddexp", "logaddexp2", "arctan2", "heaviside", "copysign", "nextafter", "ldexp",
    "true_divide", "mod", "pow", "atan2", "where", "select", "clip", "round", "around",
    "isclose", "nan_to_num", "index", "astype", "divmod", "frexp", "modf",
    # functions along axes
    "sum", "prod", "mean", "var", "std", "min", "amin", "max", "amax", "ptp", "argmin", "argmax",
    "any", "all", "count_nonzero", "norm", "nansum", "nanprod", "nanmean", "nanvar", "nanstd",
    "nanmin", "nanmax", "logsumexp", "quantile", "percentile", "median", "nanquantile",
    "nanpercentile", "nanmedian", "cumsum", "cumprod", "diff",
    # counts and look-ups
    "histogram", "histogram_bin_edges", "bincount", "searchsorted", "digitize", "take",
    # matrix products
    "matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat", "outer", "tensordot", "einsum",
    # neighbours, steps of time, windows
    "near", "repeat", "window_sum", "window_mean", "window_min", "window_max", "window_std",
    "window_median", "window_rank", "correlate", "convolve", "gradient",
    # decompositions
    "qr_r", "cov", "corrcoef",
    "diagonal", "trace",
    # elsewhere
    "transpose", "permute_dims", "swapaxes", "moveaxis", "flip", "fliplr", "flipud",
    "expand_dims", "squeeze", "reshape", "ravel", "concatenate", "concat", "stack", "vstack",
    "hstack", "dstack", "roll", "tile", "pad", "flatnonzero", "nonzero", "take_along_axis",
    "matrix_transpose", "broadcast_to", "broadcast_arrays",
    # made of nothing
    "arange", "linspace", "ones", "full", "ones_like", "full_like", "eye", "tril", "triu",
    "meshgrid",
    # written with others, and dtypes
    "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "conj", "real", "imag",
    "cumulative_sum", "cumulative_prod", "nancumsum", "nancumprod", "nanargmin", "nanargmax",
    "average", "trapezoid", "kron", "isin", "interp", "sliding_window_view", "split",
    "array_split", "hsplit", "vsplit", "dsplit", "unstack", "result_type", "can_cast", "isdtype",
    "finfo", "iinfo", "broadcast_shapes", "from_dlpack",
    # sorted in this process
    "sort", "argsort", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    # errors; those of single codes (`except gd.BadShape`) are in the reference of gpuarrayd.errors
    "Error", "RequestError", "SessionError", "DaemonError", "Unsupported", "PackedWarning",
]

_LATER = {  # what is loaded when it is asked for, and where it is
    **dict.fromkeys(("dask", "linalg", "ndimage", "random", "tensor", "array_api"), ""),
    "from_dlpack": "array_api",
    "Future": "_jobs.future", "time_limits": "_jobs.times", "repeat": "_jobs.repeat",
    "vectorize": "_kernels.vectorize", "stencil": "_kernels.stencil",
    "cov": "_linalg.spread", "corrcoef": "_linalg.spread",
    "Dataset": "_datasets.dataset", "DataLoader": "_datasets.loader",
    **dict.fromkeys(("arange", "linspace", "ones", "full", "ones_like", "full_like", "eye", "tril",
                     "triu", "meshgrid"), "_functions.creation"),
    **dict.fromkeys(("bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "conj", "real",
                     "imag", "cumulative_sum", "cumulative_prod", "nancumsum", "nancumprod",
                     "nanargmin", "nanargmax", "average", "trapezoid", "kron", "isin", "interp",
                     "sliding_window_view", "split", "array_split", "hsplit", "vsplit", "dsplit",
                     "unstack", "broadcast_shapes"), "_functions.derived"),
    **dict.fromkeys(("sort", "argsort", "unique_all", "unique_counts", "unique_inverse",
                     "unique_values"), "_functions.sorting"),
    **dict.fromkeys(("result_type", "can_cast", "isdtype", "finfo", "iinfo"),
                    "_functions.dtypes"),
}

if not TYPE_CHECKING:  # the checker would believe in every name
    def __getattr__(name: str) -> Any:
        """What is loaded when it is asked for: Dask, random numbers, datasets, and what futures
        need."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib
        with _loading.loading():
            module = importlib.import_module(f"gpuarrayd.{_LATER[name] or name}")
            return getattr(module, name) if _LATER[name] else module


def __dir__() -> _builtins.list[str]:
    return sorted({*globals(), *__all__, *_LATER})
