/* The one step of a tile that needs a device: its kernels go into a stream. Apart from tile.c, so
 * that who plans tiles is not linked with what runs them.
 */
#include "kernels/cuda/interpreter.h"
#include "kernels/cuda/tile.h"

int cuda_tile_launch(const struct cuda_tile *t, void *device_slot, cuda_stream stream)
{
    struct cuda_tile_at at = {0};
    struct interpreter_launch launch;
    int r = 0;
    while (r == 0 && cuda_tile_next_launch(t, &at, &launch))
        r = cuda_interpreter_launch(&launch, device_slot, stream);
    return r;
}
