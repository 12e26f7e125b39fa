/* The link and the device, measured as the worker starts. */
#pragma once

#include "daemon/worker/cuda/card.h"

struct card_rates {
    struct plan_rates rates;
    double both_ways;        /* bytes a second, both directions in sum */
    double overhead_seconds; /* of a copy, the slower direction's */
    double turn_seconds;     /* that the host needs to give the device a tile and to take it back */
    double slower;           /* the slower direction's rate */
};

/* Uses the beginning of both slabs, nobody else has anything there, and the card's streams. Some
 * tens of milliseconds, more on a very slow link. 0 or a runtime error; a device that gives wrong
 * results is CARD_WRONG_RESULT. */
#define CARD_WRONG_RESULT (-EIO)
int card_rates_measure(const struct card *card, unsigned n_threads,
                       struct card_rates *ret_rates) GAD_MUST_CHECK;
