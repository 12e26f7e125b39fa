"""Random expression trees on a device: those of test_trees.py in place and over many tiles, on daemons
with a CUDA worker. The plain build checks what values all of them have."""

import test_trees
from cuda_daemons import daemon, start  # noqa: F401: fixtures
from test_trees import (  # noqa: F401
    ops,
    test_trees_in_place,
    test_trees_over_many_tiles_of_a_tiny_pool,
)

pytestmark = test_trees.pytestmark
