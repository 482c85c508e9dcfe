/* ChaCha20 (RFC 8439) over a buffer, several times with a new nonce, so that every pass encrypts the last one's output.
 * Usage: chacha20 KIB SEED; prints the first block's words and a hash of the ciphertext after each pass. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PASSES 4

static uint32_t rotate(uint32_t x, int n) { return (x << n) | (x >> (32 - n)); }

static void quarter_round(uint32_t x[16], int a, int b, int c, int d) {
  x[a] += x[b];
  x[d] = rotate(x[d] ^ x[a], 16);
  x[c] += x[d];
  x[b] = rotate(x[b] ^ x[c], 12);
  x[a] += x[b];
  x[d] = rotate(x[d] ^ x[a], 8);
  x[c] += x[d];
  x[b] = rotate(x[b] ^ x[c], 7);
}

static void make_block(const uint32_t input[16], uint8_t stream[64]) {
  uint32_t x[16];
  for (int i = 0; i < 16; i++)
    x[i] = input[i];
  for (int round = 0; round < 20; round += 2) {
    quarter_round(x, 0, 4, 8, 12);
    quarter_round(x, 1, 5, 9, 13);
    quarter_round(x, 2, 6, 10, 14);
    quarter_round(x, 3, 7, 11, 15);
    quarter_round(x, 0, 5, 10, 15);
    quarter_round(x, 1, 6, 11, 12);
    quarter_round(x, 2, 7, 8, 13);
    quarter_round(x, 3, 4, 9, 14);
  }
  for (int i = 0; i < 16; i++) {
    uint32_t word = x[i] + input[i];
    for (int k = 0; k < 4; k++)
      stream[4 * i + k] = (uint8_t)(word >> (8 * k));
  }
}

/* Encrypts in place; decrypting is the same. */
static void encrypt(const uint32_t key[8], const uint32_t nonce[3], uint8_t *data, size_t length) {
  uint32_t input[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  uint8_t stream[64];
  for (int i = 0; i < 8; i++)
    input[4 + i] = key[i];
  for (int i = 0; i < 3; i++)
    input[13 + i] = nonce[i];
  for (size_t at = 0; at < length; at += 64) {
    make_block(input, stream);
    input[12]++;
    size_t count = length - at < 64 ? length - at : 64;
    for (size_t i = 0; i < count; i++)
      data[at + i] ^= stream[i];
  }
}

static uint32_t draw(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(*state >> 32);
}

int main(int argc, char **argv) {
  int kib = argc > 1 ? atoi(argv[1]) : 16;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (kib < 1 || kib > 1 << 20)
    return fprintf(stderr, "usage: chacha20 KIB SEED, KIB from 1 to 1048576\n"), 2;
  size_t length = (size_t)kib * 1024 + 21; /* the last block is not whole */
  uint8_t *data = malloc(length);
  if (!data)
    return fprintf(stderr, "out of memory\n"), 1;
  uint32_t key[8], nonce[3];
  for (int i = 0; i < 8; i++)
    key[i] = draw(&state);
  for (size_t i = 0; i < length; i++)
    data[i] = (uint8_t)(i * 31 >> 3);
  uint64_t hash = 1469598103934665603ull;
  for (int pass = 0; pass < PASSES; pass++) {
    for (int i = 0; i < 3; i++)
      nonce[i] = draw(&state);
    encrypt(key, nonce, data, length);
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
      uint64_t word = 0;
      for (int k = 0; k < 8; k++)
        word |= (uint64_t)data[i + (size_t)k] << (8 * k);
      hash = (hash ^ word) * 1099511628211ull;
    }
    for (; i < length; i++)
      hash = (hash ^ data[i]) * 1099511628211ull;
    printf("pass %d starts %02x%02x%02x%02x\n", pass, data[0], data[1], data[2], data[3]);
  }
  printf("%016llx\n", (unsigned long long)hash);
  free(data);
  return 0;
}
