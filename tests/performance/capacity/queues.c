/*
 * Queues that a search for a capacity is judged against: simulated time, a state that stays warm between calls.
 *
 * Requests wait in one queue for servers, each of which serves a batch of at most `batch_size` (1: no batching), waits
 * for a full one for at most `delay` seconds and takes `each` longer for each request of it. They are taken in order of
 * arrival, the last first, or a share of `urgent` before all others; or they share the servers, none having more than
 * one. Of `instances` each has a queue and servers of its own, to which requests are routed at random, in turn or to
 * where the fewest are. Lognormal services in a row are alike by `correlation` (of their logarithms). An arrival is
 * refused where `queue_limit` wait and no server is free. A server that remembers has `most_servers` from the moment on at which more
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
enum { FIFO, LIFO, SHARED, URGENT };
enum { RANDOM, IN_TURN, FEWEST };

typedef struct {
    int64_t servers, service, batch_size, order, queue_limit, threshold, most_servers, instances, routing;
    double mean, cv, each, delay, keep, cold_requests, cold_factor, slow_seconds, slow_factor, pause_every, pause,
        leak, burst, baseline, urgent, correlation;
} Rules;

typedef struct {
    double at;
    int64_t id;
} Waiting;

typedef struct { /* a ring */
    Waiting *items;
    int64_t head, waiting, room;
} Line;

typedef struct { /* a request among those that share the servers; it ends once each was given so much work */
    double ends;
    Waiting request;
} Share;

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
    Line line, urgent;
    Share *shares; /* a heap */
    int64_t sharing, room;
    double work, clock; /* so much each has been given that was there from the start, by then */
    double extra_until, served, since, saved, earned_at, level;
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
        double c = q->rules.correlation;
        q->level = c * q->level + sqrt(1 - c * c) * normal(&q->random);
        t *= exp(sqrt(v) * q->level - v / 2);
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

static Line *next_line(Queue *q) { return q->urgent.waiting ? &q->urgent : &q->line; }

static Waiting *nth(const Line *line, int64_t n) { return &line->items[(line->head + n) & (line->room - 1)]; }

