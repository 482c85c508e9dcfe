/* Local alignment of two DNA sequences with affine gaps (Gotoh), and the best alignment traced back.
 * Usage: smith_waterman LENGTH SEED; prints the score, the aligned span and a hash of row maxima and of the path. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MATCH 5
#define MISMATCH (-4)
#define GAP_OPEN 10
#define GAP_EXTEND 1

enum { STOP = 0, DIAGONAL = 1, UP = 2, LEFT = 3, FROM = 3, UP_EXTENDS = 4, LEFT_EXTENDS = 8 };

static uint64_t hash = 1469598103934665603ull;

static void feed(uint64_t value) { hash = (hash ^ value) * 1099511628211ull; }

static uint32_t draw(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(((*state >> 32) * bound) >> 32);
}

static int larger(int a, int b) { return a > b ? a : b; }

/* Fills one row of scores (h), of gaps that go down (f) and of the trace; returns the row's best column. */
static int fill_row(char base, const char *b, int m, int *h, int *f, uint8_t *trace) {
  int gap = -GAP_OPEN, diagonal = 0, left = 0, best = 0;
  for (int j = 1; j <= m; j++) {
    uint8_t from = STOP;
    int up_open = h[j] - GAP_OPEN, up_extend = f[j] - GAP_EXTEND;
    int left_open = left - GAP_OPEN, left_extend = gap - GAP_EXTEND;
    f[j] = larger(up_open, up_extend);
    gap = larger(left_open, left_extend);
    int matched = diagonal + (base == b[j - 1] ? MATCH : MISMATCH), score = 0;
    if (matched > score) {
      score = matched;
      from = DIAGONAL;
    }
    if (f[j] > score) {
      score = f[j];
      from = UP;
    }
    if (gap > score) {
      score = gap;
      from = LEFT;
    }
    trace[j] = (uint8_t)(from | (up_extend > up_open ? UP_EXTENDS : 0) | (left_extend > left_open ? LEFT_EXTENDS : 0));
    diagonal = h[j];
    h[j] = left = score;
    if (score > h[best])
      best = j;
  }
  return best;
}

/* Walks back from (i, j); returns the number of matched pairs. */
static int trace_back(const uint8_t *trace, int m, int i, int j) {
  int pairs = 0, state = DIAGONAL;
  for (;;) {
    uint8_t cell = trace[(size_t)i * (size_t)(m + 1) + (size_t)j];
    if (state == DIAGONAL)
      state = cell & FROM;
    if (state == STOP)
      return pairs;
    feed(((uint64_t)i << 34) | ((uint64_t)j << 4) | (uint64_t)state);
    if (state == DIAGONAL) {
      pairs++;
      i--;
      j--;
    } else if (state == UP) {
      state = cell & UP_EXTENDS ? UP : DIAGONAL;
      i--;
    } else {
      state = cell & LEFT_EXTENDS ? LEFT : DIAGONAL;
      j--;
    }
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 500;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (n < 10 || n > 20000)
    return fprintf(stderr, "usage: smith_waterman LENGTH SEED, LENGTH from 10 to 20000\n"), 2;
  char *a = malloc((size_t)n), *b = malloc(2 * (size_t)n);
  if (!a || !b)
    return fprintf(stderr, "out of memory\n"), 1;
  int m = 0;
  for (int i = 0; i < n; i++) { /* b is a with point changes, deletions and insertions */
    a[i] = "ACGT"[draw(&state, 4)];
    uint32_t event = draw(&state, 100);
    if (event >= 5)
      b[m++] = event < 15 ? "ACGT"[draw(&state, 4)] : a[i];
    if (event >= 95)
      b[m++] = "ACGT"[draw(&state, 4)];
  }
  size_t row = (size_t)m + 1;
  int *h = calloc(row, sizeof *h), *f = malloc(row * sizeof *f);
  uint8_t *trace = calloc(((size_t)n + 1) * row, 1);
  if (!h || !f || !trace)
    return fprintf(stderr, "out of memory\n"), 1;
  for (int j = 0; j <= m; j++)
    f[j] = -GAP_OPEN;
  int best = 0, best_i = 0, best_j = 0;
  for (int i = 1; i <= n; i++) {
    int j = fill_row(a[i - 1], b, m, h, f, trace + (size_t)i * row);
    feed(((uint64_t)j << 32) | (uint32_t)h[j]);
    if (h[j] > best) {
      best = h[j];
      best_i = i;
      best_j = j;
    }
  }
  int pairs = trace_back(trace, m, best_i, best_j);
  printf("score %d\nend %d %d\npairs %d\n%016llx\n", best, best_i, best_j, pairs, (unsigned long long)hash);
  free(a), free(b), free(h), free(f), free(trace);
  return 0;
}
