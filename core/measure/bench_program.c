/* Small programs whose work is proportional to ROUNDS: what `complab bench measure` times. KERNEL picks one of four. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 4096, SIDE = 48 };

static uint32_t words[SIZE];
static double left[SIDE][SIDE], right[SIDE][SIDE], product[SIDE][SIDE];

__attribute__((noinline)) static uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    return x ^ x >> 15;
}

#if KERNEL == 0 /* a chain of multiplications */
static void once(uint32_t round) {
    uint32_t x = round;
    for (int i = 0; i < SIZE; i++) x = mix(x + (uint32_t)i);
    words[round % SIZE] = x;
}
#elif KERNEL == 1 /* branches that depend on data */
static void once(uint32_t round) {
    for (int i = 1; i < SIZE; i++) {
        uint32_t x = words[i] + words[i - 1] * 5u + round;
        words[i] = x & 64 ? mix(x) : x + 1;
    }
}
#elif KERNEL == 2 /* floating point over small matrices */
static void once(uint32_t round) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = round;
            for (int k = 0; k < SIDE; k++) sum += left[i][k] * right[k][j];
            product[i][j] = sum;
        }
}
#else /* sorting through a comparison function */
static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}
static void once(uint32_t round) {
    static uint32_t part[256];
    for (uint32_t i = 0; i < 256; i++) part[i] = mix(i ^ round);
    qsort(part, 256, sizeof part[0], by_value);
    words[round % SIZE] = part[7];
}
#endif

int main(void) {
    for (int i = 0; i < SIZE; i++) words[i] = mix((uint32_t)i);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) left[i][j] = i - j, right[i][j] = i + 2 * j;
    for (uint32_t round = 0; round < ROUNDS; round++) once(round);
    uint32_t sum = 0;
    for (int i = 0; i < SIZE; i++) sum ^= words[i];
    for (int i = 0; i < SIDE; i++) sum ^= (uint32_t)(int64_t)product[i][i];
    volatile uint32_t sink = sum;
    (void)sink;
    puts("done");
    return 0;
}
