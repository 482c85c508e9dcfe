/* Times two shared objects in one process, each in its own linker namespace (see object_abi.h for what they export).
 *
 * Working directory on entry:
 *   plan      "core timeout_ms repeats pairs\n", then for each pair the arm that goes first
 *   objects   two NUL-separated paths
 *   input     what complab_setup gets        expected  what complab_output must give
 *
 * Report (one frame on the channel): struct outcome, then two struct sample a pair, in the order in which they ran.
 * The objects share this process with the clocks: honest code is timed well, hostile code is not held off by this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../sandbox/channel.h"

enum status { DONE, CRASHED, TIMED_OUT, WRONG_OUTPUT, NOT_LOADED };
enum { WARM_UP_CALLS = 5, MESSAGE_SIZE = 256 };
struct outcome { uint32_t status, arm, extra_threads; int32_t detail; char message[MESSAGE_SIZE]; };
struct sample { uint64_t wall_ns, cpu_ns, thread_ns, switches; };
struct arm { int (*setup)(const unsigned char *, size_t); void (*run)(void); const unsigned char *(*output)(size_t *); };
struct blob { unsigned char *data; size_t size; };

static complab_channel channel;
static struct outcome outcome;
static volatile sig_atomic_t active;

static void die(const char *what) { perror(what); exit(125); }

static void give_up(enum status status, int arm, int detail) {
    outcome.status = status, outcome.arm = (uint32_t)arm, outcome.detail = detail;
    if (complab_send(&channel, &outcome, sizeof outcome)) _exit(125);
    _exit(0);
}

static void on_signal(int number) { give_up(number == SIGALRM ? TIMED_OUT : CRASHED, active, number); }

static struct blob read_whole(const char *name) {
    FILE *f = fopen(name, "rb");
    if (!f || fseek(f, 0, SEEK_END)) die(name);
    long size = ftell(f);
    rewind(f);
    struct blob b = {malloc((size_t)size + 1), (size_t)size};
    if (size < 0 || !b.data || fread(b.data, 1, b.size, f) != b.size) die(name);
    b.data[b.size] = 0;
    fclose(f);
    unlink(name);
    return b;
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_nivcsw;
}

static int threads(void) {
    int count = 0;
    char line[128];
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) die("/proc/self/status");
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &count) == 1) break;
    fclose(f);
    return count;
}

static void *symbol(void *object, const char *name, int arm) {
    void *found = dlsym(object, name);
    if (!found) {
        snprintf(outcome.message, MESSAGE_SIZE, "it does not export %s", name);
        give_up(NOT_LOADED, arm, 0);
    }
    return found;
}

static void check(struct arm *arms, struct blob expected) {
    for (int a = 0; a < 2; a++) {
        active = a;
        size_t size = 0;
        const unsigned char *got = arms[a].output(&size);
        if (size != expected.size || (size && memcmp(got, expected.data, size))) give_up(WRONG_OUTPUT, a, 0);
    }
}

int main(void) {
    if (complab_open(&channel)) die("channel");
    char *plan = (char *)read_whole("plan").data;
    int core, timeout_ms, repeats, pairs, used;
    if (sscanf(plan, "%d %d %d %d%n", &core, &timeout_ms, &repeats, &pairs, &used) != 4) die("plan");
    plan += used;
    struct blob objects = read_whole("objects"), input = read_whole("input"), expected = read_whole("expected");
    if (core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
    }
    /* A broken arm may have overrun the stack, so its signal is taken on another one. */
    static char spare_stack[1 << 16];
    sigaltstack(&(stack_t){.ss_sp = spare_stack, .ss_size = sizeof spare_stack}, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) sigaction(fatal[i], &action, NULL);
    struct itimerval limit = {.it_value = {timeout_ms / 1000, timeout_ms % 1000 * 1000}};
    setitimer(ITIMER_REAL, &limit, NULL);

    struct arm arms[2];
    char *path = (char *)objects.data;
    for (int a = 0; a < 2; a++, path += strlen(path) + 1) {
        active = a;
        void *object = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
        if (!object) {
            snprintf(outcome.message, MESSAGE_SIZE, "%s", dlerror());
            give_up(NOT_LOADED, a, 0);
        }
        arms[a].setup = (int (*)(const unsigned char *, size_t))symbol(object, "complab_setup", a);
        arms[a].run = (void (*)(void))symbol(object, "complab_run", a);
        arms[a].output = (const unsigned char *(*)(size_t *))symbol(object, "complab_output", a);
        int failed = arms[a].setup(input.data, input.size);
        if (failed) {
            snprintf(outcome.message, MESSAGE_SIZE, "complab_setup returned %d", failed);
            give_up(NOT_LOADED, a, failed);
        }
        for (int i = 0; i < WARM_UP_CALLS; i++) arms[a].run();
    }
    check(arms, expected);

    int alone = threads();
    size_t room = sizeof outcome + (size_t)pairs * 2 * sizeof(struct sample);
    char *report = malloc(room);
    struct sample *samples = (struct sample *)(report + sizeof outcome);
    for (int pair = 0; pair < pairs; pair++) {
        int first;
        if (sscanf(plan, "%d%n", &first, &used) != 1) die("plan");
        plan += used;
        for (int turn = 0; turn < 2; turn++) {
            active = first ^ turn;
            void (*run)(void) = arms[active].run;
            uint64_t before = switches();
            uint64_t wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
            uint64_t thread = now_ns(CLOCK_THREAD_CPUTIME_ID);
            for (int i = 0; i < repeats; i++) run();
            thread = now_ns(CLOCK_THREAD_CPUTIME_ID) - thread;
            cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu, wall = now_ns(CLOCK_MONOTONIC) - wall;
            samples[pair * 2 + turn] = (struct sample){wall, cpu, thread, switches() - before};
        }
    }
    check(arms, expected);
    outcome.extra_threads = alone > 1 || threads() > 1;
    memcpy(report, &outcome, sizeof outcome);
    return complab_send(&channel, report, (uint32_t)room) ? 125 : 0;
}