static Waiting take(Queue *q) {
    Line *line = next_line(q);
    Waiting w = *nth(line, q->rules.order == LIFO ? line->waiting - 1 : 0);
    if (q->rules.order != LIFO) line->head = (line->head + 1) & (line->room - 1);
    line->waiting--;
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

/* The first to end goes. */
static void pop_share(Queue *q) {
    Share last = q->shares[--q->sharing];
    int64_t i = 0, child;
    while ((child = 2 * i + 1) < q->sharing) {
        if (child + 1 < q->sharing && q->shares[child + 1].ends < q->shares[child].ends) child++;
        if (q->shares[child].ends >= last.ends) break;
        q->shares[i] = q->shares[child];
        i = child;
    }
    q->shares[i] = last;
}

static void push_share(Queue *q, double ends, Waiting request) {
    if (q->sharing == q->room) q->shares = realloc(q->shares, (q->room *= 2) * sizeof *q->shares);
    int64_t i = q->sharing++;
    while (i > 0 && q->shares[(i - 1) / 2].ends > ends) {
        q->shares[i] = q->shares[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->shares[i] = (Share){ends, request};
}

/* Ends of those that share the servers, up to `until`. */
static void settle_shared(Queue *q, double until) {
    while (q->sharing) {
        double speed = fmin(1, (double)q->rules.servers / (double)q->sharing);
        double at = q->clock + (q->shares[0].ends - q->work) / speed;
        if (at > until) {
            q->work += (until - q->clock) * speed;
            break;
        }
        q->work = q->shares[0].ends;
        q->clock = at;
        Waiting done = q->shares[0].request;
        pop_share(q);
        answer(q, done, at);
    }
    if (until < INFINITY) q->clock = until;
}

/* Services that begin up to `until`. */
static void settle(Queue *q, double until) {
    if (q->rules.order == SHARED) {
        settle_shared(q, until);
        return;
    }
    int64_t size = q->rules.batch_size;
    while (q->line.waiting || q->urgent.waiting) {
        const Line *line = next_line(q);
        double at = line->waiting >= size ? nth(line, size - 1)->at : nth(line, 0)->at + q->rules.delay;
        if (q->frees[0] > at) at = q->frees[0];
        if (at > until) return;
        int64_t n = line->waiting < size ? line->waiting : size;
        double ends = end_of(q, at, service_time(q, at) + (double)n * q->rules.each);
        for (; n; n--) answer(q, take(q), ends);
        q->frees[0] = ends;
        sift_down(q->frees, q->count);
    }
}

static void push(Line *line, double at, int64_t id) {
    if (line->waiting == line->room) {
        Waiting *items = malloc(2 * line->room * sizeof *items);
        for (int64_t i = 0; i < line->waiting; i++) items[i] = *nth(line, i);
        free(line->items);
        *line = (Line){items, 0, line->waiting, 2 * line->room};
    }
    line->waiting++;
    *nth(line, line->waiting - 1) = (Waiting){at, id};
}

/* Whether it was accepted. */
static int offer(Queue *q, double at, int64_t id) {
    if (!q->is_open) {
        q->is_open = 1;
        q->since = q->earned_at = at;
        q->saved = q->rules.burst;
    }
    settle(q, at);
    if (q->rules.order == SHARED) {
        if (q->rules.queue_limit >= 0 && q->sharing >= q->rules.servers + q->rules.queue_limit) return 0;
        push_share(q, q->work + service_time(q, at), (Waiting){at, id});
        return 1;
    }
    if (q->count > q->rules.servers && at > q->extra_until) remove_free_servers(q, at);
    if (q->rules.queue_limit >= 0 && q->line.waiting + q->urgent.waiting >= q->rules.queue_limit && q->frees[0] > at)
        return 0;
    int is_urgent = q->rules.order == URGENT && uniform(&q->random) <= q->rules.urgent;
    push(is_urgent ? &q->urgent : &q->line, at, id);
    settle(q, at);
    if (q->rules.most_servers > q->rules.servers && q->line.waiting > q->rules.threshold) {
        while (q->count < q->rules.most_servers) add_server(q, at);
        q->extra_until = at + q->rules.keep;
        settle(q, at);
    }
    return 1;
}

static Line new_line(void) { return (Line){malloc(1024 * sizeof(Waiting)), 0, 0, 1024}; }

static void open_queue(Queue *q, const Rules *rules, uint64_t seed_) {
    q->rules = *rules;
    seed(&q->random, seed_);
    int64_t most = rules->most_servers > rules->servers ? rules->most_servers : rules->servers;
    q->frees = malloc(most * sizeof *q->frees);
    q->count = rules->servers;
    for (int64_t i = 0; i < q->count; i++) q->frees[i] = -INFINITY;
    q->line = new_line();
    q->urgent = new_line();
    q->room = 1024;
    q->shares = malloc(q->room * sizeof *q->shares);
    q->level = normal(&q->random);
}

typedef struct {
    Queue *queues;
    int64_t count, turn, routing;
    Random random;
} Fleet;

static int64_t inside(Queue *q, double at) {
    settle(q, at);
    int64_t n = q->line.waiting + q->urgent.waiting + q->sharing;
    for (int64_t i = 0; i < q->count; i++) n += q->frees[i] > at;
    return n;
}

static Queue *routed(Fleet *fleet, double at) {
    if (fleet->count == 1) return fleet->queues;
    if (fleet->routing == RANDOM)
        return &fleet->queues[(int64_t)(uniform(&fleet->random) * (double)fleet->count) % fleet->count];
    if (fleet->routing == IN_TURN) return &fleet->queues[fleet->turn++ % fleet->count];
    int64_t best = 0, fewest = INT64_MAX, first = fleet->turn++;
    for (int64_t i = 0; i < fleet->count; i++) { /* of equals not always the same */
        int64_t place = (first + i) % fleet->count, n = inside(&fleet->queues[place], at);
        if (n < fewest) {
            best = place;
            fewest = n;
        }
    }
    return &fleet->queues[best];
}

Fleet *queue_new(const Rules *rules, uint64_t seed_) {
    Fleet *fleet = calloc(1, sizeof *fleet);
    fleet->count = rules->instances;
    fleet->routing = rules->routing;
    fleet->queues = calloc(fleet->count, sizeof *fleet->queues);
    for (int64_t i = 0; i < fleet->count; i++) open_queue(&fleet->queues[i], rules, seed_ + 1000003 * (uint64_t)i);
    seed(&fleet->random, seed_ ^ 0x5bd1e995);
    return fleet;
}

void queue_free(Fleet *fleet) {
    for (int64_t i = 0; i < fleet->count; i++) {
        free(fleet->queues[i].frees);
        free(fleet->queues[i].line.items);
        free(fleet->queues[i].urgent.items);
        free(fleet->queues[i].shares);
    }
    free(fleet->queues);
    free(fleet);
}

/* What begins up to `until`, or ends where requests share the servers. */
void queue_settle(Fleet *fleet, double until, double *done) {
    for (int64_t i = 0; i < fleet->count; i++) {
        fleet->queues[i].done = done;
        settle(&fleet->queues[i], until);
    }
}

/* Arrivals first, first + 1, .. at the instants at[]; done[id] becomes the answer's instant, minus the arrival's where
 * it is refused, and stays as it was where it is not known yet. */
void queue_offer(Fleet *fleet, int64_t count, const double *at, int64_t first, double *done) {
    for (int64_t i = 0; i < fleet->count; i++) fleet->queues[i].done = done;
    for (int64_t i = 0; i < count; i++)
        if (!offer(routed(fleet, at[i]), at[i], first + i)) done[first + i] = -at[i];
}

/* Arrivals at `rate` for `windows` windows of `window_s`, after `warm_s` that are not counted: of each window what
 * arrived, was over `bound` and was refused. */
void queue_long(Fleet *fleet, uint64_t seed_, double rate, int64_t even, double warm_s, double window_s,
                int64_t windows, double bound, int64_t *of, int64_t *over, int64_t *refused) {
    Random arrivals;
    seed(&arrivals, seed_);
    for (int64_t i = 0; i < fleet->count; i++) {
        Queue *q = &fleet->queues[i];
        q->done = NULL;
        q->over = over;
        q->window_s = window_s;
        q->windows = windows;
        q->bound = bound;
    }
    double at = -warm_s, gap = 1 / rate;
    double end = window_s * (double)windows;
    for (;;) {
        at += even ? gap : gap * exponential(&arrivals);
        if (at >= end) break;
        int64_t window = at < 0 ? windows : (int64_t)(at / window_s);
        if (window < windows) of[window]++;
        if (!offer(routed(fleet, at), at, 0) && window < windows) refused[window]++;
    }
    queue_settle(fleet, INFINITY, NULL);
}
