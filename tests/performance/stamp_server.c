/*
 * An HTTP/1.1 endpoint that a load tester is judged against: it stamps each request and each answer in
 * nanoseconds of CLOCK_MONOTONIC, the clock that every process of this host shares.
 *
 *   stamp_server [--address A] [--port P] [--delay-us D] [--servers K] [--tokens N --gap-us G]
 *
 * Prints its port once it listens on A (127.0.0.1), and ends when its standard input closes.
 *
 * The model: a request is in service for D (a stream: D to the first token, then G between tokens). K servers
 * share one FIFO queue; 0 means a server for everyone. Instants are the model's own, never those of a timer that
 * woke late: an answer that leaves late does not delay the next one. A stall suspends all service for its length.
 *
 *   GET /stall?ms=M     suspend service from now on; answers {"at_ns": .., "until_ns": ..}
 *   GET /log            records of three little-endian int64: id, arrival_ns, answered_ns (0: not yet)
 *   DELETE /log         forget them (GET /clear does the same)
 *   anything else       a request. Its id: header X-Id, or the digits its body starts with, or -1
 *
 * A request is stamped right after the recv that completed it, an answer right after the write that ended it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the log is sent as it lies in memory");

enum {
    MAX_CONNECTIONS = 65536,
    MAX_SERVERS = 4096,
    MAX_REQUEST = 64 << 20,
    EVENTS_PER_PASS = 256,
    /* Answers are written in small groups, so that a burst of them never keeps an arrival from its stamp. */
    ANSWERS_PER_PASS = 8,
    READ_ROOM = 4096,
    LOG_START = 1 << 20,
};

#define SSE_EVENT "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"tok\"}}]}\n\n"
#define SSE_TOKEN "5c\r\n" SSE_EVENT "\r\n"
#define SSE_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define SSE_END "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
#define JSON_ANSWER "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"
#define EMPTY_ANSWER "HTTP/1.1 204 No Content\r\n\r\n"

_Static_assert(sizeof(SSE_EVENT) - 1 == 0x5c, "the chunk length in SSE_TOKEN");

typedef struct {
    int64_t id, arrival_ns, answered_ns;
} Record;

/* The next thing to write on a connection; `generation` tells a reused descriptor from the one it was meant for. */
typedef struct {
    int64_t due_ns;
    uint64_t order;
    int fd;
    uint32_t generation;
} Answer;

typedef struct {
    char *data; /* always terminated by a NUL behind `length` bytes, so that numbers can be read from it */
    size_t length, capacity;
    int64_t received_ns; /* when its last bytes came */
    size_t record;       /* of the request in service */
    uint32_t generation, log_epoch;
    int tokens_left;
    bool open, busy;
} Connection;

typedef struct {
    const char *head, *body;
    size_t head_length, body_length;
} Request;

static struct {
    int64_t delay_ns, gap_ns;
    int tokens, servers;
    uint16_t port;
    struct in_addr address;
} options = {.address.s_addr = 0x0100007f}; /* 127.0.0.1 as it lies in memory */

static struct {
    int64_t free_at_ns[MAX_SERVERS]; /* when each server ends what it was given */
    int64_t stalled_until_ns;
} model;

static struct {
    Record *records;
    size_t length, capacity;
    uint32_t epoch; /* which log a request in service belongs to: the log may be cleared under it */
} stamps;

/* A binary heap on (due_ns, order): equal instants leave in the order they were scheduled. */
static struct {
    Answer *answers;
    size_t length, capacity;
    uint64_t order;
} queue;

static Connection connections[MAX_CONNECTIONS];
static int epoll_fd, listen_fd, timer_fd;
static int64_t armed_ns; /* what the timer is set to; 0: it is off */

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static void *grown(void *memory, size_t size)
{
    void *larger = realloc(memory, size);
    if (!larger)
        die("realloc");
    return larger;
}

/* ---- the log ---- */

static void log_prepare(void)
{
    stamps.capacity = LOG_START;
    stamps.records = grown(NULL, LOG_START * sizeof(Record));
    memset(stamps.records, 0, LOG_START * sizeof(Record)); /* page faults now, not in a wave */
}

static size_t log_arrival(int64_t id, int64_t arrival_ns)
{
    if (stamps.length == stamps.capacity) {
        stamps.capacity *= 2;
        stamps.records = grown(stamps.records, stamps.capacity * sizeof(Record));
    }
    stamps.records[stamps.length] = (Record){.id = id, .arrival_ns = arrival_ns};
    return stamps.length++;
}

