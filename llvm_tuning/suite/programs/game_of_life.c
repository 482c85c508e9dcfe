/* Conway's game of life on a torus, one byte a cell.
 * Usage: game_of_life SIDE SEED; prints populations and a hash of every generation's count and of the last field. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define GENERATIONS 64

/* Copies the rim of the n x n field to the opposite sides of its frame; a row has n + 2 cells. */
static void wrap(uint8_t *cells, size_t n) {
  size_t row = n + 2;
  for (size_t x = 1; x <= n; x++) {
    cells[x] = cells[n * row + x];
    cells[(n + 1) * row + x] = cells[row + x];
  }
  for (size_t y = 0; y < row; y++) {
    cells[y * row] = cells[y * row + n];
    cells[y * row + n + 1] = cells[y * row + 1];
  }
}

/* Writes the next generation and returns its population. */
static uint32_t advance(const uint8_t *restrict now, uint8_t *restrict next, size_t n) {
  size_t row = n + 2;
  uint32_t population = 0;
  for (size_t y = 1; y <= n; y++) {
    const uint8_t *above = now + (y - 1) * row, *here = now + y * row, *below = now + (y + 1) * row;
    uint8_t *out = next + y * row;
    for (size_t x = 1; x <= n; x++) {
      int around =
          above[x - 1] + above[x] + above[x + 1] + here[x - 1] + here[x + 1] + below[x - 1] + below[x] + below[x + 1];
      out[x] = around == 3 || (around == 2 && here[x]);
      population += out[x];
    }
  }
  return population;
}

int main(int argc, char **argv) {
  int side = argc > 1 ? atoi(argv[1]) : 128;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (side < 3 || side > 10000)
    return fprintf(stderr, "usage: game_of_life SIDE SEED, SIDE from 3 to 10000\n"), 2;
  size_t n = (size_t)side, row = n + 2;
  uint8_t *now = calloc(row * row, 1), *next = calloc(row * row, 1);
  if (!now || !next)
    return fprintf(stderr, "out of memory\n"), 1;
  for (size_t y = 1; y <= n; y++)
    for (size_t x = 1; x <= n; x++) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      now[y * row + x] = (state >> 60) < 5;
    }
  uint64_t hash = 1469598103934665603ull;
  for (int g = 1; g <= GENERATIONS; g++) {
    wrap(now, n);
    uint32_t population = advance(now, next, n);
    uint8_t *kept = now;
    now = next;
    next = kept;
    hash = (hash ^ population) * 1099511628211ull;
    if (g % 16 == 0)
      printf("generation %d population %u\n", g, population);
  }
  for (size_t y = 1; y <= n; y++)
    for (size_t x = 1; x <= n; x++)
      hash = (hash ^ now[y * row + x]) * 1099511628211ull;
  printf("%016llx\n", (unsigned long long)hash);
  free(now), free(next);
  return 0;
}
