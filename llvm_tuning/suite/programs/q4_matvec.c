/* Matrix-vector product with 4-bit block-quantised weights and 8-bit activations, as in local language models.
 * Usage: q4_matvec TOKENS SEED; every output, normalised, is the next token's input. Prints figures and a hash. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 512
#define BLOCK 32
#define BLOCKS (WIDTH / BLOCK)

struct weight_block {
  float scale;
  uint8_t nibbles[BLOCK / 2]; /* element k in the low half of byte k, element k + 16 in the high half; 8 means 0 */
};

struct activation_block {
  float scale;
  int8_t values[BLOCK];
};

static struct weight_block weights[WIDTH][BLOCKS];
static uint64_t hash = 1469598103934665603ull;

static void feed(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  hash = (hash ^ bits) * 1099511628211ull;
}

static uint32_t draw(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(*state >> 32);
}

static void quantise(const float *x, struct activation_block *blocks) {
  for (int b = 0; b < BLOCKS; b++) {
    const float *values = x + b * BLOCK;
    float largest = 0.0f;
    for (int k = 0; k < BLOCK; k++) {
      float size = fabsf(values[k]);
      largest = size > largest ? size : largest;
    }
    float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
    blocks[b].scale = largest / 127.0f;
    for (int k = 0; k < BLOCK; k++) {
      float scaled = values[k] * inverse;
      blocks[b].values[k] = (int8_t)(scaled < 0.0f ? scaled - 0.5f : scaled + 0.5f);
    }
  }
}

static float dot(const struct weight_block *w, const struct activation_block *x) {
  float sum = 0.0f;
  for (int b = 0; b < BLOCKS; b++) {
    int32_t products = 0;
    for (int k = 0; k < BLOCK / 2; k++) {
      int low = (w[b].nibbles[k] & 15) - 8, high = (w[b].nibbles[k] >> 4) - 8;
      products += low * x[b].values[k] + high * x[b].values[k + BLOCK / 2];
    }
    sum += w[b].scale * x[b].scale * (float)products;
  }
  return sum;
}

static void multiply(const struct activation_block *x, float *y) {
  for (int row = 0; row < WIDTH; row++)
    y[row] = dot(weights[row], x);
}

/* Scales to a root mean square of 1. */
static void normalise(float *x) {
  float sum = 0.0f;
  for (int i = 0; i < WIDTH; i++)
    sum += x[i] * x[i];
  float scale = 1.0f / sqrtf(sum / WIDTH + 1e-6f);
  for (int i = 0; i < WIDTH; i++)
    x[i] *= scale;
}

int main(int argc, char **argv) {
  int tokens = argc > 1 ? atoi(argv[1]) : 4;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (tokens < 1)
    return fprintf(stderr, "usage: q4_matvec TOKENS SEED, TOKENS from 1\n"), 2;
  static float x[WIDTH], y[WIDTH];
  static struct activation_block quantised[BLOCKS];
  for (int row = 0; row < WIDTH; row++)
    for (int b = 0; b < BLOCKS; b++) {
      weights[row][b].scale = (float)(1 + draw(&state) % 1000) / 16384.0f;
      for (int k = 0; k < BLOCK / 2; k++)
        weights[row][b].nibbles[k] = (uint8_t)(draw(&state) >> 24);
    }
  for (int i = 0; i < WIDTH; i++)
    x[i] = (float)(draw(&state) >> 8) / 8388608.0f - 1.0f;
  for (int t = 0; t < tokens; t++) {
    quantise(x, quantised);
    multiply(quantised, y);
    for (int i = 0; i < WIDTH; i++) {
      feed(y[i]);
      x[i] = 0.5f * x[i] + y[i]; /* a residual connection */
    }
    normalise(x);
  }
  for (int i = 0; i < WIDTH; i++)
    feed(x[i]);
  printf("first %.6f\nlast %.6f\n%016llx\n", (double)x[0], (double)x[WIDTH - 1], (unsigned long long)hash);
  return 0;
}
