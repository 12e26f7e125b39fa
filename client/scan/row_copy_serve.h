/* The process that copies rows; see row_copy.h. */
#pragma once

/* Its main(). The socket is descriptor 3. */
int row_copy_serve(void);
