/* Introsort: quicksort with a median-of-three pivot, heapsort when it goes too deep, insertion sort at the end.
 * Usage: intro_sort COUNT SEED; sorts four kinds of order and prints medians and a hash of all sorted arrays. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SHORT 16

static uint32_t draw(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(*state >> 32);
}

static void swap(uint32_t *x, uint32_t *y) {
  uint32_t kept = *x;
  *x = *y;
  *y = kept;
}

static void sift_down(uint32_t *a, size_t at, size_t count) {
  uint32_t value = a[at];
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && a[child] < a[child + 1])
      child++;
    if (a[child] <= value)
      break;
    a[at] = a[child];
  }
  a[at] = value;
}

static void heap_sort(uint32_t *a, size_t count) {
  for (size_t i = count / 2; i-- > 0;)
    sift_down(a, i, count);
  for (size_t end = count; end-- > 1;) {
    swap(&a[0], &a[end]);
    sift_down(a, 0, end);
  }
}

/* Returns by how many places the elements moved in all: little, if the order was roughly right. */
static size_t insertion_sort(uint32_t *a, size_t count) {
  size_t moves = 0;
  for (size_t i = 1; i < count; i++) {
    uint32_t value = a[i];
    size_t at = i;
    for (; at > 0 && a[at - 1] > value; at--)
      a[at] = a[at - 1];
    a[at] = value;
    moves += i - at;
  }
  return moves;
}

/* Moves what is below the pivot to the front and returns the first index of the rest (never 0 nor count). */
static size_t partition(uint32_t *a, size_t count) {
  size_t middle = count / 2, low = 0, high = count - 1;
  if (a[middle] < a[low])
    swap(&a[middle], &a[low]);
  if (a[high] < a[low])
    swap(&a[high], &a[low]);
  if (a[high] < a[middle])
    swap(&a[high], &a[middle]);
  uint32_t pivot = a[middle];
  for (;;) {
    while (a[low] < pivot)
      low++;
    while (a[high] > pivot)
      high--;
    if (low >= high)
      return high + 1;
    swap(&a[low++], &a[high--]);
  }
}

/* Leaves runs of at most SHORT elements unsorted. */
static void sort_roughly(uint32_t *a, size_t count, int depth) {
  while (count > SHORT) {
    if (depth-- == 0) {
      heap_sort(a, count);
      return;
    }
    size_t split = partition(a, count);
    sort_roughly(a + split, count - split, depth);
    count = split;
  }
}

static size_t intro_sort(uint32_t *a, size_t count) {
  int depth = 0;
  for (size_t left = count; left > 1; left /= 2)
    depth += 2;
  sort_roughly(a, count, depth);
  return insertion_sort(a, count);
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 5000;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (count < 2 || count > 50000000)
    return fprintf(stderr, "usage: intro_sort COUNT SEED, COUNT from 2 to 50000000\n"), 2;
  size_t n = (size_t)count;
  uint32_t *a = malloc(n * sizeof *a);
  if (!a)
    return fprintf(stderr, "out of memory\n"), 1;
  uint64_t hash = 1469598103934665603ull;
  for (int kind = 0; kind < 4; kind++) {
    for (size_t i = 0; i < n; i++) {
      uint32_t random = draw(&state);
      if (kind == 0)
        a[i] = random; /* no order */
      else if (kind == 1)
        a[i] = random % 50; /* many equal */
      else if (kind == 2)
        a[i] = (uint32_t)i * 16 + random % 256; /* nearly sorted */
      else
        a[i] = (uint32_t)(i < n / 2 ? i : n - i) * 8 + random % 4; /* up, then down */
    }
    size_t moves = intro_sort(a, n);
    hash = (hash ^ moves) * 1099511628211ull;
    for (size_t i = 0; i < n; i++)
      hash = (hash ^ a[i]) * 1099511628211ull;
    printf("kind %d median %u moves %zu\n", kind, a[n / 2], moves);
  }
  printf("%016llx\n", (unsigned long long)hash);
  free(a);
  return 0;
}
