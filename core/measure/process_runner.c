/* Times whole processes: runs the planned executables one after the other and reports each run's clocks.
 *
 * Working directory on entry:
 *   plan      "core timeout_ms exit_code runs\n", then one line a run: "executable_index environment_bytes\n"
 *   programs  executables, NUL-separated paths        arguments    argv[1..], NUL-separated
 *   variables NAME=value, NUL-separated               input        standard input of every run
 *   expected  standard output that every run must give
 *
 * Report (one frame on the channel): struct outcome, then one struct sample for each run that ended well.
 * Everything is read and unlinked before the first run, so that a program can neither read what is expected of it nor
 * replace another one's executable; this process is not dumpable, so it cannot be read or traced either.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../sandbox/channel.h"

enum status { DONE, CRASHED, TIMED_OUT, WRONG_OUTPUT, LEFT_PROCESSES, NOT_STARTED };
struct outcome { uint32_t status, runs; int32_t detail, unused; };
struct sample { uint64_t wall_ns, cpu_ns, switches; };
struct list { char **items; int count; };
struct blob { char *data; size_t size; };

enum { LARGEST_PAD = 1 << 16 };

static volatile sig_atomic_t running, expired;

static void die(const char *what) { perror(what); exit(125); }

static void on_alarm(int number) {
    (void)number;
    expired = 1;
    if (running) kill(-running, SIGKILL), kill(running, SIGKILL);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_unlinked(const char *name, int flags) {
    int fd = open(name, flags | O_CLOEXEC, 0600);
    if (fd < 0) die(name);
    if (name[0] != '/') unlink(name);
    return fd;
}

static struct blob read_unlinked(const char *name) {
    int fd = open_unlinked(name, O_RDONLY);
    struct stat s;
    if (fstat(fd, &s)) die(name);
    struct blob b = {malloc((size_t)s.st_size + 1), (size_t)s.st_size};
    for (size_t got = 0; got < b.size;) {
        ssize_t n = read(fd, b.data + got, b.size - got);
        if (n <= 0) die(name);
        got += (size_t)n;
    }
    b.data[b.size] = 0;
    close(fd);
    return b;
}

/* NUL-terminated strings -> array, with `before` free places in front and a NULL behind. */
static struct list split(struct blob b, int before) {
    struct list l = {calloc(b.size + (size_t)before + 2, sizeof(char *)), before};
    for (size_t at = 0; at < b.size; at += strlen(b.data + at) + 1) l.items[l.count++] = b.data + at;
    return l;
}

static int same_output(int fd, struct blob expected) {
    struct stat s;
    if (fstat(fd, &s)) die("output");
    if ((size_t)s.st_size != expected.size) return 0;
    if (!expected.size) return 1;
    char *got = mmap(NULL, expected.size, PROT_READ, MAP_SHARED, fd, 0);
    if (got == MAP_FAILED) die("mmap");
    int same = !memcmp(got, expected.data, expected.size);
    munmap(got, expected.size);
    return same;
}

int main(void) {
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    complab_channel channel;
    if (complab_open(&channel)) die("channel");

    char *plan = read_unlinked("plan").data;
    int core, timeout_ms, exit_code, runs, used;
    if (sscanf(plan, "%d %d %d %d%n", &core, &timeout_ms, &exit_code, &runs, &used) != 4) die("plan");
    plan += used;
    struct list programs = split(read_unlinked("programs"), 0);
    struct list arguments = split(read_unlinked("arguments"), 1);
    struct list variables = split(read_unlinked("variables"), 1);
    struct blob expected = read_unlinked("expected");
    int input = open_unlinked("input", O_RDONLY), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int output = open_unlinked("output", O_RDWR | O_CREAT | O_EXCL);
    int *executables = calloc((size_t)programs.count, sizeof(int));
    for (int i = 0; i < programs.count; i++) executables[i] = open_unlinked(programs.items[i], O_RDONLY);
    arguments.items[0] = "program";
    static char pad[LARGEST_PAD + 16];
    variables.items[0] = pad;

    if (core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    struct sigaction alarm_action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &alarm_action, NULL);
    struct itimerval off = {0}, limit = {.it_value = {timeout_ms / 1000, timeout_ms % 1000 * 1000}};

    size_t room = sizeof(struct outcome) + (size_t)runs * sizeof(struct sample);
    struct outcome *outcome = calloc(1, room);
    struct sample *samples = (struct sample *)(outcome + 1);
    for (int run = 0; run < runs && outcome->status == DONE; run++) {
        int which, pad_bytes, status;
        if (sscanf(plan, "%d %d%n", &which, &pad_bytes, &used) != 2 || which < 0 || which >= programs.count ||
            pad_bytes < 0 || pad_bytes > LARGEST_PAD)
            die("plan");
        plan += used;
        memcpy(pad, "COMPLAB_PAD=", 12);
        memset(pad + 12, 'x', (size_t)pad_bytes);
        pad[12 + pad_bytes] = 0;
        if (ftruncate(output, 0) || lseek(output, 0, SEEK_SET) || lseek(input, 0, SEEK_SET)) die("output");
        volatile int failed = 0;
        struct rusage usage;
        expired = 0;
        uint64_t start = now_ns();
        pid_t child = vfork();
        if (child < 0) die("vfork");
        if (child == 0) {
            setpgid(0, 0);
            if (dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(null, 2) == 2)
                syscall(SYS_execveat, executables[which], "", arguments.items, variables.items, AT_EMPTY_PATH);
            failed = errno;
            _exit(127);
        }
        running = child;
        setitimer(ITIMER_REAL, &limit, NULL);
        while (wait4(child, &status, 0, &usage) < 0)
            if (errno != EINTR) die("wait4");
        uint64_t wall = now_ns() - start;
        running = 0;
        setitimer(ITIMER_REAL, &off, NULL);
        outcome->detail = status;
        pid_t left = waitpid(-1, NULL, WNOHANG);
        if (failed) outcome->status = NOT_STARTED, outcome->detail = failed;
        else if (expired) outcome->status = TIMED_OUT;
        else if (!WIFEXITED(status) || WEXITSTATUS(status) != exit_code) outcome->status = CRASHED;
        else if (!(left < 0 && errno == ECHILD)) outcome->status = LEFT_PROCESSES;
        else if (!same_output(output, expected)) outcome->status = WRONG_OUTPUT;
        else {
            uint64_t us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
                          (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
            samples[outcome->runs++] = (struct sample){wall, us * 1000, (uint64_t)usage.ru_nivcsw};
        }
    }
    if (complab_send(&channel, outcome, (uint32_t)(sizeof *outcome + outcome->runs * sizeof(struct sample)))) die("channel");
    return 0;
}
