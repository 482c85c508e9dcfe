/* Radix-2 FFT in double precision: filters a signal block by block in the frequency domain.
 * Usage: fft BLOCKS SEED; prints energies and a hash of the last spectrum and of all filtered blocks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SIZE 11
#define SIZE (1 << LOG_SIZE)

struct complex {
  double re, im;
};

static struct complex roots[SIZE / 2]; /* exp(-2 pi i k / SIZE) */
static uint64_t hash = 1469598103934665603ull;

static void feed(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  hash = (hash ^ bits) * 1099511628211ull;
}

/* Sine by its power series, for angles up to pi: the same bits with every C library. */
static double sine(double angle) {
  double term = angle, sum = angle;
  for (int n = 1; n <= 15; n++) {
    term *= -angle * angle / (double)(2 * n * (2 * n + 1));
    sum += term;
  }
  return sum;
}

static void make_roots(void) {
  const double pi = 3.14159265358979323846;
  for (int k = 0; k < SIZE / 2; k++) {
    double angle = 2.0 * pi * k / SIZE;
    roots[k] = (struct complex){sine(pi / 2.0 - angle), -sine(angle)};
  }
}

static void reverse_bits(struct complex *x) {
  for (unsigned i = 1, j = 0; i < SIZE; i++) {
    unsigned bit = SIZE >> 1;
    for (; j & bit; bit >>= 1)
      j ^= bit;
    j ^= bit;
    if (i < j) {
      struct complex kept = x[i];
      x[i] = x[j];
      x[j] = kept;
    }
  }
}

static void transform(struct complex *x) {
  reverse_bits(x);
  for (int half = 1; half < SIZE; half *= 2) {
    int stride = SIZE / (2 * half);
    for (int start = 0; start < SIZE; start += 2 * half)
      for (int k = 0; k < half; k++) {
        struct complex w = roots[k * stride], a = x[start + k], b = x[start + k + half];
        struct complex t = {w.re * b.re - w.im * b.im, w.re * b.im + w.im * b.re};
        x[start + k] = (struct complex){a.re + t.re, a.im + t.im};
        x[start + k + half] = (struct complex){a.re - t.re, a.im - t.im};
      }
  }
}

/* Scales the bins by a band-pass; conjugates and divides, so that the next transform is the inverse. */
static double filter(struct complex *x) {
  double energy = 0.0;
  for (int k = 0; k < SIZE; k++) {
    int bin = k <= SIZE / 2 ? k : SIZE - k;
    double gain = bin < 16 ? 0.0 : 1.0 / (1.0 + (double)bin / 128.0);
    x[k].re *= gain / SIZE;
    x[k].im *= -gain / SIZE;
    energy += x[k].re * x[k].re + x[k].im * x[k].im;
  }
  return energy;
}

int main(int argc, char **argv) {
  int blocks = argc > 1 ? atoi(argv[1]) : 10;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (blocks < 1)
    return fprintf(stderr, "usage: fft BLOCKS SEED, BLOCKS from 1\n"), 2;
  static struct complex x[SIZE];
  double total = 0.0;
  make_roots();
  for (int b = 0; b < blocks; b++) {
    for (int i = 0; i < SIZE; i++) { /* noise on a ramp, added to what is left of the last block */
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      x[i].re = x[i].re * 0.5 + (double)(state >> 40) / 16777216.0 + (double)(i % 100) / 100.0;
      x[i].im = 0.0;
    }
    transform(x);
    total += filter(x);
    if (b == blocks - 1)
      for (int k = 0; k < SIZE; k++) {
        feed(x[k].re);
        feed(x[k].im);
      }
    transform(x);
    for (int i = 0; i < SIZE; i++)
      feed(x[i].re);
  }
  printf("energy %.9f\nlast sample %.9f\n%016llx\n", total, x[SIZE - 1].re, (unsigned long long)hash);
  return 0;
}
