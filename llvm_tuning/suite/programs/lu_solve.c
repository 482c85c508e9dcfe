/* LU factorisation with partial pivoting of a dense matrix, then the solution for several right-hand sides.
 * Usage: lu_solve ORDER SEED; prints the largest residual, the row exchanges and a hash of factors and solutions. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDES 8

static uint64_t hash = 1469598103934665603ull;

static void feed(const double *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
  }
}

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (double)(*state >> 11) / 9007199254740992.0 - 0.5;
}

static void swap_rows(double *x, double *y, size_t count) {
  for (size_t i = 0; i < count; i++) {
    double kept = x[i];
    x[i] = y[i];
    y[i] = kept;
  }
}

/* Replaces m by its factors; pivots[k] is the row that came to k. Returns the number of exchanges. */
static int factorise(double *m, size_t n, size_t *pivots) {
  int exchanges = 0;
  for (size_t k = 0; k < n; k++) {
    size_t best = k;
    for (size_t i = k + 1; i < n; i++)
      if (fabs(m[i * n + k]) > fabs(m[best * n + k]))
        best = i;
    pivots[k] = best;
    if (best != k) {
      swap_rows(m + k * n, m + best * n, n);
      exchanges++;
    }
    for (size_t i = k + 1; i < n; i++) {
      double factor = m[i * n + k] / m[k * n + k];
      m[i * n + k] = factor;
      for (size_t j = k + 1; j < n; j++)
        m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return exchanges;
}

/* Solves for the SIDES columns of x in place. */
static void solve(const double *m, size_t n, const size_t *pivots, double *x) {
  for (size_t k = 0; k < n; k++)
    if (pivots[k] != k)
      swap_rows(x + k * SIDES, x + pivots[k] * SIDES, SIDES);
  for (size_t k = 0; k < n; k++)
    for (size_t i = k + 1; i < n; i++)
      for (size_t s = 0; s < SIDES; s++)
        x[i * SIDES + s] -= m[i * n + k] * x[k * SIDES + s];
  for (size_t k = n; k-- > 0;) {
    for (size_t s = 0; s < SIDES; s++)
      x[k * SIDES + s] /= m[k * n + k];
    for (size_t i = 0; i < k; i++)
      for (size_t s = 0; s < SIDES; s++)
        x[i * SIDES + s] -= m[i * n + k] * x[k * SIDES + s];
  }
}

static double largest_residual(const double *a, const double *x, const double *b, size_t n) {
  double largest = 0.0;
  for (size_t i = 0; i < n; i++)
    for (size_t s = 0; s < SIDES; s++) {
      double sum = b[i * SIDES + s];
      for (size_t j = 0; j < n; j++)
        sum -= a[i * n + j] * x[j * SIDES + s];
      if (fabs(sum) > largest)
        largest = fabs(sum);
    }
  return largest;
}

int main(int argc, char **argv) {
  int order = argc > 1 ? atoi(argv[1]) : 100;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (order < 1 || order > 4000)
    return fprintf(stderr, "usage: lu_solve ORDER SEED, ORDER from 1 to 4000\n"), 2;
  size_t n = (size_t)order;
  double *a = malloc(n * n * sizeof *a), *m = malloc(n * n * sizeof *m);
  double *b = malloc(n * SIDES * sizeof *b), *x = malloc(n * SIDES * sizeof *x);
  size_t *pivots = malloc(n * sizeof *pivots);
  if (!a || !m || !b || !x || !pivots)
    return fprintf(stderr, "out of memory\n"), 1;
  for (size_t i = 0; i < n * n; i++)
    a[i] = m[i] = uniform(&state);
  for (size_t i = 0; i < n * SIDES; i++)
    b[i] = x[i] = uniform(&state);
  int exchanges = factorise(m, n, pivots);
  solve(m, n, pivots, x);
  double residual = largest_residual(a, x, b, n);
  feed(m, n * n);
  feed(x, n * SIDES);
  feed(&residual, 1);
  printf("residual %.3e\nexchanges %d\n%016llx\n", residual, exchanges, (unsigned long long)hash);
  free(a), free(m), free(b), free(x), free(pivots);
  return 0;
}
