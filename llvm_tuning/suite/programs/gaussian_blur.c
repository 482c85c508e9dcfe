/* Smooths a grey image with a separable binomial filter, then finds edges (Sobel) and counts their strengths.
 * Usage: gaussian_blur SIDE SEED; prints figures of the histogram and a hash of both images. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define RADIUS 3
#define LEVELS 256

static const int weights[2 * RADIUS + 1] = {1, 6, 15, 20, 15, 6, 1}; /* sum 64 */

/* Rows: in (n x n bytes) to out (n x n sums, 64 times the brightness); the border pixels are repeated. */
static void blur_rows(const uint8_t *restrict in, uint16_t *restrict out, int n) {
  for (int y = 0; y < n; y++) {
    const uint8_t *row = in + (size_t)y * (size_t)n;
    uint16_t *sums = out + (size_t)y * (size_t)n;
    for (int x = 0; x < n; x++) {
      int sum = 0;
      for (int k = -RADIUS; k <= RADIUS; k++) {
        int at = x + k < 0 ? 0 : x + k >= n ? n - 1 : x + k;
        sum += weights[k + RADIUS] * row[at];
      }
      sums[x] = (uint16_t)sum;
    }
  }
}

static void blur_columns(const uint16_t *restrict in, uint8_t *restrict out, int n) {
  for (int y = 0; y < n; y++) {
    const uint16_t *rows[2 * RADIUS + 1];
    for (int k = -RADIUS; k <= RADIUS; k++) {
      int at = y + k < 0 ? 0 : y + k >= n ? n - 1 : y + k;
      rows[k + RADIUS] = in + (size_t)at * (size_t)n;
    }
    for (int x = 0; x < n; x++) {
      int sum = 64 * 64 / 2;
      for (int k = 0; k <= 2 * RADIUS; k++)
        sum += weights[k] * rows[k][x];
      out[(size_t)y * (size_t)n + (size_t)x] = (uint8_t)(sum / (64 * 64));
    }
  }
}

/* The sum of the absolute slopes, at most 255; the outermost pixels stay 0. */
static void find_edges(const uint8_t *restrict in, uint8_t *restrict out, int n) {
  for (int y = 1; y < n - 1; y++) {
    const uint8_t *above = in + (size_t)(y - 1) * (size_t)n, *here = above + n, *below = here + n;
    for (int x = 1; x < n - 1; x++) {
      int across = above[x + 1] - above[x - 1] + 2 * (here[x + 1] - here[x - 1]) + below[x + 1] - below[x - 1];
      int down = below[x - 1] - above[x - 1] + 2 * (below[x] - above[x]) + below[x + 1] - above[x + 1];
      int strength = abs(across) + abs(down);
      out[(size_t)y * (size_t)n + (size_t)x] = (uint8_t)(strength > 255 ? 255 : strength);
    }
  }
}

static void count_levels(const uint8_t *pixels, size_t count, uint32_t histogram[LEVELS]) {
  for (size_t i = 0; i < count; i++)
    histogram[pixels[i]]++;
}

int main(int argc, char **argv) {
  int side = argc > 1 ? atoi(argv[1]) : 128;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (side < 3 || side > 10000)
    return fprintf(stderr, "usage: gaussian_blur SIDE SEED, SIDE from 3 to 10000\n"), 2;
  size_t pixels = (size_t)side * (size_t)side;
  uint8_t *image = malloc(pixels), *smooth = calloc(pixels, 1), *edges = calloc(pixels, 1);
  uint16_t *sums = calloc(pixels, sizeof *sums);
  if (!image || !smooth || !edges || !sums)
    return fprintf(stderr, "out of memory\n"), 1;
  for (int y = 0; y < side; y++)
    for (int x = 0; x < side; x++) { /* tiles of different brightness, with noise */
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      image[(size_t)y * (size_t)side + (size_t)x] = (uint8_t)(((x / 20 * 37 + y / 14 * 61) & 127) + (int)(state >> 57));
    }
  blur_rows(image, sums, side);
  blur_columns(sums, smooth, side);
  find_edges(smooth, edges, side);
  uint32_t histogram[LEVELS] = {0}, strong = 0;
  count_levels(edges, pixels, histogram);
  uint64_t hash = 1469598103934665603ull;
  for (size_t i = 0; i < pixels; i++)
    hash = (hash ^ ((uint64_t)smooth[i] << 8 | edges[i])) * 1099511628211ull;
  for (int level = 0; level < LEVELS; level++) {
    hash = (hash ^ histogram[level]) * 1099511628211ull;
    strong += level >= 64 ? histogram[level] : 0;
  }
  printf("centre %d\nflat %u\nstrong %u\n%016llx\n", smooth[pixels / 2], histogram[0], strong,
         (unsigned long long)hash);
  free(image), free(smooth), free(edges), free(sums);
  return 0;
}
