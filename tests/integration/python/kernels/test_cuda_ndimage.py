"""gd.ndimage on a device (cuda_daemons.py): the tests of test_ndimage.py."""

import pytest

import test_ndimage
from cuda_daemons import daemon  # noqa: F401: a fixture
from test_ndimage import (  # noqa: F401
    test_every_filter,
    test_gradient,
    test_windows_of_windows_and_of_what_passes_make,
)

# Under the sanitizers the kernels run in the runner of the device's kernels.
pytestmark = [*test_ndimage.pytestmark, pytest.mark.slow]
