/* The same in C++. */
#include "alone.c"