static void log_answered(const Connection *connection)
{
    if (connection->log_epoch == stamps.epoch)
        stamps.records[connection->record].answered_ns = now_ns();
}

static void log_clear(void)
{
    stamps.length = 0;
    stamps.epoch++;
}

/* ---- the queue of answers ---- */

static bool before(const Answer *one, const Answer *other)
{
    return one->due_ns != other->due_ns ? one->due_ns < other->due_ns : one->order < other->order;
}

static void queue_push(Answer answer)
{
    if (queue.length == queue.capacity) {
        queue.capacity = queue.capacity ? 2 * queue.capacity : 1024;
        queue.answers = grown(queue.answers, queue.capacity * sizeof(Answer));
    }
    answer.order = queue.order++;
    size_t place = queue.length++;
    for (; place && before(&answer, &queue.answers[(place - 1) / 2]); place = (place - 1) / 2)
        queue.answers[place] = queue.answers[(place - 1) / 2];
    queue.answers[place] = answer;
}

static Answer queue_pop(void)
{
    Answer first = queue.answers[0], last = queue.answers[--queue.length];
    size_t place = 0;
    for (size_t child; (child = 2 * place + 1) < queue.length; place = child) {
        if (child + 1 < queue.length && before(&queue.answers[child + 1], &queue.answers[child]))
            child++;
        if (!before(&queue.answers[child], &last))
            break;
        queue.answers[place] = queue.answers[child];
    }
    queue.answers[place] = last;
    return first;
}

static bool queue_due(void)
{
    return queue.length && queue.answers[0].due_ns <= now_ns();
}

/* Setting the timer also takes back its readiness, so it is never read. */
static void arm_timer(void)
{
    int64_t due_ns = queue.length ? queue.answers[0].due_ns : 0;
    if (due_ns == armed_ns)
        return;
    armed_ns = due_ns;
    struct itimerspec when = {.it_value = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000}};
    if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0)
        die("timerfd_settime");
}

/* ---- the model ---- */

static int64_t service_ns(void)
{
    return options.delay_ns + (options.tokens ? (options.tokens - 1) * options.gap_ns : 0);
}

/* When the model begins to serve a request; keeps the server it is given to. */
static int64_t service_start_ns(int64_t arrival_ns)
{
    if (!options.servers)
        return later(arrival_ns, model.stalled_until_ns);
    int64_t *earliest = &model.free_at_ns[0];
    for (int i = 1; i < options.servers; i++)
        if (model.free_at_ns[i] < *earliest)
            earliest = &model.free_at_ns[i];
    int64_t start_ns = later(arrival_ns, *earliest);
    *earliest = start_ns + service_ns();
    return start_ns;
}

/* Everything unfinished is put off by the same length, which keeps the heap a heap. */
static void stall(int64_t at_ns, int64_t length_ns)
{
    model.stalled_until_ns = later(model.stalled_until_ns, at_ns) + length_ns;
    for (int i = 0; i < options.servers; i++)
        model.free_at_ns[i] = later(model.free_at_ns[i], at_ns) + length_ns;
    for (size_t i = 0; i < queue.length; i++)
        if (queue.answers[i].due_ns > at_ns)
            queue.answers[i].due_ns += length_ns;
}

/* ---- connections ---- */

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        die(fd == STDIN_FILENO ? "standard input must be a pipe or a terminal: its end is the server's" : "epoll_ctl");
}

static void connection_open(int fd)
{
    int on = 1;
    if (fd >= MAX_CONNECTIONS) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection *connection = &connections[fd];
    connection->length = 0;
    connection->open = true;
    connection->busy = false;
    watch(fd);
}

/* The buffer stays for whoever gets this descriptor next. */
static void connection_close(int fd)
{
    connections[fd].open = false;
    connections[fd].generation++;
    close(fd);
}

