/* Explicit heat flow in a cube with uneven conductivity: a seven-point stencil in double precision.
 * Usage: heat_3d SIDE SEED; prints the total heat and a hash of the final temperatures. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 40

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (double)(*state >> 11) / 9007199254740992.0;
}

/* One step from `now` to `next`; the faces of the cube keep their temperature. */
static void step(size_t n, const double *restrict now, const double *restrict rate, double *restrict next) {
  size_t plane = n * n;
  for (size_t z = 1; z + 1 < n; z++)
    for (size_t y = 1; y + 1 < n; y++)
      for (size_t x = 1; x + 1 < n; x++) {
        size_t i = z * plane + y * n + x;
        double around = now[i - 1] + now[i + 1] + now[i - n] + now[i + n] + now[i - plane] + now[i + plane];
        next[i] = now[i] + rate[i] * (around - 6.0 * now[i]);
      }
}

int main(int argc, char **argv) {
  int side = argc > 1 ? atoi(argv[1]) : 32;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (side < 3 || side > 500)
    return fprintf(stderr, "usage: heat_3d SIDE SEED, SIDE from 3 to 500\n"), 2;
  size_t n = (size_t)side, cells = n * n * n;
  double *now = malloc(cells * sizeof *now), *next = malloc(cells * sizeof *next);
  double *rate = malloc(cells * sizeof *rate);
  if (!now || !next || !rate)
    return fprintf(stderr, "out of memory\n"), 1;
  for (size_t i = 0; i < cells; i++) {
    now[i] = next[i] = 100.0 * uniform(&state);
    rate[i] = 0.02 + 0.12 * uniform(&state);
  }
  for (int s = 0; s < STEPS; s++) {
    step(n, now, rate, next);
    double *kept = now;
    now = next;
    next = kept;
  }
  uint64_t hash = 1469598103934665603ull;
  double total = 0.0;
  for (size_t i = 0; i < cells; i++) {
    uint64_t bits;
    memcpy(&bits, &now[i], sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
    total += now[i];
  }
  printf("heat %.6f\ncentre %.6f\n%016llx\n", total, now[cells / 2], (unsigned long long)hash);
  free(now), free(next), free(rate);
  return 0;
}
