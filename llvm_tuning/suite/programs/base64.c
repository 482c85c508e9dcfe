/* Base64 (RFC 4648): encodes bytes into lines of text and decodes them again, skipping the line ends.
 * Usage: base64 KIB SEED; prints the first characters and a hash of the text and of the decoded bytes, three rounds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 76
#define ROUNDS 3

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static int8_t values[256]; /* of a character; -1: not in the alphabet */

static uint64_t hash = 1469598103934665603ull;

static void feed_bytes(const uint8_t *bytes, size_t size) {
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t word = 0;
    for (size_t k = 0; k < 8; k++)
      word |= (uint64_t)bytes[i + k] << (8 * k);
    hash = (hash ^ word) * 1099511628211ull;
  }
  for (; i < size; i++)
    hash = (hash ^ bytes[i]) * 1099511628211ull;
}

/* Returns the length of the text; out has room for 4/3 of the size, the line ends and the padding. */
static size_t encode(const uint8_t *in, size_t size, uint8_t *out) {
  size_t used = 0, column = 0;
  for (size_t i = 0; i < size; i += 3) {
    size_t left = size - i;
    uint32_t word = (uint32_t)in[i] << 16;
    word |= left > 1 ? (uint32_t)in[i + 1] << 8 : 0;
    word |= left > 2 ? in[i + 2] : 0;
    out[used++] = (uint8_t)alphabet[word >> 18];
    out[used++] = (uint8_t)alphabet[word >> 12 & 63];
    out[used++] = left > 1 ? (uint8_t)alphabet[word >> 6 & 63] : '=';
    out[used++] = left > 2 ? (uint8_t)alphabet[word & 63] : '=';
    column += 4;
    if (column == LINE) {
      out[used++] = '\n';
      column = 0;
    }
  }
  return used;
}

/* Returns the number of bytes; characters outside the alphabet are skipped. */
static size_t decode(const uint8_t *in, size_t size, uint8_t *out) {
  size_t used = 0;
  uint32_t word = 0;
  int bits = 0;
  for (size_t i = 0; i < size; i++) {
    int value = values[in[i]];
    if (value < 0)
      continue;
    word = word << 6 | (uint32_t)value;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out[used++] = (uint8_t)(word >> bits);
    }
  }
  return used;
}

int main(int argc, char **argv) {
  int kib = argc > 1 ? atoi(argv[1]) : 64;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (kib < 1 || kib > 1 << 20)
    return fprintf(stderr, "usage: base64 KIB SEED, KIB from 1 to 1048576\n"), 2;
  size_t size = (size_t)kib * 1024 + 1;
  uint8_t *data = malloc(size), *text = malloc(size * 3 / 2), *back = calloc(size + 3, 1);
  if (!data || !text || !back)
    return fprintf(stderr, "out of memory\n"), 1;
  memset(values, -1, sizeof values);
  for (int v = 0; v < 64; v++)
    values[(uint8_t)alphabet[v]] = (int8_t)v;
  for (size_t i = 0; i < size; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    data[i] = (uint8_t)(state >> 56);
  }
  for (int round = 0; round < ROUNDS; round++) {
    size_t text_size = encode(data, size, text);
    size_t back_size = decode(text, text_size, back);
    feed_bytes(text, text_size);
    feed_bytes(back, back_size);
    printf("%.12s %zu %s\n", (const char *)text, text_size,
           back_size == size && memcmp(data, back, size) == 0 ? "intact" : "damaged");
    for (size_t i = 0; i < size; i++) /* the next round's data come from this one's text */
      data[i] = (uint8_t)(back[i] ^ text[i] << (round + 1));
  }
  printf("%016llx\n", (unsigned long long)hash);
  free(data), free(text), free(back);
  return 0;
}
