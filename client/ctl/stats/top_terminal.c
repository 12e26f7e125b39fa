/* Whether the terminal can be drawn on.
 *
 * newterm() would find it out too, but loses the memory that it took by then. Apart from
 * top_screen.c, since term.h defines macros with the names of everyday variables.
 */
#include "client/ctl/stats/top.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

bool top_terminal_is_known(void)
{
    int found = 0;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}
