/* The one step of a tile that needs a device: its kernels go into a stream. Apart from tile.c, so
 * that who plans tiles is not linked with what runs them.
 */
#include "kernels/cuda/interpreter.h"
#include "kernels/cuda/tile.h"

int cuda_tile_launch(const struct cuda_tile *t, void *device_slot, cuda_stream stream)
{
    struct interpreter_launch launch = cuda_tile_describe(t);
    return cuda_interpreter_launch(&launch, device_slot, stream);
}
