/* Quantised 3 x 3 convolutions in int8 (channels last) with 32-bit sums, requantisation and ReLU, as in edge inference.
 * Usage: conv_int8 LAYERS SEED; prints the mean activation and a hash of every layer's output. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 24
#define CHANNELS 16
#define SHIFT 9

typedef int8_t image[SIDE + 2][SIDE + 2][CHANNELS]; /* with a frame of zeros */

static int8_t weights[CHANNELS][3][3][CHANNELS]; /* [out][y][x][in] */
static int32_t biases[CHANNELS];

static uint32_t draw(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(*state >> 32);
}

/* sum * 2^-SHIFT, rounded to nearest, then ReLU and saturation. */
static int8_t requantise(int32_t sum) {
  int32_t scaled = (sum + (1 << (SHIFT - 1))) >> SHIFT;
  return (int8_t)(scaled < 0 ? 0 : scaled > 127 ? 127 : scaled);
}

static void convolve(image in, image out) {
  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++)
      for (int o = 0; o < CHANNELS; o++) {
        int32_t sum = biases[o];
        for (int dy = 0; dy < 3; dy++)
          for (int dx = 0; dx < 3; dx++)
            for (int c = 0; c < CHANNELS; c++)
              sum += in[y + dy][x + dx][c] * weights[o][dy][dx][c];
        out[y + 1][x + 1][o] = requantise(sum);
      }
}

int main(int argc, char **argv) {
  int layers = argc > 1 ? atoi(argv[1]) : 4;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (layers < 1)
    return fprintf(stderr, "usage: conv_int8 LAYERS SEED, LAYERS from 1\n"), 2;
  static image a, b;
  int8_t (*now)[SIDE + 2][CHANNELS] = a, (*next)[SIDE + 2][CHANNELS] = b;
  for (int y = 1; y <= SIDE; y++)
    for (int x = 1; x <= SIDE; x++)
      for (int c = 0; c < CHANNELS; c++)
        a[y][x][c] = (int8_t)(draw(&state) % 128);
  uint64_t hash = 1469598103934665603ull;
  double mean = 0.0;
  for (int l = 0; l < layers; l++) {
    for (int o = 0; o < CHANNELS; o++) {
      biases[o] = (int32_t)(draw(&state) % 16384);
      for (int k = 0; k < 9 * CHANNELS; k++)
        weights[o][k / CHANNELS / 3][k / CHANNELS % 3][k % CHANNELS] = (int8_t)((int32_t)(draw(&state) % 160) - 80);
    }
    convolve(now, next);
    int64_t sum = 0;
    for (int y = 1; y <= SIDE; y++)
      for (int x = 1; x <= SIDE; x++)
        for (int c = 0; c < CHANNELS; c++) {
          sum += next[y][x][c];
          hash = (hash ^ (uint64_t)next[y][x][c]) * 1099511628211ull;
        }
    mean = (double)sum / (SIDE * SIDE * CHANNELS);
    int8_t (*kept)[SIDE + 2][CHANNELS] = now;
    now = next;
    next = kept;
  }
  printf("mean %.6f\ncorner %d\n%016llx\n", mean, now[1][1][0], (unsigned long long)hash);
  return 0;
}
