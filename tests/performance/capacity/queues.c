/*
 * Queues that a search for a capacity is judged against: simulated time, a state that stays warm between calls.
 *
 * Requests wait in one queue for servers, each of which serves a batch of at most `batch_size` (1: no batching), waits
 * for a full one for at most `delay` seconds and takes `each` longer for each request of it. An arrival is refused where
 * `queue_limit` wait and no server is free. A server that remembers has `most_servers` from the moment on at which more
 * than `threshold` wait, until `keep` seconds have passed without that. One with a cold cache serves its first
 * `cold_requests` slower, by a factor that falls from `cold_factor` to 1 in a straight line. What begins within
 * `slow_seconds` of the first arrival takes `slow_factor` times as long. Every `pause_every` seconds from the first
 * arrival on all servers stand still for `pause` seconds; 0: never. `leak` is what each second from the first arrival on
 * adds to a service, in times of it. Where there are `burst` seconds of service to spend at first, each server earns
 * `baseline` seconds more in a second, and a service for which too little is left takes 1 / `baseline` times as long.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT, EXPONENTIAL, LOGNORMAL, BIMODAL };

typedef struct {
    int64_t servers, service, batch_size, lifo, queue_limit, threshold, most_servers;
    double mean, cv, each, delay, keep, cold_requests, cold_factor, slow_seconds, slow_factor, pause_every, pause,
        leak, burst, baseline;
} Rules;

typedef struct {
    double at;
    int64_t id;
} Waiting;

typedef struct {
    uint64_t s[4];
    double spare;
    int has_spare;
} Random;

typedef struct {
    Rules rules;
    Random random;
    double *frees; /* a heap of the instants at which servers are free */
    int64_t count; /* of servers */
    Waiting *line; /* a ring */
    int64_t head, waiting, room;
    double extra_until, served, since, saved, earned_at;
    int is_open;
    /* what becomes of an answer: an instant by id, or a count by window of arrival */
    double *done;
    int64_t *over;
    double window_s, bound;
    int64_t windows;
} Queue;

