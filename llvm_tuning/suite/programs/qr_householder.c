/* Least squares by Householder QR: fits a tall dense system that has noise.
 * Usage: qr_householder COLUMNS SEED (rows = 2 x columns); prints the residual's norm and a hash of R and x. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static double dot(const double *x, const double *y, size_t n) {
  double sum = 0.0;
  for (size_t i = 0; i < n; i++)
    sum += x[i] * y[i];
  return sum;
}

/* y -= 2 (v.y / v.v) v */
static void reflect(const double *v, double norm2, double *y, size_t n) {
  double scale = 2.0 * dot(v, y, n) / norm2;
  for (size_t i = 0; i < n; i++)
    y[i] -= scale * v[i];
}

/* Columns are contiguous. On return the upper triangle of q is R, and rhs is Q^T rhs. */
static void triangularise(double *q, double *rhs, double *v, size_t rows, size_t columns) {
  for (size_t k = 0; k < columns; k++) {
    double *column = q + k * rows;
    size_t length = rows - k;
    double norm = sqrt(dot(column + k, column + k, length));
    double pivot = column[k] > 0.0 ? -norm : norm;
    memcpy(v, column + k, length * sizeof *v);
    v[0] -= pivot;
    double norm2 = dot(v, v, length);
    if (norm2 == 0.0)
      continue;
    for (size_t j = k; j < columns; j++)
      reflect(v, norm2, q + j * rows + k, length);
    reflect(v, norm2, rhs + k, length);
  }
}

static void back_substitute(const double *r, const double *rhs, double *x, size_t rows, size_t columns) {
  for (size_t k = columns; k-- > 0;) {
    double sum = rhs[k];
    for (size_t j = k + 1; j < columns; j++)
      sum -= r[j * rows + k] * x[j];
    x[k] = sum / r[k * rows + k];
  }
}

int main(int argc, char **argv) {
  int order = argc > 1 ? atoi(argv[1]) : 60;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (order < 1 || order > 2000)
    return fprintf(stderr, "usage: qr_householder COLUMNS SEED, COLUMNS from 1 to 2000\n"), 2;
  size_t columns = (size_t)order, rows = 2 * columns;
  double *a = malloc(rows * columns * sizeof *a), *rhs = malloc(rows * sizeof *rhs);
  double *x = malloc(columns * sizeof *x), *v = malloc(rows * sizeof *v);
  if (!a || !rhs || !x || !v)
    return fprintf(stderr, "out of memory\n"), 1;
  for (size_t i = 0; i < rows * columns; i++)
    a[i] = uniform(&state);
  for (size_t i = 0; i < rows; i++) {
    rhs[i] = 0.01 * uniform(&state);
    for (size_t j = 0; j < columns; j++)
      rhs[i] += a[j * rows + i] * (double)(j % 5);
  }
  triangularise(a, rhs, v, rows, columns);
  back_substitute(a, rhs, x, rows, columns);
  double residual = sqrt(dot(rhs + columns, rhs + columns, rows - columns));
  feed(a, rows * columns);
  feed(rhs, rows);
  feed(x, columns);
  printf("residual %.9f\nfirst %.6f\nlast %.6f\n%016llx\n", residual, x[0], x[columns - 1], (unsigned long long)hash);
  free(a), free(rhs), free(x), free(v);
  return 0;
}
