/*
 * The least that an open-loop client of this host can be late: it wakes by a timerfd, writes a request that is
 * prepared, and throws the answers away. No client written in Python can do with less.
 *
 *   floor_client PORT CONNECTIONS < DUE_TIMES
 *
 * DUE_TIMES are little-endian int64, ns after the start, not decreasing. Request i carries the header X-Id: i. A
 * connection is used again once its answer is there; each is opened, and its answer measured, by one request with
 * the id -1 before the start. Prints the start in ns of CLOCK_MONOTONIC, the CPU time in ns that the schedule took,
 * and how many requests found no idle connection and so were not sent. Ends 5 s after the last due time at the latest.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 4096, REQUEST_ROOM = 128, ANSWER_ROOM = 65536, EVENTS = 64 };

static const int64_t SECOND_NS = INT64_C(1000000000), LEAD_NS = INT64_C(200000000), PATIENCE_NS = INT64_C(5000000000);

static int64_t *due;
static size_t count, next_index;
static int idle[MAX_CONNECTIONS], idle_count;
static size_t left[MAX_CONNECTIONS], answer_length;
static char request[REQUEST_ROOM];
static int request_length;

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void read_due_times(void)
{
    size_t capacity = 1 << 16, length = 0;
    char *data = malloc(capacity);
    for (ssize_t got; data && (got = read(STDIN_FILENO, data + length, capacity - length)) > 0;) {
        length += (size_t)got;
        if (length == capacity)
            data = realloc(data, capacity *= 2);
    }
    if (!data)
        die("malloc");
    due = (int64_t *)(void *)data;
    count = length / sizeof *due;
}

static void prepare(long id)
{
    request_length = snprintf(request, sizeof request,
                              "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nX-Id: %ld\r\n\r\n", id);
}

static void send_on(int fd)
{
    if (send(fd, request, (size_t)request_length, MSG_NOSIGNAL) != request_length)
        die("send");
}

/* Connects, and learns how long an answer is by one request of its own. */
static int opened(int port)
{
    static char answer[ANSWER_ROOM];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || fd >= MAX_CONNECTIONS || connect(fd, (struct sockaddr *)&address, sizeof address))
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    prepare(-1);
    send_on(fd);
    ssize_t got = recv(fd, answer, sizeof answer, 0);
    if (got <= 0)
        die("recv");
    answer_length = (size_t)got;
    return fd;
}

static void arm(int timer, int64_t at_ns)
{
    struct itimerspec spec = {.it_value = {.tv_sec = at_ns / SECOND_NS, .tv_nsec = at_ns % SECOND_NS}};
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL))
        die("timerfd_settime");
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
        die("epoll_ctl");
}

/* Sends what is due; how many found no idle connection. */
static size_t dispatch(int timer, int64_t start_ns)
{
    size_t unsent = 0;
    while (next_index < count && start_ns + due[next_index] <= clock_ns(CLOCK_MONOTONIC)) {
        if (idle_count) {
            int fd = idle[--idle_count];
            left[fd] = answer_length;
            send_on(fd);
        } else {
            unsent++;
        }
        prepare((long)++next_index);
    }
    arm(timer, start_ns + (next_index < count ? due[next_index] : due[count - 1] + PATIENCE_NS));
    return unsent;
}

static void throw_away(int fd)
{
    static char answer[ANSWER_ROOM];
    ssize_t got = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (got <= 0)
        die("recv");
    left[fd] -= (size_t)got < left[fd] ? (size_t)got : left[fd];
    if (!left[fd])
        idle[idle_count++] = fd;
}

int main(int argc, char **argv)
{
    int connections = argc == 3 ? atoi(argv[2]) : 0;
    if (connections < 1)
        return fprintf(stderr, "usage: floor_client PORT CONNECTIONS < DUE_TIMES\n"), EXIT_FAILURE;
    read_due_times();
    if (!count)
        return fprintf(stderr, "floor_client: no due times\n"), EXIT_FAILURE;
    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    watch(epoll, timer);
    for (int number = 0; number < connections; number++) {
        int fd = opened(atoi(argv[1]));
        watch(epoll, fd);
        idle[idle_count++] = fd;
    }
    prepare(0);
    int64_t start_ns = clock_ns(CLOCK_MONOTONIC) + LEAD_NS, cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    size_t unsent = 0;
    bool timed_out = false;
    arm(timer, start_ns + due[0]);
    while (!timed_out && (next_index < count || idle_count < connections)) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        for (int number = 0; number < ready; number++) {
            if (events[number].data.fd != timer)
                throw_away(events[number].data.fd);
            else if (next_index < count)
                unsent += dispatch(timer, start_ns);
            else
                timed_out = true;
        }
    }
    printf("%" PRId64 " %" PRId64 " %zu\n", start_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns, unsent);
    return EXIT_SUCCESS;
}
