/* A register machine that interprets bytecode: Collatz lengths with a memo table, then a shuffle of the lengths.
 * Usage: bytecode_vm LIMIT SEED; prints instructions executed and a hash of registers and memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum opcode { ADD, MUL, AND, SHR, REM, LOAD, STORE, JUMP, JUMP_LESS, JUMP_UNEQUAL, HALT };

/* a = b op c for arithmetic; a = memory[b]; memory[a] = b; jumps compare a with b and go to c. */
struct instruction {
  uint8_t op, a, b, c;
};

enum { ZERO, ONE, THREE, LIMIT, N, VALUE, LENGTH, SCRATCH, STATE, FACTOR, STEP, SHIFT, REGISTERS };

static const struct instruction collatz[] = {
    {ADD, N, ONE, ONE},               /* 0: N = 2; memory[1] is 0 */
    {ADD, VALUE, N, ZERO},            /* 1: next N */
    {ADD, LENGTH, ZERO, ZERO},        /* 2 */
    {JUMP_LESS, VALUE, N, 12},        /* 3: next step, unless this length is known */
    {ADD, LENGTH, LENGTH, ONE},       /* 4 */
    {AND, SCRATCH, VALUE, ONE},       /* 5 */
    {JUMP_UNEQUAL, SCRATCH, ZERO, 9}, /* 6 */
    {SHR, VALUE, VALUE, ONE},         /* 7 */
    {JUMP, 0, 0, 3},                  /* 8 */
    {MUL, VALUE, VALUE, THREE},       /* 9: odd */
    {ADD, VALUE, VALUE, ONE},         /* 10 */
    {JUMP, 0, 0, 3},                  /* 11 */
    {LOAD, SCRATCH, VALUE, 0},        /* 12: known */
    {ADD, LENGTH, LENGTH, SCRATCH},   /* 13 */
    {STORE, N, LENGTH, 0},            /* 14 */
    {ADD, N, N, ONE},                 /* 15 */
    {JUMP_LESS, N, LIMIT, 1},         /* 16 */
    {HALT, 0, 0, 0},
};

static const struct instruction shuffle[] = {
    {ADD, N, ONE, ONE},          /* 0: N = 2 */
    {MUL, STATE, STATE, FACTOR}, /* 1: next N: exchange memory[N] with an earlier one */
    {ADD, STATE, STATE, STEP},   /* 2 */
    {SHR, VALUE, STATE, SHIFT},  /* 3 */
    {REM, VALUE, VALUE, N},      /* 4 */
    {LOAD, LENGTH, VALUE, 0},    /* 5 */
    {LOAD, SCRATCH, N, 0},       /* 6 */
    {STORE, VALUE, SCRATCH, 0},  /* 7 */
    {STORE, N, LENGTH, 0},       /* 8 */
    {ADD, N, N, ONE},            /* 9 */
    {JUMP_LESS, N, LIMIT, 1},    /* 10 */
    {HALT, 0, 0, 0},
};

static void stop(const char *why) {
  fprintf(stderr, "bytecode_vm: %s\n", why);
  exit(1);
}

/* Runs until HALT; returns the number of instructions executed. */
static uint64_t run(const struct instruction *code, uint64_t r[REGISTERS], uint64_t *memory, uint64_t size) {
  uint64_t executed = 0;
  for (const struct instruction *at = code;; executed++) {
    const struct instruction i = *at++;
    switch ((enum opcode)i.op) {
    case ADD:
      r[i.a] = r[i.b] + r[i.c];
      break;
    case MUL:
      r[i.a] = r[i.b] * r[i.c];
      break;
    case AND:
      r[i.a] = r[i.b] & r[i.c];
      break;
    case SHR:
      r[i.a] = r[i.b] >> (r[i.c] & 63);
      break;
    case REM:
      if (r[i.c] == 0)
        stop("division by zero");
      r[i.a] = r[i.b] % r[i.c];
      break;
    case LOAD:
      if (r[i.b] >= size)
        stop("load outside the memory");
      r[i.a] = memory[r[i.b]];
      break;
    case STORE:
      if (r[i.a] >= size)
        stop("store outside the memory");
      memory[r[i.a]] = r[i.b];
      break;
    case JUMP:
      at = code + i.c;
      break;
    case JUMP_LESS:
      if (r[i.a] < r[i.b])
        at = code + i.c;
      break;
    case JUMP_UNEQUAL:
      if (r[i.a] != r[i.b])
        at = code + i.c;
      break;
    case HALT:
      return executed;
    }
  }
}

int main(int argc, char **argv) {
  int limit = argc > 1 ? atoi(argv[1]) : 2000;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (limit < 3 || limit > 10000000)
    return fprintf(stderr, "usage: bytecode_vm LIMIT SEED, LIMIT from 3 to 10000000\n"), 2;
  uint64_t size = (uint64_t)limit, *memory = calloc(size, sizeof *memory);
  if (!memory)
    return fprintf(stderr, "out of memory\n"), 1;
  uint64_t r[REGISTERS] = {[ONE] = 1, [THREE] = 3, [LIMIT] = size, [STATE] = seed, [SHIFT] = 33};
  r[FACTOR] = 6364136223846793005ull;
  r[STEP] = 1442695040888963407ull;
  uint64_t first = run(collatz, r, memory, size), longest = 0;
  for (uint64_t n = 1; n < size; n++)
    if (memory[n] > memory[longest])
      longest = n;
  printf("longest from %llu: %llu\n", (unsigned long long)longest, (unsigned long long)memory[longest]);
  uint64_t second = run(shuffle, r, memory, size), hash = 1469598103934665603ull;
  for (int k = 0; k < REGISTERS; k++)
    hash = (hash ^ r[k]) * 1099511628211ull;
  for (uint64_t n = 0; n < size; n++)
    hash = (hash ^ memory[n]) * 1099511628211ull;
  printf("executed %llu and %llu\n%016llx\n", (unsigned long long)first, (unsigned long long)second,
         (unsigned long long)hash);
  free(memory);
  return 0;
}
