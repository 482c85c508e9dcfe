/* Conjugate gradient on a sparse symmetric positive definite matrix (CSR): a grid with random conductances.
 * Usage: conjugate_gradient SIDE SEED (SIDE x SIDE unknowns); prints the iterations and a hash of path and solution. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct matrix {
  int order;
  int *starts;
  int *columns;
  double *values;
};

static uint64_t hash = 1469598103934665603ull;

static void feed(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  hash = (hash ^ bits) * 1099511628211ull;
}

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (double)(*state >> 11) / 9007199254740992.0;
}

static void *claim(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (!memory) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
}

/* right[i] and down[i] are the conductances to the neighbours; the border leaks to the ground. */
static struct matrix grid_matrix(int side, const double *right, const double *down) {
  int order = side * side, used = 0;
  struct matrix m = {order, claim((size_t)order + 1, sizeof(int)), claim(5 * (size_t)order, sizeof(int)),
                     claim(5 * (size_t)order, sizeof(double))};
  for (int i = 0; i < order; i++) {
    int row = i / side, column = i % side;
    int neighbours[4] = {i - side, i - 1, i + 1, i + side};
    double weights[4] = {row > 0 ? down[i - side] : 0.0, column > 0 ? right[i - 1] : 0.0,
                         column < side - 1 ? right[i] : 0.0, row < side - 1 ? down[i] : 0.0};
    double diagonal = 0.05;
    for (int k = 0; k < 4; k++)
      diagonal += weights[k];
    m.starts[i] = used;
    for (int k = 0; k < 4; k++) {
      if (k == 2) {
        m.columns[used] = i;
        m.values[used++] = diagonal;
      }
      if (weights[k] != 0.0) {
        m.columns[used] = neighbours[k];
        m.values[used++] = -weights[k];
      }
    }
  }
  m.starts[order] = used;
  return m;
}

static void multiply(const struct matrix *m, const double *x, double *y) {
  for (int i = 0; i < m->order; i++) {
    double sum = 0.0;
    for (int k = m->starts[i]; k < m->starts[i + 1]; k++)
      sum += m->values[k] * x[m->columns[k]];
    y[i] = sum;
  }
}

static double dot(const double *x, const double *y, int n) {
  double sum = 0.0;
  for (int i = 0; i < n; i++)
    sum += x[i] * y[i];
  return sum;
}

static int solve(const struct matrix *m, double *r, double *x, double *p, double *q) {
  int n = m->order, iterations = 0;
  double rr = dot(r, r, n), goal = rr * 1e-16;
  memcpy(p, r, (size_t)n * sizeof *p);
  while (rr > goal && iterations < 2 * n) {
    multiply(m, p, q);
    double alpha = rr / dot(p, q, n);
    for (int i = 0; i < n; i++) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    double next = dot(r, r, n), beta = next / rr;
    for (int i = 0; i < n; i++)
      p[i] = r[i] + beta * p[i];
    rr = next;
    feed(rr);
    iterations++;
  }
  return iterations;
}

int main(int argc, char **argv) {
  int side = argc > 1 ? atoi(argv[1]) : 40;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (side < 2 || side > 2000)
    return fprintf(stderr, "usage: conjugate_gradient SIDE SEED, SIDE from 2 to 2000\n"), 2;
  size_t n = (size_t)side * (size_t)side;
  double *right = claim(n, sizeof(double)), *down = claim(n, sizeof(double)), *r = claim(n, sizeof(double));
  double *x = claim(n, sizeof(double)), *p = claim(n, sizeof(double)), *q = claim(n, sizeof(double));
  for (size_t i = 0; i < n; i++) {
    right[i] = 0.1 + uniform(&state);
    down[i] = 0.1 + uniform(&state);
    r[i] = uniform(&state) - 0.5;
  }
  struct matrix m = grid_matrix(side, right, down);
  int iterations = solve(&m, r, x, p, q);
  for (size_t i = 0; i < n; i++)
    feed(x[i]);
  printf("iterations %d\nentries %d\ncentre %.9f\n%016llx\n", iterations, m.starts[m.order], x[n / 2],
         (unsigned long long)hash);
  free(m.starts), free(m.columns), free(m.values);
  free(right), free(down), free(r), free(x), free(p), free(q);
  return 0;
}
