/* Marks of axes: few, at round numbers, labelled in one unit. Called by chart.c and figure.c;
 * tested alone. */
#include "client/picture/axis.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

double axis_step(double last, unsigned most, enum axis_unit unit)
{
    static const double factors[] = {1, 2, 5, 10};
    double least = most > 0 && last > 0 ? last / most : 1;
    double power = pow(10, floor(log10(least)));
    double step = 10 * power;
    for (unsigned i = 4; i-- > 0;)
        if (factors[i] * power >= least * (1 - 1e-9))
            step = factors[i] * power;
    return unit == AXIS_NUMBER && step < 1 ? 1 : step;
}

char *axis_label(double value, double last, enum axis_unit unit, char buffer[AXIS_LABEL_SIZE])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    unsigned i = 0;
    if (unit == AXIS_NUMBER) {
        snprintf(buffer, AXIS_LABEL_SIZE, "%.6g", value);
        return buffer;
    }
    for (; last >= 1000 && i + 1 < sizeof(units) / sizeof(units[0]); i++) {
        value /= 1000;
        last /= 1000;
    }
    snprintf(buffer, AXIS_LABEL_SIZE, "%.4g %s%s", value, units[i],
             unit == AXIS_BYTES_A_SECOND ? "/s" : "");
    return buffer;
}

double axis_time_step(double seconds, unsigned most)
{
    static const double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,
                                   300, 600, 1800, 3600, 7200, 10800, 21600, 43200};
    double least = most > 0 && seconds > 0 ? seconds / most : 1;
    if (least < 1)
        return axis_step(seconds, most, AXIS_BYTES);
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (steps[i] >= least)
            return steps[i];
    return 86400 * ceil(least / 86400);
}

static struct tm clock_at(double epoch_s)
{
    time_t seconds = (time_t)floor(epoch_s);
    struct tm local = {.tm_hour = 0};
    (void)localtime_r(&seconds, &local);
    return local;
}

double axis_first_time(double from, double step, double clock_s)
{
    double offset = isnan(clock_s) ? 0 : clock_s + (double)clock_at(clock_s + from).tm_gmtoff;
    return ceil((from + offset) / step) * step - offset;
}

char *axis_time_label(double time, double step, double clock_s, char buffer[AXIS_LABEL_SIZE])
{
    if (isnan(clock_s)) {
        snprintf(buffer, AXIS_LABEL_SIZE, "%.6g s", fabs(time) < step * 1e-6 ? 0 : time);
        return buffer;
    }
    struct tm local = clock_at(clock_s + time + 0.5 * (step < 1 ? step : 1));
    if (step >= 60)
        snprintf(buffer, AXIS_LABEL_SIZE, "%02d:%02d", local.tm_hour, local.tm_min);
    else
        snprintf(buffer, AXIS_LABEL_SIZE, "%02d:%02d:%02d", local.tm_hour, local.tm_min,
                 local.tm_sec);
    return buffer;
}
