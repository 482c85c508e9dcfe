/* What a shared object exports to be timed by SharedObjects. */
#ifndef COMPLAB_OBJECT_ABI_H
#define COMPLAB_OBJECT_ABI_H
#include <stddef.h>

/* Called once with the input; returns 0 when all is well. */
int complab_setup(const unsigned char *input, size_t size);
/* The work that is timed. It may be called any number of times and must leave the same output after each call. */
void complab_run(void);
/* The result of the last call; valid until the next one. */
const unsigned char *complab_output(size_t *size);

#endif
