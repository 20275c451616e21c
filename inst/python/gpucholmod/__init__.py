"""Rank-k modification of dense Cholesky factors.

    cholupdate             the factor of A + x diag(weights) x', from the factor of A
    Factor                 a factor with memory of its own, on the host or on a GPU, that grows, shrinks and solves
    Batch                  many small factors that are modified together, and grow
    RecursiveLeastSquares  a ridge regression that observations are added to and removed from
    solve_modified         solutions with many modifications of a matrix, or with one of each member of a Batch

Arrays are of NumPy, or of any library that shares memory with it, such as torch on the CPU. cholupdate() and Factor
also take arrays in the memory of a GPU, of torch, CuPy, JAX, or others that have `__cuda_array_interface__` or DLPack.
The work is done by libgpucholmod, which is loaded at the first call.
"""

from .batch import Batch
from .errors import *  # noqa: F401,F403
from .errors import __all__ as _errors
from .factor import Factor
from .least_squares import RecursiveLeastSquares
from .modified import ModifiedResults, solve_modified
from .update import cholupdate

__version__ = "0.25.0"
__all__ = ["cholupdate", "Factor", "Batch", "RecursiveLeastSquares", "solve_modified", "ModifiedResults", *_errors]
