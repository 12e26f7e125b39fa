"""The whole catalogue on a device: the tests of the CPU engine's, on daemons with a CUDA worker."""

import pytest

from cuda_daemons import daemon, start  # noqa: F401: fixtures
from test_catalogue import (  # noqa: F401
    test_every_alias_and_operator_is_its_function,
    test_every_binary_function_on_every_pair_of_dtypes,
    test_every_cast,
    test_every_unary_function,
    test_numbers_are_weak_in_every_binary_function,
    test_reductions_inside_expressions_and_beside_arrays,
    test_scalar_arguments_are_as_numbers_in_the_text,
)
from test_iterate import (  # noqa: F401
    test_a_power_that_no_element_takes_is_none,
    test_many_operands_and_several_loops,
    test_states_swap_broadcast_and_rise,
    test_steps_of_every_length_and_dtype,
    test_warnings_are_of_the_steps_that_elements_take,
)
from test_layouts import (  # noqa: F401
    test_every_function_at_every_length_and_alignment,
    test_every_function_in_both_byte_orders,
    test_every_function_in_every_layout,
    test_every_function_on_every_shape,
    test_every_function_over_many_tiles_of_a_tiny_pool,
)
from test_reduction_functions import (  # noqa: F401
    reductions,
    test_every_reduction,
    test_masks,
    test_nan_and_infinities,
    test_results_are_read_beside_their_sources,
    test_special_values,
    test_sums_are_near_the_exact_ones,
    test_variances_keep_their_digits_far_from_zero,
)
from test_special_forms import (  # noqa: F401
    names,
    test_clip,
    test_index,
    test_index_in_every_memory_order,
    test_index_is_of_the_array_that_is_computed,
    test_index_over_many_tiles_of_a_tiny_pool,
    test_integer_traps_are_results_with_a_count,
    test_isclose,
    test_nan_to_integer_is_one_written_rule,
    test_nan_to_num,
    test_powers_with_a_short_way_have_the_bits_of_numpys,
    test_results_by_number,
    test_round_to_decimals,
    test_select,
    test_where_on_every_pair_of_dtypes,
)

# The kernels run under the sanitizers in the runner of the device's kernels, the worker's host side
# in test_cuda_jobs.py.
pytestmark = pytest.mark.slow
