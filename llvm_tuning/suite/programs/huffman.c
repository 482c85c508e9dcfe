/* Canonical Huffman coding of skewed symbols: code lengths, encoding to bits, table-free decoding.
 * Usage: huffman SYMBOLS SEED; prints the bits used and a hash of lengths, coded bytes and decoded symbols. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALPHABET 256
#define MAX_LENGTH 40

struct code {
  int lengths[ALPHABET];
  uint64_t words[ALPHABET];
  int counts[MAX_LENGTH + 1];
  int sorted[ALPHABET]; /* symbols by length, then by value */
};

static uint64_t hash = 1469598103934665603ull;

static void feed(uint64_t value) { hash = (hash ^ value) * 1099511628211ull; }

/* Joins the two lightest trees until one is left; a symbol's length is its depth. */
static void find_lengths(const uint32_t *frequencies, int *lengths) {
  uint64_t weights[2 * ALPHABET];
  int parents[2 * ALPHABET] = {0}, used = ALPHABET, alive = ALPHABET;
  uint8_t joined[2 * ALPHABET] = {0};
  for (int s = 0; s < ALPHABET; s++)
    weights[s] = (uint64_t)frequencies[s] + 1; /* every symbol has a code */
  for (; alive > 1; alive--) {
    int first = -1, second = -1;
    for (int t = 0; t < used; t++) {
      if (joined[t])
        continue;
      if (first < 0 || weights[t] < weights[first]) {
        second = first;
        first = t;
      } else if (second < 0 || weights[t] < weights[second]) {
        second = t;
      }
    }
    joined[first] = joined[second] = 1;
    parents[first] = parents[second] = used;
    weights[used++] = weights[first] + weights[second];
  }
  for (int s = 0; s < ALPHABET; s++) {
    lengths[s] = 0;
    for (int t = s; t != used - 1; t = parents[t])
      lengths[s]++;
  }
}

static void assign_words(struct code *code) {
  uint64_t word = 0;
  int next = 0;
  memset(code->counts, 0, sizeof code->counts);
  for (int length = 1; length <= MAX_LENGTH; length++) {
    for (int s = 0; s < ALPHABET; s++)
      if (code->lengths[s] == length) {
        code->words[s] = word++;
        code->sorted[next++] = s;
        code->counts[length]++;
      }
    word <<= 1;
  }
}

/* Returns the number of bits; the first bit is the highest of out[0]. */
static size_t encode(const struct code *code, const uint8_t *symbols, size_t count, uint8_t *out) {
  size_t bits = 0;
  uint64_t pending = 0;
  int held = 0;
  for (size_t i = 0; i < count; i++) {
    int length = code->lengths[symbols[i]];
    pending = pending << length | code->words[symbols[i]];
    held += length;
    bits += (size_t)length;
    for (; held >= 8; held -= 8)
      *out++ = (uint8_t)(pending >> (held - 8));
  }
  if (held > 0)
    *out = (uint8_t)(pending << (8 - held));
  return bits;
}

static void decode(const struct code *code, const uint8_t *in, size_t count, uint8_t *symbols) {
  size_t bit = 0;
  for (size_t i = 0; i < count; i++) {
    int64_t word = 0, first = 0;
    int index = 0;
    for (int length = 1; length <= MAX_LENGTH; length++, bit++) {
      word |= in[bit / 8] >> (7 - bit % 8) & 1;
      if (word - first < code->counts[length]) {
        symbols[i] = (uint8_t)code->sorted[index + (int)(word - first)];
        bit++;
        break;
      }
      index += code->counts[length];
      first = (first + code->counts[length]) << 1;
      word <<= 1;
    }
  }
}

int main(int argc, char **argv) {
  int symbols = argc > 1 ? atoi(argv[1]) : 10000;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (symbols < 1 || symbols > 50000000)
    return fprintf(stderr, "usage: huffman SYMBOLS SEED, SYMBOLS from 1 to 50000000\n"), 2;
  size_t count = (size_t)symbols;
  uint8_t *plain = malloc(count), *coded = calloc(count, 5), *back = calloc(count, 1);
  if (!plain || !coded || !back)
    return fprintf(stderr, "out of memory\n"), 1;
  uint32_t frequencies[ALPHABET] = {0};
  for (size_t i = 0; i < count; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    plain[i] = (uint8_t)((state >> 56) & (state >> 48) & (state >> 40)); /* few bits are set: a skewed source */
    frequencies[plain[i]]++;
  }
  static struct code code;
  find_lengths(frequencies, code.lengths);
  assign_words(&code);
  size_t bits = encode(&code, plain, count, coded);
  decode(&code, coded, count, back);
  for (int s = 0; s < ALPHABET; s++)
    feed((uint64_t)code.lengths[s] << 48 ^ code.words[s]);
  for (size_t i = 0; i < (bits + 7) / 8; i++)
    feed(coded[i]);
  for (size_t i = 0; i < count; i++)
    feed(back[i]);
  printf("bits %zu of %zu\n%s\n%016llx\n", bits, 8 * count, memcmp(plain, back, count) == 0 ? "intact" : "damaged",
         (unsigned long long)hash);
  free(plain), free(coded), free(back);
  return 0;
}
