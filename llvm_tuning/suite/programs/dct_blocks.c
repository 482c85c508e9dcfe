/* Transform coding of an image, as in JPEG: integer 8 x 8 DCT, quantisation, and back.
 * Usage: dct_blocks SIDE SEED (side in 8-pixel blocks); prints error and zeros, a hash of coefficients and pixels. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 8
#define SCALE_BITS 12

/* round(4096 cos(k pi / 16)) for k = 0 to 8 */
static const int cosines[9] = {4096, 4017, 3784, 3406, 2896, 2276, 1567, 799, 0};

static const uint8_t steps[N][N] = {{16, 11, 10, 16, 24, 40, 51, 61},     {12, 12, 14, 19, 26, 58, 60, 55},
                                    {14, 13, 16, 24, 40, 57, 69, 56},     {14, 17, 22, 29, 51, 87, 80, 62},
                                    {18, 22, 37, 56, 68, 109, 103, 77},   {24, 35, 55, 64, 81, 104, 113, 92},
                                    {49, 64, 78, 87, 103, 121, 120, 101}, {72, 92, 95, 98, 112, 100, 103, 99}};

static int basis[N][N]; /* [frequency][position], orthonormal times 2^SCALE_BITS */

static int cosine(int k) { /* of k pi / 16 */
  k %= 32;
  if (k > 16)
    k = 32 - k;
  return k <= 8 ? cosines[k] : -cosines[16 - k];
}

static void make_basis(void) {
  for (int u = 0; u < N; u++)
    for (int x = 0; x < N; x++)
      basis[u][x] = u == 0 ? 1448 : cosine((2 * x + 1) * u) / 2;
}

static int descale(int value) { return (value + (1 << (SCALE_BITS - 1))) >> SCALE_BITS; }

static void forward(int block[N][N]) {
  int rows[N][N];
  for (int y = 0; y < N; y++)
    for (int u = 0; u < N; u++) {
      int sum = 0;
      for (int x = 0; x < N; x++)
        sum += basis[u][x] * block[y][x];
      rows[y][u] = descale(sum);
    }
  for (int v = 0; v < N; v++)
    for (int u = 0; u < N; u++) {
      int sum = 0;
      for (int y = 0; y < N; y++)
        sum += basis[v][y] * rows[y][u];
      block[v][u] = descale(sum);
    }
}

static void inverse(int block[N][N]) {
  int rows[N][N];
  for (int v = 0; v < N; v++)
    for (int x = 0; x < N; x++) {
      int sum = 0;
      for (int u = 0; u < N; u++)
        sum += basis[u][x] * block[v][u];
      rows[v][x] = descale(sum);
    }
  for (int y = 0; y < N; y++)
    for (int x = 0; x < N; x++) {
      int sum = 0;
      for (int v = 0; v < N; v++)
        sum += basis[v][y] * rows[v][x];
      block[y][x] = descale(sum);
    }
}

/* Divides by the steps, rounds to nearest, and returns how many coefficients became zero. */
static int quantise(int block[N][N]) {
  int zeros = 0;
  for (int v = 0; v < N; v++)
    for (int u = 0; u < N; u++) {
      int half = steps[v][u] / 2;
      block[v][u] = (block[v][u] + (block[v][u] < 0 ? -half : half)) / steps[v][u];
      zeros += block[v][u] == 0;
    }
  return zeros;
}

int main(int argc, char **argv) {
  int side = argc > 1 ? atoi(argv[1]) : 16;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (side < 1 || side > 1000)
    return fprintf(stderr, "usage: dct_blocks SIDE SEED, SIDE from 1 to 1000\n"), 2;
  uint64_t hash = 1469598103934665603ull, error = 0;
  int zeros = 0, slope = 3, phase = 0;
  make_basis();
  for (int b = 0; b < side * side; b++) {
    int block[N][N], original[N][N];
    for (int y = 0; y < N; y++)
      for (int x = 0; x < N; x++) { /* a slanted ramp with noise; slope and phase change from block to block */
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        int pixel = ((x * slope + y * (16 - slope) + phase) & 255) + (int)(state >> 59) - 16;
        original[y][x] = block[y][x] = (pixel < 0 ? 0 : pixel > 255 ? 255 : pixel) - 128;
      }
    slope = (int)(state >> 40 & 15);
    phase = (int)(state >> 48 & 255);
    forward(block);
    zeros += quantise(block);
    for (int v = 0; v < N; v++)
      for (int u = 0; u < N; u++) {
        hash = (hash ^ (uint64_t)(int64_t)block[v][u]) * 1099511628211ull;
        block[v][u] *= steps[v][u];
      }
    inverse(block);
    for (int y = 0; y < N; y++)
      for (int x = 0; x < N; x++) {
        int difference = block[y][x] - original[y][x];
        error += (uint64_t)(difference * difference);
        hash = (hash ^ (uint64_t)(int64_t)block[y][x]) * 1099511628211ull;
      }
  }
  printf("squared error %llu\nzeros %d of %d\n%016llx\n", (unsigned long long)error, zeros, side * side * N * N,
         (unsigned long long)hash);
  return 0;
}
