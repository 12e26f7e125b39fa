/* The public header by itself: as strict C11 and as C++17, with nothing included before it and the
 * names of two structures and two functions used, so that it also links.
 */
#include <gpuarrayd.h>

int main(void)
{
    struct gad_job_options options;
    struct gad_error error;
    options.n_args = 0;
    error.status = GAD_OK;
    return gad_status_word(error.status) && gad_version() && options.n_args == 0 ? 0 : 1;
}
