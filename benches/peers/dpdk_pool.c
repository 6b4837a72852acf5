/* DPDK's pools, as contestants of the benchmark `going_home`: mempools with a small and a large
 * cache per core, and a pool of pktmbufs. The work is that of the benchmark's work.rs, to the byte:
 * change both or none.
 *
 *   dpdk_pool EAL-OPTIONS      with two lcores; the first one works, and reads the requests
 *
 * Says on standard output which pool does which work, then "ready PAGES". Each line of standard
 * input, "POOL WORK OBJECTS", is answered with "NANOSECONDS CHECKSUM". Between requests both lcores
 * sleep. Ends at an empty line, or when a pool is not full again after a round. */
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

enum { BURST = 32, UNDER_WAY = 1024, OBJECTS = 8191, HEAD = 2048, PATIENCE = 1 << 26 };
enum { INTERFACE = 7, PROTOCOL = 0x0800 };
enum work { SAME_1, SAME_32, SAME_INIT, PIPE, PIPE_128, PIPE_256, PAIRWISE, WORKS };

static const char *const work_names[WORKS] = {
    "same-1", "same-32", "same-init", "pipe", "pipe-128", "pipe-256+128", "pairwise",
};

struct pool {
    const char *name;
    struct rte_mempool *objects;
    bool mbufs;
    unsigned works; /* a bit for each */
};

/* What the second lcore is asked to do. */
struct job {
    const struct pool *pool;
    enum work work;
    uint64_t objects, sum;
    /* Both start awake: a wake-up costs more than many objects. */
    volatile bool ready, open;
};

static struct rte_ring *there, *back;

/* Takes a burst; 0 if it could. The memory of pktmbufs comes initialised, as DPDK does it. */
static inline int take(const struct pool *pool, void **burst)
{
    if (pool->mbufs)
        return rte_pktmbuf_alloc_bulk(pool->objects, (struct rte_mbuf **)burst, BURST);
    return rte_mempool_get_bulk(pool->objects, burst, BURST);
}

static inline void give(const struct pool *pool, void **burst)
{
    if (pool->mbufs)
        rte_pktmbuf_free_bulk((struct rte_mbuf **)burst, BURST);
    else
        rte_mempool_put_bulk(pool->objects, burst, BURST);
}

/* Six words in the two lines of an mbuf. Allocation has reset the other fields; the dynamic ones,
 * which make up most of the second line, are zeroed here. Further metadata lines stand in the
 * headroom. */
static inline void put(struct rte_mbuf *m, int shell, int head, uint64_t seq)
{
    uint64_t time = seq + 1;
    memset(m->dynfield1, 0, sizeof m->dynfield1);
    m->pkt_len = m->data_len = head * 64;
    m->hash.rss = seq;
    m->port = INTERFACE;
    m->tx_offload = PROTOCOL;
    memcpy(&m->dynfield1[1], &seq, 8);
    memcpy(&m->dynfield1[3], &time, 8);
    if (shell == 4) {
        uint64_t *more = m->buf_addr;
        for (int i = 0; i < 16; i++)
            more[i] = seq;
    }
    uint64_t *data = rte_pktmbuf_mtod(m, uint64_t *);
    for (int i = 0; i < head * 8; i++)
        data[i] = seq;
}

static inline uint64_t sum(const struct rte_mbuf *m, int shell, int head)
{
    uint64_t seq, time;
    memcpy(&seq, &m->dynfield1[1], 8);
    memcpy(&time, &m->dynfield1[3], 8);
    uint64_t all = seq + time + m->pkt_len + m->hash.rss + m->port + m->tx_offload;
    if (shell == 4) {
        const uint64_t *more = m->buf_addr;
        for (int i = 0; i < 16; i++)
            all += more[i];
    }
    const uint64_t *data = rte_pktmbuf_mtod(m, const uint64_t *);
    for (int i = 0; i < head * 8; i++)
        all += data[i];
    return all;
}

