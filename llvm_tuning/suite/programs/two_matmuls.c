/* D = alpha * A * B * C + beta * D in double precision (two dense products in a row).
 * Usage: two_matmuls REPEATS SEED; prints a hash of the raw bits of D. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 128

static double a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE], d[SIZE][SIZE], product[SIZE][SIZE];

static void two_products(double alpha, double beta) {
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++) {
      product[i][j] = 0.0;
      for (int k = 0; k < SIZE; k++)
        product[i][j] += alpha * a[i][k] * b[k][j];
    }
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++) {
      d[i][j] *= beta;
      for (int k = 0; k < SIZE; k++)
        d[i][j] += product[i][k] * c[k][j];
    }
}

int main(int argc, char **argv) {
  int repeats = argc > 1 ? atoi(argv[1]) : 2;
  uint32_t state = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++) {
      state = state * 1664525u + 1013904223u;
      a[i][j] = (state >> 8) / 16777216.0;
      b[i][j] = ((state >> 4) & 0xfff) / 4096.0;
      c[i][j] = ((state >> 12) & 0xff) / 256.0;
      d[i][j] = (i * j % 7) / 7.0;
    }
  for (int r = 0; r < repeats; r++)
    two_products(1.5, 0.25);
  uint64_t hash = 1469598103934665603ull;
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++) {
      uint64_t bits;
      memcpy(&bits, &d[i][j], sizeof bits);
      hash = (hash ^ bits) * 1099511628211ull;
    }
  printf("%016llx\n", (unsigned long long)hash);
  return 0;
}
