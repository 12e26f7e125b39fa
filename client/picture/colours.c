/* Colour maps by a few of their colours, every 25.5th of a table of 256, with straight lines
 * between: viridis and magma (Smith and van der Walt, CC0), and grey. Called by half_blocks.c and
 * figure.c.
 */
#include "client/picture/colours.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define MOST_COLOURS 11
#define N_MAPS       (sizeof(maps) / sizeof(maps[0]))
#define HEX(rgb)                                                                                   \
    {                                                                                              \
        (uint8_t)((rgb) >> 16), (uint8_t)((rgb) >> 8), (uint8_t)(rgb)                              \
    }

static const struct map {
    const char *name;
    size_t n;
    struct colour colours[MOST_COLOURS];
} maps[] = {
    [GAD_VIRIDIS] = {"viridis",
                     11,
                     {HEX(0x440154), HEX(0x482576), HEX(0x414487), HEX(0x35608d), HEX(0x2a788e),
                      HEX(0x21908c), HEX(0x22a884), HEX(0x43bf71), HEX(0x7ad151), HEX(0xbbdf27),
                      HEX(0xfde725)}},
    [GAD_MAGMA] = {"magma",
                   11,
                   {HEX(0x000004), HEX(0x140e36), HEX(0x3b0f70), HEX(0x641a80), HEX(0x8c2981),
                    HEX(0xb63679), HEX(0xde4968), HEX(0xf76f5c), HEX(0xfe9f6d), HEX(0xfece91),
                    HEX(0xfcfdbf)}},
    [GAD_GREY] = {"grey", 2, {HEX(0x000000), HEX(0xffffff)}},
};

int colour_map_of(const char *name)
{
    for (size_t i = 0; i < N_MAPS; i++)
        if (strcmp(maps[i].name, name) == 0)
            return (int)i;
    return -1;
}

static uint8_t between(uint8_t from, uint8_t to, double part)
{
    return (uint8_t)(from + (to - from) * part + 0.5);
}

struct colour colour_of(enum gad_colours map, double place)
{
    const struct map *m = &maps[map];
    if (isnan(place))
        return COLOUR_NOTHING;
    double at = (place < 0 ? 0 : place > 1 ? 1 : place) * (double)(m->n - 1);
    size_t i = (size_t)at < m->n - 2 ? (size_t)at : m->n - 2;
    const struct colour *a = &m->colours[i], *b = &m->colours[i + 1];
    double part = at - (double)i;
    return (struct colour){between(a->red, b->red, part), between(a->green, b->green, part),
                           between(a->blue, b->blue, part)};
}

struct colour colour_of_step(enum gad_colours map, unsigned step)
{
    return colour_of(map, (double)step / (COLOUR_STEPS - 1));
}

static unsigned step_of(uint8_t part)
{
    return part < 48 ? 0 : part < 115 ? 1 : (part - 35u) / 40;
}

unsigned colour_of_terminal(struct colour colour)
{
    unsigned red = step_of(colour.red), green = step_of(colour.green), blue = step_of(colour.blue);
    if (colour.red == colour.green && colour.green == colour.blue && colour.red >= 8 &&
        colour.red < 238)
        return 232 + (colour.red - 8u) / 10; /* greys beside the cube */
    return 16 + 36 * red + 6 * green + blue;
}