static uint64_t same_1(const struct pool *pool, uint64_t objects)
{
    void *burst[BURST];
    uint64_t freed = 0;
    while (freed < objects) {
        for (int i = 0; i < BURST; i++)
            if (rte_mempool_get(pool->objects, &burst[i]))
                rte_exit(1, "%s is empty\n", pool->name);
        __asm__ volatile("" ::: "memory");
        for (int i = 0; i < BURST; i++, freed++)
            rte_mempool_put(pool->objects, burst[i]);
    }
    return freed;
}

static __rte_always_inline uint64_t in_bursts(const struct pool *pool, uint64_t objects, int shell,
                                              int head)
{
    void *burst[BURST];
    uint64_t all = 0;
    for (uint64_t round = 0; round < objects / BURST; round++) {
        if (take(pool, burst))
            rte_exit(1, "%s is empty\n", pool->name);
        for (int i = 0; shell && i < BURST; i++)
            put(burst[i], shell, head, round * BURST + i);
        __asm__ volatile("" ::: "memory");
        all += shell ? sum(burst[0], shell, head) : BURST;
        give(pool, burst);
    }
    return all;
}

static __rte_always_inline void send(const struct pool *pool, uint64_t objects, int shell, int head)
{
    void *burst[BURST];
    for (uint64_t round = 0; round < objects / BURST; round++) {
        for (uint64_t tries = 0; take(pool, burst); tries++)
            if (tries > PATIENCE)
                rte_exit(1, "%s stays empty\n", pool->name);
        for (int i = 0; shell && i < BURST; i++)
            put(burst[i], shell, head, round * BURST + i);
        while (!rte_ring_sp_enqueue_bulk(there, burst, BURST, NULL))
            ;
    }
}

static __rte_always_inline uint64_t receive(const struct pool *pool, uint64_t objects, int shell,
                                            int head)
{
    void *burst[BURST];
    uint64_t all = 0;
    for (uint64_t left = objects / BURST; left;) {
        if (!rte_ring_sc_dequeue_bulk(there, burst, BURST, NULL))
            continue;
        for (int i = 0; shell && i < BURST; i++)
            all += sum(burst[i], shell, head);
        all += shell ? 0 : BURST;
        give(pool, burst);
        left--;
    }
    return all;
}

static uint64_t exchange(const struct pool *pool, uint64_t objects, struct rte_ring *out,
                         struct rte_ring *in)
{
    void *burst[BURST], *came[BURST];
    uint64_t sent = 0, received = 0, bursts = objects / BURST;
    bool have = false;
    while (sent < bursts || received < bursts) {
        if (sent < bursts) {
            have = have || !take(pool, burst);
            if (have && rte_ring_sp_enqueue_bulk(out, burst, BURST, NULL)) {
                have = false;
                sent++;
            }
        }
        if (rte_ring_sc_dequeue_bulk(in, came, BURST, NULL)) {
            give(pool, came);
            received++;
        }
    }
    return received * BURST;
}

/* As the other contestants: before everybody else, where that is permitted. Not before the EAL has
 * started, which spins until threads on the same CPU have run. */
static void run_first(void)
{
    struct sched_param param = { .sched_priority = 10 };
    (void)sched_setscheduler(0, SCHED_FIFO, &param);
}

static int second(void *arg)
{
    struct job *job = arg;
    run_first();
    job->ready = true;
    while (!job->open)
        ;
    switch (job->work) {
    case PIPE_128: job->sum = receive(job->pool, job->objects, 2, 0); break;
    case PIPE_256: job->sum = receive(job->pool, job->objects, 4, 2); break;
    case PAIRWISE: job->sum = exchange(job->pool, job->objects, back, there); break;
    default: job->sum = receive(job->pool, job->objects, 0, 0);
    }
    return 0;
}

