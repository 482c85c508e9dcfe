/* int8 x int8 -> int32 matrix product, as in quantised inference.
 * Usage: matmul_int8 REPEATS SEED; prints a hash of the 32-bit results. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 128
#define DEPTH 256

static int8_t a[ROWS][DEPTH];
static int8_t b[ROWS][DEPTH];
static int32_t c[ROWS][ROWS];

static void multiply(void) {
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < ROWS; j++) {
      int32_t sum = 0;
      for (int k = 0; k < DEPTH; k++)
        sum += a[i][k] * b[j][k];
      c[i][j] += sum;
    }
}

int main(int argc, char **argv) {
  int repeats = argc > 1 ? atoi(argv[1]) : 10;
  uint32_t state = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < DEPTH; k++) {
      state = state * 1664525u + 1013904223u;
      a[i][k] = (int8_t)(state >> 24);
      b[i][k] = (int8_t)(state >> 16);
    }
  for (int r = 0; r < repeats; r++) {
    multiply();
    a[r % ROWS][0] ^= (int8_t)c[r % ROWS][1]; /* each product needs the one before */
  }
  uint64_t hash = 1469598103934665603ull;
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < ROWS; j++)
      hash = (hash ^ (uint32_t)c[i][j]) * 1099511628211ull;
  printf("%016llx\n", (unsigned long long)hash);
  return 0;
}
