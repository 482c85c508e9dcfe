/* Child's side of the sandbox's channel, for C. Open it before starting any other process.
 *
 *   complab_channel channel;
 *   if (complab_open(&channel) != 0) return 1;
 *   complab_send(&channel, text, strlen(text));
 *
 * Each function returns 0 (or a size), or -1 when the parent is gone or the channel is not there.
 */
#ifndef COMPLAB_CHANNEL_H
#define COMPLAB_CHANNEL_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int fd;
    unsigned char nonce[32];
} complab_channel;

static int complab_move(int fd, void *data, size_t size, int writing) {
    char *at = data;
    while (size > 0) {
        ssize_t done = writing ? write(fd, at, size) : read(fd, at, size);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += done;
        size -= (size_t)done;
    }
    return 0;
}

/* Take the descriptor, keep it from programs that we start, and read the nonce. */
static int complab_open(complab_channel *channel) {
    const char *number = getenv("COMPLAB_CHANNEL");
    if (number == NULL) return -1;
    channel->fd = atoi(number);
    unsetenv("COMPLAB_CHANNEL");
    if (fcntl(channel->fd, F_SETFD, FD_CLOEXEC) != 0) return -1;
    return complab_move(channel->fd, channel->nonce, sizeof channel->nonce, 0);
}

/* Send one frame. */
static inline int complab_send(complab_channel *channel, const void *payload, uint32_t size) {
    unsigned char head[36];
    memcpy(head, channel->nonce, 32);
    for (int i = 0; i < 4; i++) head[32 + i] = (unsigned char)(size >> (8 * i));
    if (complab_move(channel->fd, head, sizeof head, 1) != 0) return -1;
    return complab_move(channel->fd, (void *)payload, size, 1);
}

/* Receive one frame into a buffer; returns its size, or -1 at the end or when it does not fit. */
static inline int64_t complab_receive(complab_channel *channel, void *buffer, uint32_t capacity) {
    unsigned char head[36];
    uint32_t size = 0;
    if (complab_move(channel->fd, head, sizeof head, 0) != 0) return -1;
    if (memcmp(head, channel->nonce, 32) != 0) return -1;
    for (int i = 0; i < 4; i++) size |= (uint32_t)head[32 + i] << (8 * i);
    if (size > capacity || complab_move(channel->fd, buffer, size, 0) != 0) return -1;
    return size;
}

#endif