/* Both lcores; returns ticks. */
static uint64_t across(struct job *job, unsigned lcore)
{
    rte_eal_remote_launch(second, job, lcore);
    while (!job->ready)
        ;
    uint64_t began = rte_rdtsc_precise();
    job->open = true;
    switch (job->work) {
    case PIPE_128: send(job->pool, job->objects, 2, 0); break;
    case PIPE_256: send(job->pool, job->objects, 4, 2); break;
    case PAIRWISE: exchange(job->pool, job->objects, there, back); break;
    default: send(job->pool, job->objects, 0, 0);
    }
    rte_eal_wait_lcore(lcore);
    return rte_rdtsc_precise() - began;
}

static uint64_t alone(struct job *job)
{
    uint64_t began = rte_rdtsc_precise();
    switch (job->work) {
    case SAME_1: job->sum = same_1(job->pool, job->objects); break;
    case SAME_32: job->sum = in_bursts(job->pool, job->objects, 0, 0); break;
    default: job->sum = in_bursts(job->pool, job->objects, 2, 1);
    }
    return rte_rdtsc_precise() - began;
}

static struct rte_mempool *mempool(const char *name, unsigned cache)
{
    return rte_mempool_create(name, OBJECTS, sizeof(struct rte_mbuf) + HEAD, cache, 0, NULL, NULL,
                              NULL, NULL, SOCKET_ID_ANY, 0);
}

int main(int argc, char **argv)
{
    if (rte_eal_init(argc, argv) < 0)
        return 1;
    unsigned handles = 1 << SAME_1 | 1 << SAME_32 | 1 << PIPE | 1 << PAIRWISE;
    struct pool pools[] = {
        { "mempool-32", mempool("mempool-32", 32), false, handles },
        { "mempool-512", mempool("mempool-512", 512), false, handles },
        { "pktmbuf-512",
          rte_pktmbuf_pool_create("pktmbuf-512", OBJECTS, 512, 0, RTE_PKTMBUF_HEADROOM + HEAD,
                                  SOCKET_ID_ANY),
          true, 1 << SAME_INIT | 1 << PIPE | 1 << PIPE_128 | 1 << PIPE_256 | 1 << PAIRWISE },
    };
    unsigned lcore = rte_get_next_lcore(-1, 1, 0);
    there = rte_ring_create("there", UNDER_WAY, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    back = rte_ring_create("back", UNDER_WAY, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!there || !back || lcore >= RTE_MAX_LCORE)
        rte_exit(1, "rings and two lcores: %s\n", rte_strerror(rte_errno));
    for (unsigned p = 0; p < RTE_DIM(pools); p++) {
        if (!pools[p].objects)
            rte_exit(1, "%s: %s\n", pools[p].name, rte_strerror(rte_errno));
        printf("%s", pools[p].name);
        for (unsigned w = 0; w < WORKS; w++)
            if (pools[p].works & 1 << w)
                printf(" %s", work_names[w]);
        printf("\n");
    }
    printf("ready %s\n", rte_eal_has_hugepages() ? "huge-pages" : "small-pages");
    fflush(stdout);

    run_first();
    char line[128], name[32], asked[32];
    struct job job;
    while (fgets(line, sizeof line, stdin)) {
        memset(&job, 0, sizeof job);
        if (sscanf(line, "%31s %31s %" SCNu64, name, asked, &job.objects) != 3)
            break;
        job.work = WORKS;
        for (unsigned p = 0; p < RTE_DIM(pools); p++)
            if (!strcmp(pools[p].name, name))
                job.pool = &pools[p];
        for (unsigned w = 0; w < WORKS; w++)
            if (!strcmp(work_names[w], asked))
                job.work = w;
        if (!job.pool || job.work == WORKS)
            rte_exit(1, "no such pool or work: %s", line);
        uint64_t ticks = job.work < PIPE ? alone(&job) : across(&job, lcore);
        if (!rte_mempool_full(job.pool->objects))
            rte_exit(1, "%s lost %u objects\n", name, rte_mempool_in_use_count(job.pool->objects));
        printf("%.0f %" PRIu64 "\n", ticks * 1e9 / rte_get_tsc_hz(), job.sum);
        fflush(stdout);
    }
    return 0;
}
