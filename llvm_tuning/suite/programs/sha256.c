/* SHA-256 (FIPS 180-4) over a chain of messages: every message holds the digest of the one before.
 * Usage: sha256 MESSAGES SEED; prints the digest of "abc", the last digest and a hash of all digests. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE 1000

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

static uint32_t load_big(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress(uint32_t state[8], const uint8_t block[64]) {
  uint32_t w[64];
  for (int t = 0; t < 16; t++)
    w[t] = load_big(block + 4 * t);
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ (w[t - 15] >> 3);
    uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int t = 0; t < 64; t++) {
    uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    uint32_t choice = (e & f) ^ (~e & g);
    uint32_t first = h + sum1 + choice + constants[t] + w[t];
    uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + sum0 + majority;
  }
  uint32_t sums[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++)
    state[i] += sums[i];
}

static void sha256(const uint8_t *message, size_t length, uint8_t digest[32]) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  size_t whole = length / 64 * 64, rest = length - whole;
  for (size_t at = 0; at < whole; at += 64)
    compress(state, message + at);
  uint8_t tail[128] = {0};
  size_t tail_length = rest < 56 ? 64 : 128;
  memcpy(tail, message + whole, rest);
  tail[rest] = 0x80;
  for (int i = 0; i < 8; i++)
    tail[tail_length - 1 - (size_t)i] = (uint8_t)((uint64_t)length * 8 >> (8 * i));
  for (size_t at = 0; at < tail_length; at += 64)
    compress(state, tail + at);
  for (int i = 0; i < 32; i++)
    digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

static void print_digest(const char *what, const uint8_t digest[32]) {
  printf("%s ", what);
  for (int i = 0; i < 32; i++)
    printf("%02x", digest[i]);
  printf("\n");
}

int main(int argc, char **argv) {
  int messages = argc > 1 ? atoi(argv[1]) : 100;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (messages < 1)
    return fprintf(stderr, "usage: sha256 MESSAGES SEED, MESSAGES from 1\n"), 2;
  uint8_t digest[32], message[MESSAGE];
  sha256((const uint8_t *)"abc", 3, digest);
  print_digest("abc", digest);
  for (size_t i = 0; i < MESSAGE; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    message[i] = (uint8_t)(state >> 56);
  }
  uint64_t hash = 1469598103934665603ull;
  for (int m = 0; m < messages; m++) {
    size_t length = MESSAGE - (size_t)(m % 64);
    memcpy(message + (size_t)(m * 7 % (MESSAGE - 100)), digest, sizeof digest);
    sha256(message, length, digest);
    for (int i = 0; i < 32; i++)
      hash = (hash ^ digest[i]) * 1099511628211ull;
  }
  print_digest("last", digest);
  printf("%016llx\n", (unsigned long long)hash);
  return 0;
}
