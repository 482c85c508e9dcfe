/* IMA ADPCM: codes 16-bit sound in 4 bits a sample and decodes it again.
 * Usage: adpcm SAMPLES SEED; prints the mean squared error and a hash of the codes and of the decoded samples. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const int step_sizes[89] = {
    7,    8,     9,     10,    11,    12,    13,    14,    16,    17,    19,    21,    23,    25,   28,
    31,   34,    37,    41,    45,    50,    55,    60,    66,    73,    80,    88,    97,    107,  118,
    130,  143,   157,   173,   190,   209,   230,   253,   279,   307,   337,   371,   408,   449,  494,
    544,  598,   658,   724,   796,   876,   963,   1060,  1166,  1282,  1411,  1552,  1707,  1878, 2066,
    2272, 2499,  2749,  3024,  3327,  3660,  4026,  4428,  4871,  5358,  5894,  6484,  7132,  7845, 8630,
    9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767};

static const int index_steps[8] = {-1, -1, -1, -1, 2, 4, 6, 8};

struct predictor {
  int sample, index;
};

static int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

/* Moves the predictor by one code, as encoder and decoder both must. */
static void follow(struct predictor *p, int code) {
  int step = step_sizes[p->index], change = step >> 3;
  if (code & 4)
    change += step;
  if (code & 2)
    change += step >> 1;
  if (code & 1)
    change += step >> 2;
  p->sample = clamp(code & 8 ? p->sample - change : p->sample + change, -32768, 32767);
  p->index = clamp(p->index + index_steps[code & 7], 0, 88);
}

static void encode(const int16_t *samples, size_t pairs, uint8_t *codes) {
  struct predictor p = {0, 0};
  for (size_t i = 0; i < 2 * pairs; i++) {
    int difference = samples[i] - p.sample, step = step_sizes[p.index], code = 0;
    if (difference < 0) {
      code = 8;
      difference = -difference;
    }
    for (int bit = 4; bit > 0; bit >>= 1, step >>= 1)
      if (difference >= step) {
        code |= bit;
        difference -= step;
      }
    follow(&p, code);
    codes[i / 2] = (uint8_t)(i % 2 ? codes[i / 2] | code << 4 : code);
  }
}

static void decode(const uint8_t *codes, size_t pairs, int16_t *samples) {
  struct predictor p = {0, 0};
  for (size_t i = 0; i < 2 * pairs; i++) {
    follow(&p, i % 2 ? codes[i / 2] >> 4 : codes[i / 2] & 15);
    samples[i] = (int16_t)p.sample;
  }
}

/* Three integer oscillators with drifting pitch, and a little noise. */
static void play(int16_t *samples, size_t count, uint64_t state) {
  int64_t x[3] = {9000, 5000, 2500}, v[3] = {0, 0, 0};
  for (size_t i = 0; i < count; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    int64_t sum = (int64_t)(state >> 56) - 128;
    for (int k = 0; k < 3; k++) {
      v[k] -= x[k] * (40 + 37 * k + (int64_t)(i >> 12 & 15)) / 4096;
      x[k] += v[k] * (40 + 37 * k) / 4096 + ((state >> 40) % 97 == 0 ? 300 : 0);
      sum += x[k];
    }
    samples[i] = (int16_t)clamp((int)sum, -32768, 32767);
  }
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 20000;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (count < 2 || count > 100000000)
    return fprintf(stderr, "usage: adpcm SAMPLES SEED, SAMPLES from 2 to 100000000\n"), 2;
  size_t pairs = (size_t)count / 2, n = 2 * pairs;
  int16_t *sound = malloc(n * sizeof *sound), *back = calloc(n, sizeof *back);
  uint8_t *codes = calloc(pairs, 1);
  if (!sound || !back || !codes)
    return fprintf(stderr, "out of memory\n"), 1;
  play(sound, n, seed);
  encode(sound, pairs, codes);
  decode(codes, pairs, back);
  uint64_t hash = 1469598103934665603ull, error = 0;
  for (size_t i = 0; i < n; i++) {
    int64_t difference = sound[i] - back[i];
    error += (uint64_t)(difference * difference);
    hash = (hash ^ ((uint64_t)(uint16_t)back[i] << 8 | codes[i / 2])) * 1099511628211ull;
  }
  printf("samples %zu\nmean squared error %llu\n%016llx\n", n, (unsigned long long)(error / n),
         (unsigned long long)hash);
  free(sound), free(back), free(codes);
  return 0;
}
