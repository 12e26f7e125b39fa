/* Colour maps: numbers as colours that rise in lightness evenly. Pure. */
#pragma once

#include "client/gpuarrayd.h"

struct colour {
    uint8_t red, green, blue;
};

#define COLOUR_NOTHING ((struct colour){128, 128, 128}) /* of NaN: of no map */

/* "viridis"; -1: there is none. */
int colour_map_of(const char *name);
/* Of 0 to 1; what is beyond is that of the end. NaN: COLOUR_NOTHING. */
struct colour colour_of(enum gad_colours map, double place);
/* A map in steps, so few that a palette of 256 has room for what is around them. */
#define COLOUR_STEPS 240u
struct colour colour_of_step(enum gad_colours map, unsigned step);
/* The nearest of a terminal's 256. */
unsigned colour_of_terminal(struct colour colour);
