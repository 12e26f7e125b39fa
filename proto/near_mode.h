/* How an axis goes on beyond its ends: numpy.pad's modes, as messages and engines have them. For C
 * and CUDA C++. */
#pragma once

enum near_mode { NEAR_EDGE, NEAR_CONSTANT, NEAR_REFLECT, NEAR_SYMMETRIC, NEAR_WRAP, NEAR_N_MODES };
