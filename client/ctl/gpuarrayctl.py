#!python
"""gpuarrayctl of a Python environment: the program is in the package, wherever that is."""
import os
import sys

for folder in sys.path:
    program = os.path.join(folder, "gpuarrayd", "_prefix", "bin", "gpuarrayctl")
    if os.access(program, os.X_OK):
        os.execv(program, sys.argv)
sys.exit("gpuarrayctl: this Python has no package gpuarrayd: say 'pip install' of it again")
