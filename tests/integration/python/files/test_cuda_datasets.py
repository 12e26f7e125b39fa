"""Transforms of loaders on a device (cuda_daemons.py): the tests of test_datasets.py."""

from cuda_daemons import daemon  # noqa: F401: a fixture
from test_datasets import (  # noqa: F401
    data,
    test_a_batch_is_a_function_of_data_and_seed_alone,
    test_a_transform_sees_the_parts_as_they_were_read,
    test_random_numbers_are_those_of_their_row,
)