static uint64_t rotated(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

/* xoshiro256++ */
static uint64_t next(Random *r) {
    uint64_t result = rotated(r->s[0] + r->s[3], 23) + r->s[0], t = r->s[1] << 17;
    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = rotated(r->s[3], 45);
    return result;
}

static void seed(Random *r, uint64_t x) {
    memset(r, 0, sizeof *r);
    for (int i = 0; i < 4; i++) { /* splitmix64 */
        uint64_t z = (x += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

/* In (0, 1]. */
static double uniform(Random *r) { return ((next(r) >> 11) + 1) * 0x1p-53; }

static double exponential(Random *r) { return -log(uniform(r)); }

static double normal(Random *r) {
    if (r->has_spare) {
        r->has_spare = 0;
        return r->spare;
    }
    double x, y, s;
    do {
        x = 2 * uniform(r) - 1;
        y = 2 * uniform(r) - 1;
        s = x * x + y * y;
    } while (s >= 1 || s == 0);
    double f = sqrt(-2 * log(s) / s);
    r->spare = y * f;
    r->has_spare = 1;
    return x * f;
}

/* The length of a service of so many seconds, by the credits that are left. */
static double spent(Queue *q, double at, double t) {
    const Rules *rules = &q->rules;
    q->saved = fmin(rules->burst, q->saved + (at - q->earned_at) * rules->baseline * (double)q->count);
    q->earned_at = at;
    int throttled = q->saved < t;
    q->saved -= t;
    return throttled ? t / rules->baseline : t;
}

static double service_time(Queue *q, double at) {
    const Rules *rules = &q->rules;
    double t = rules->mean;
    if (rules->service == EXPONENTIAL)
        t *= exponential(&q->random);
    else if (rules->service == LOGNORMAL) {
        double v = log1p(rules->cv * rules->cv);
        t *= exp(sqrt(v) * normal(&q->random) - v / 2);
    } else if (rules->service == BIMODAL) /* one in ten is long: mean and CV as asked, the CV at most 3 */
        t *= uniform(&q->random) <= 0.1 ? 1 + 3 * rules->cv : 1 - rules->cv / 3;
    if (q->served < rules->cold_requests)
        t *= 1 + (rules->cold_factor - 1) * (1 - q->served / rules->cold_requests);
    q->served++;
    t *= 1 + rules->leak * (at - q->since);
    if (at - q->since < rules->slow_seconds) t *= rules->slow_factor;
    return rules->burst > 0 ? spent(q, at, t) : t;
}

/* When a service of so many seconds that begins then ends, with the pauses on the way. */
static double end_of(const Queue *q, double at, double seconds) {
    double every = q->rules.pause_every, pause = q->rules.pause;
    if (every <= 0) return at + seconds;
    double next = q->since + every * fmax(1, floor((at - q->since) / every)); /* the pause that began last, or the first */
    for (;; next += every) {
        if (at >= next + pause) continue;
        if (at + seconds <= next) return at + seconds;
        seconds -= fmax(0, next - at);
        at = next + pause;
    }
}

static void sift_down(double *heap, int64_t count) {
    double x = heap[0];
    int64_t i = 0, child;
    while ((child = 2 * i + 1) < count) {
        if (child + 1 < count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= x) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = x;
}

static void add_server(Queue *q, double free_at) {
    int64_t i = q->count++;
    while (i > 0 && q->frees[(i - 1) / 2] > free_at) {
        q->frees[i] = q->frees[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->frees[i] = free_at;
}

static void remove_free_servers(Queue *q, double now) {
    while (q->count > q->rules.servers && q->frees[0] <= now) {
        q->frees[0] = q->frees[--q->count];
        sift_down(q->frees, q->count);
    }
}

static Waiting take(Queue *q) {
    Waiting w;
    if (q->rules.lifo)
        w = q->line[(q->head + q->waiting - 1) & (q->room - 1)];
    else {
        w = q->line[q->head];
        q->head = (q->head + 1) & (q->room - 1);
    }
    q->waiting--;
    return w;
}

static void answer(Queue *q, Waiting w, double at) {
    if (q->done)
        q->done[w.id] = at;
    else if (w.at >= 0 && at - w.at > q->bound) {
        int64_t window = (int64_t)(w.at / q->window_s);
        if (window < q->windows) q->over[window]++;
    }
}

/* Services that begin up to `until`. */
void queue_settle(Queue *q, double until, double *done) {
    q->done = done;
    int64_t size = q->rules.batch_size;
    while (q->waiting) {
        double at = q->waiting >= size ? q->line[(q->head + size - 1) & (q->room - 1)].at
                                       : q->line[q->head].at + q->rules.delay;
        if (q->frees[0] > at) at = q->frees[0];
        if (at > until) return;
        int64_t n = q->waiting < size ? q->waiting : size;
        double ends = end_of(q, at, service_time(q, at) + (double)n * q->rules.each);
        for (; n; n--) answer(q, take(q), ends);
        q->frees[0] = ends;
        sift_down(q->frees, q->count);
    }
}

static void push(Queue *q, double at, int64_t id) {
    if (q->waiting == q->room) {
        Waiting *line = malloc(2 * q->room * sizeof *line);
        for (int64_t i = 0; i < q->waiting; i++) line[i] = q->line[(q->head + i) & (q->room - 1)];
        free(q->line);
        q->line = line;
        q->head = 0;
        q->room *= 2;
    }
    q->line[(q->head + q->waiting++) & (q->room - 1)] = (Waiting){at, id};
}

/* Whether it was accepted. */
static int offer(Queue *q, double at, int64_t id) {
    if (!q->is_open) {
        q->is_open = 1;
        q->since = q->earned_at = at;
        q->saved = q->rules.burst;
    }
    queue_settle(q, at, q->done);
    if (q->count > q->rules.servers && at > q->extra_until) remove_free_servers(q, at);
    if (q->rules.queue_limit >= 0 && q->waiting >= q->rules.queue_limit && q->frees[0] > at) return 0;
    push(q, at, id);
    queue_settle(q, at, q->done);
    if (q->rules.most_servers > q->rules.servers && q->waiting > q->rules.threshold) {
        while (q->count < q->rules.most_servers) add_server(q, at);
        q->extra_until = at + q->rules.keep;
        queue_settle(q, at, q->done);
    }
    return 1;
}

Queue *queue_new(const Rules *rules, uint64_t seed_) {
    Queue *q = calloc(1, sizeof *q);
    q->rules = *rules;
    seed(&q->random, seed_);
    int64_t most = rules->most_servers > rules->servers ? rules->most_servers : rules->servers;
    q->frees = malloc(most * sizeof *q->frees);
    q->count = rules->servers;
    for (int64_t i = 0; i < q->count; i++) q->frees[i] = -INFINITY;
    q->room = 1024;
    q->line = malloc(q->room * sizeof *q->line);
    return q;
}

void queue_free(Queue *q) {
    free(q->frees);
    free(q->line);
    free(q);
}

/* Arrivals first, first + 1, .. at the instants at[]; done[id] becomes the answer's instant, minus the arrival's where
 * it is refused, and stays as it was where service has not begun. */
void queue_offer(Queue *q, int64_t count, const double *at, int64_t first, double *done) {
    q->done = done;
    for (int64_t i = 0; i < count; i++)
        if (!offer(q, at[i], first + i)) done[first + i] = -at[i];
}

/* Arrivals at `rate` for `windows` windows of `window_s`, after `warm_s` that are not counted: of each window what
 * arrived, was over `bound` and was refused. */
void queue_long(Queue *q, uint64_t seed_, double rate, int64_t even, double warm_s, double window_s, int64_t windows,
                double bound, int64_t *of, int64_t *over, int64_t *refused) {
    Random arrivals;
    seed(&arrivals, seed_);
    q->done = NULL;
    q->over = over;
    q->window_s = window_s;
    q->windows = windows;
    q->bound = bound;
    double at = -warm_s, gap = 1 / rate;
    double end = window_s * (double)windows;
    for (;;) {
        at += even ? gap : gap * exponential(&arrivals);
        if (at >= end) break;
        int64_t window = at < 0 ? windows : (int64_t)(at / window_s);
        if (window < windows) of[window]++;
        if (!offer(q, at, 0) && window < windows) refused[window]++;
    }
    queue_settle(q, INFINITY, NULL);
}