static void accept_all(void)
{
    for (int fd; (fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
        connection_open(fd);
}

/* False when nothing was received; closes the connection where nothing will be. */
static bool receive(int fd)
{
    Connection *connection = &connections[fd];
    if (connection->capacity < connection->length + READ_ROOM + 1) {
        connection->capacity = 2 * connection->capacity + READ_ROOM + 1;
        connection->data = grown(connection->data, connection->capacity);
    }
    size_t room = connection->capacity - connection->length - 1;
    ssize_t got = recv(fd, connection->data + connection->length, room, 0);
    connection->received_ns = now_ns();
    if (got > 0) {
        connection->length += (size_t)got;
        connection->data[connection->length] = '\0';
        return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
        connection_close(fd);
    return false;
}

/* Writes all of it or gives the connection up. Only the log is long enough to ever have to wait for the reader. */
static bool send_all(int fd, const void *data, size_t length)
{
    for (const char *rest = data; length;) {
        ssize_t sent = send(fd, rest, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd writable = {.fd = fd, .events = POLLOUT};
            poll(&writable, 1, 1000);
            continue;
        }
        if (sent < 0) {
            connection_close(fd);
            return false;
        }
        rest += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* ---- HTTP ---- */

/* The value of a header, or NULL; `name` ends with its colon. */
static const char *header(const Request *request, const char *name)
{
    size_t length = strlen(name);
    const char *end = request->head + request->head_length;
    for (const char *line = request->head; (line = memchr(line, '\n', (size_t)(end - line))) && ++line < end;)
        if (strncasecmp(line, name, length) == 0)
            return line + length;
    return NULL;
}

/* Bytes of the first request in the buffer: 0 when it is not complete yet, -1 when it never will be. */
static ssize_t parse(const Connection *connection, Request *request)
{
    const char *blank = memmem(connection->data, connection->length, "\r\n\r\n", 4);
    if (!blank)
        return connection->length > READ_ROOM * 4 ? -1 : 0;
    request->head = connection->data;
    request->head_length = (size_t)(blank - connection->data) + 4;
    request->body = request->head + request->head_length;
    const char *value = header(request, "Content-Length:");
    long long body = value ? strtoll(value, NULL, 10) : 0;
    if (body < 0 || body > MAX_REQUEST || header(request, "Transfer-Encoding:"))
        return -1;
    request->body_length = (size_t)body;
    size_t whole = request->head_length + request->body_length;
    return connection->length < whole ? 0 : (ssize_t)whole;
}

static bool asks(const Request *request, const char *start)
{
    return strncmp(request->head, start, strlen(start)) == 0;
}

static int64_t request_id(const Request *request)
{
    const char *value = header(request, "X-Id:");
    if (value)
        return strtoll(value, NULL, 10);
    return request->body_length && isdigit((unsigned char)*request->body) ? strtoll(request->body, NULL, 10) : -1;
}

static void answer_with_log(int fd)
{
    char head[128];
    size_t size = stamps.length * sizeof(Record);
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n", size);
    if (send_all(fd, head, (size_t)length))
        send_all(fd, stamps.records, size);
}

static void answer_stall(int fd, const Request *request)
{
    char body[96], answer[256];
    int64_t at_ns = connections[fd].received_ns;
    const char *length_ms = memmem(request->head, request->head_length, "ms=", 3);
    stall(at_ns, length_ms ? strtoll(length_ms + 3, NULL, 10) * 1000000 : 0);
    int length = snprintf(body, sizeof body, "{\"at_ns\": %lld, \"until_ns\": %lld}", (long long)at_ns,
                          (long long)model.stalled_until_ns);
    length = snprintf(answer, sizeof answer,
                      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body);
    send_all(fd, answer, (size_t)length);
}

/* Requests about the measurement itself are answered at once and never logged. */
static bool control(int fd, const Request *request)
{
    if (asks(request, "GET /log ")) {
        answer_with_log(fd);
    } else if (asks(request, "DELETE /log ") || asks(request, "GET /clear ")) {
        log_clear();
        send_all(fd, EMPTY_ANSWER, sizeof EMPTY_ANSWER - 1);
    } else if (asks(request, "GET /stall?")) {
        answer_stall(fd, request);
    } else {
        return false;
    }
    return true;
}

static void serve(int fd, const Request *request)
{
    Connection *connection = &connections[fd];
    connection->record = log_arrival(request_id(request), connection->received_ns);
    connection->log_epoch = stamps.epoch;
    connection->tokens_left = options.tokens;
    connection->busy = true;
    int64_t due_ns = service_start_ns(connection->received_ns) + options.delay_ns;
    queue_push((Answer){.due_ns = due_ns, .fd = fd, .generation = connection->generation});
}

/* Takes up the requests in the buffer, one in service at a time. */
static void take_requests(int fd)
{
    Connection *connection = &connections[fd];
    Request request;
    while (connection->open && !connection->busy && connection->length) {
        ssize_t taken = parse(connection, &request);
        if (taken < 0)
            connection_close(fd);
        if (taken <= 0)
            return;
        if (!control(fd, &request))
            serve(fd, &request);
        connection->length -= (size_t)taken;
        memmove(connection->data, connection->data + taken, connection->length + 1);
    }
}

/* ---- answers ---- */

/* Head and first token leave in one write, and so do the last token and the end. */
static bool write_token(int fd, bool first, bool last)
{
    static const char everything[] = SSE_HEAD SSE_TOKEN SSE_END;
    const char *start = everything + (first ? 0 : sizeof SSE_HEAD - 1);
    const char *end = everything + sizeof everything - 1 - (last ? 0 : sizeof SSE_END - 1);
    return send_all(fd, start, (size_t)(end - start));
}

/* True when the answer is complete. */
static bool write_answer(const Answer *answer)
{
    Connection *connection = &connections[answer->fd];
    if (!options.tokens)
        return send_all(answer->fd, JSON_ANSWER, sizeof JSON_ANSWER - 1);
    bool first = connection->tokens_left == options.tokens, last = --connection->tokens_left == 0;
    if (!write_token(answer->fd, first, last))
        return false;
    if (!last)
        queue_push((Answer){
            .due_ns = answer->due_ns + options.gap_ns, .fd = answer->fd, .generation = answer->generation});
    return last;
}

static void give_answer(void)
{
    Answer answer = queue_pop();
    Connection *connection = &connections[answer.fd];
    if (!connection->open || connection->generation != answer.generation || !write_answer(&answer))
        return;
    log_answered(connection);
    connection->busy = false;
    take_requests(answer.fd);
}

/* ---- the loop ---- */

static void handle(int fd)
{
    if (fd == STDIN_FILENO) {
        char ignored[256];
        if (read(fd, ignored, sizeof ignored) <= 0)
            exit(EXIT_SUCCESS);
    } else if (fd == listen_fd) {
        accept_all();
    } else if (fd != timer_fd && connections[fd].open && receive(fd)) {
        take_requests(fd);
    }
}

static void serve_forever(void)
{
    struct epoll_event events[EVENTS_PER_PASS];
    for (;;) {
        int ready = epoll_wait(epoll_fd, events, EVENTS_PER_PASS, queue_due() ? 0 : -1);
        for (int i = 0; i < ready; i++)
            handle(events[i].data.fd);
        for (int left = ANSWERS_PER_PASS; left && queue_due(); left--)
            give_answer();
        arm_timer();
    }
}

static uint16_t start_listening(void)
{
    int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(options.port), .sin_addr = options.address};
    socklen_t size = sizeof address;
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listen_fd, (struct sockaddr *)&address, size) < 0 || listen(listen_fd, 4096) < 0)
        die("listen");
    getsockname(listen_fd, (struct sockaddr *)&address, &size);
    return ntohs(address.sin_port);
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max < MAX_CONNECTIONS ? limit.rlim_max : MAX_CONNECTIONS;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A number from `least` to `most`, or the end of the program. */
static int64_t number(const char *text, int64_t least, int64_t most)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || value < least || value > most) {
        fprintf(stderr, "stamp_server: %s is not a number from %lld to %lld\n", text, (long long)least, (long long)most);
        exit(2);
    }
    return value;
}

static void read_options(int count, char **arguments)
{
    static const struct option known[] = {{"address", required_argument, NULL, 'a'},
                                          {"port", required_argument, NULL, 'p'},
                                          {"delay-us", required_argument, NULL, 'd'},
                                          {"servers", required_argument, NULL, 's'},
                                          {"tokens", required_argument, NULL, 't'},
                                          {"gap-us", required_argument, NULL, 'g'},
                                          {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(count, arguments, "", known, NULL)) != -1;) {
        switch (option) {
        case 'a':
            if (!inet_aton(optarg, &options.address))
                exit(2);
            break;
        case 'p': options.port = (uint16_t)number(optarg, 0, 65535); break;
        case 'd': options.delay_ns = number(optarg, 0, 3600000000) * 1000; break;
        case 's': options.servers = (int)number(optarg, 0, MAX_SERVERS); break;
        case 't': options.tokens = (int)number(optarg, 0, 1000000); break;
        case 'g': options.gap_ns = number(optarg, 0, 3600000000) * 1000; break;
        default: exit(2);
        }
    }
}

int main(int count, char **arguments)
{
    read_options(count, arguments);
    raise_descriptor_limit();
    log_prepare();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (epoll_fd < 0 || timer_fd < 0)
        die("epoll or timer");
    uint16_t port = start_listening();
    watch(STDIN_FILENO);
    watch(listen_fd);
    watch(timer_fd);
    printf("%u\n", (unsigned)port);
    fflush(stdout);
    serve_forever();
}
