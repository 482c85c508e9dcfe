/* Acoustic wave in two dimensions, fourth order in space and single precision, with a sponge at the border.
 * Usage: wave_2d SIDE SEED; prints readings of a receiver and a hash of its trace and of the final field. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HALO 2
#define SPONGE 12
#define STEPS 60

static uint64_t hash = 1469598103934665603ull;

static void feed(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  hash = (hash ^ bits) * 1099511628211ull;
}

static float uniform(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (float)(*state >> 40) / 16777216.0f;
}

/* Writes the field after `now` over `before`; speed2 is (c dt / dx)^2, damping 1 away from the border. */
static void step(size_t n, const float *restrict now, float *restrict before, const float *restrict speed2,
                 const float *restrict damping) {
  for (size_t y = HALO; y < n - HALO; y++)
    for (size_t x = HALO; x < n - HALO; x++) {
      size_t i = y * n + x;
      float near = now[i - 1] + now[i + 1] + now[i - n] + now[i + n];
      float far = now[i - 2] + now[i + 2] + now[i - 2 * n] + now[i + 2 * n];
      float laplacian = (4.0f / 3.0f) * near - (1.0f / 12.0f) * far - 5.0f * now[i];
      before[i] = damping[i] * (2.0f * now[i] - damping[i] * before[i] + speed2[i] * laplacian);
    }
}

static float damping_at(size_t x, size_t y, size_t n) {
  size_t edge = x < y ? x : y;
  size_t other = n - 1 - (x > y ? x : y);
  size_t depth = edge < other ? edge : other;
  return depth >= SPONGE ? 1.0f : 1.0f - 0.004f * (float)(SPONGE - depth);
}

int main(int argc, char **argv) {
  int side = argc > 1 ? atoi(argv[1]) : 100;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (side < 2 * SPONGE || side > 4000)
    return fprintf(stderr, "usage: wave_2d SIDE SEED, SIDE from %d to 4000\n", 2 * SPONGE), 2;
  size_t n = (size_t)side, cells = n * n;
  float *now = calloc(cells, sizeof *now), *before = calloc(cells, sizeof *before);
  float *speed2 = malloc(cells * sizeof *speed2), *damping = malloc(cells * sizeof *damping);
  if (!now || !before || !speed2 || !damping)
    return fprintf(stderr, "out of memory\n"), 1;
  float layer = 0.1f;
  for (size_t y = 0; y < n; y++) {
    if (y % 9 == 0)
      layer = 0.05f + 0.25f * uniform(&state);
    for (size_t x = 0; x < n; x++) {
      speed2[y * n + x] = layer + 0.02f * uniform(&state);
      damping[y * n + x] = damping_at(x, y, n);
    }
  }
  size_t source = (n / 3) * n + n / 2, receiver = (n / 3) * n + n / 2 + 5;
  for (int s = 0; s < STEPS; s++) {
    float phase = (float)s / 12.0f; /* a smooth pulse of twelve steps that swings once */
    if (s < 12)
      now[source] += phase * (1.0f - phase) * (1.0f - 2.0f * phase);
    step(n, now, before, speed2, damping);
    float *kept = now;
    now = before;
    before = kept;
    feed(now[receiver]);
    if (s % 15 == 14)
      printf("step %d receiver %.8f\n", s + 1, (double)now[receiver]);
  }
  for (size_t i = 0; i < cells; i++)
    feed(now[i]);
  printf("%016llx\n", (unsigned long long)hash);
  free(now), free(before), free(speed2), free(damping);
  return 0;
}
