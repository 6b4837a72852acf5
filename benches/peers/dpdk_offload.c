/* rte_gro and rte_gso, as contestants of the benchmark `beside`. The frames are those of the
 * benchmark's traffic.rs: TCP over IPv4 with 1448 bytes of payload and 12 of options.
 *
 *   dpdk_offload EAL-OPTIONS
 *
 * Says "ready" on standard output. Each line of standard input, "gro FLOWS" or "gso", is answered with
 * "NANOSECONDS OUT": the time for one packet or segment, and how many came out. Neither library
 * verifies or finishes a checksum. Ends at an empty line. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_gro.h>
#include <rte_gso.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>

enum { MSS = 1448, HEADERS = 14 + 20 + 32, PACKETS = 1024, BURST = 32, SEGMENTS = 45, TRAINS = 200 };
/* What a context has room for. */
enum { FLOWS = 64, ITEMS = 64 };

static struct rte_mempool *mbufs, *indirect;

static void build(struct rte_mbuf *m, unsigned flow, unsigned n)
{
    char *bytes = rte_pktmbuf_append(m, HEADERS + MSS);
    if (!bytes)
        rte_exit(1, "a frame does not fit its mbuf\n");
    struct rte_ether_hdr *ethernet = (void *)bytes;
    struct rte_ipv4_hdr *ip = (void *)(bytes + 14);
    struct rte_tcp_hdr *tcp = (void *)(bytes + 34);
    memset(bytes, 0, HEADERS);
    ethernet->dst_addr.addr_bytes[0] = ethernet->src_addr.addr_bytes[0] = 2;
    ethernet->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
    ip->version_ihl = 0x45;
    ip->total_length = rte_cpu_to_be_16(20 + 32 + MSS);
    ip->packet_id = rte_cpu_to_be_16(n);
    ip->fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
    ip->time_to_live = 64;
    ip->next_proto_id = IPPROTO_TCP;
    ip->src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 9, 0, 1));
    ip->dst_addr = rte_cpu_to_be_32(RTE_IPV4(10, 9, 0, 2));
    tcp->src_port = rte_cpu_to_be_16(40000 + flow);
    tcp->dst_port = rte_cpu_to_be_16(5000);
    tcp->sent_seq = rte_cpu_to_be_32(n * MSS);
    tcp->data_off = 8 << 4;
    tcp->tcp_flags = RTE_TCP_ACK_FLAG;
    memset(bytes + 54, 1, 12); /* NOPs */
    m->l2_len = 14;
    m->l3_len = 20;
    m->l4_len = 32;
    m->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_TCP;
}

static double ns(uint64_t ticks, unsigned objects)
{
    return ticks * 1e9 / rte_get_tsc_hz() / objects;
}

/* In context mode, which holds packets across bursts, with a flush at the end. */
static void gro(unsigned flows)
{
    static struct rte_mbuf *in[PACKETS], *out[2 * PACKETS];
    struct rte_gro_param param = {
        .gro_types = RTE_GRO_TCP_IPV4, .max_flow_num = FLOWS, .max_item_per_flow = ITEMS,
    };
    static void *context;
    if (!context && !(context = rte_gro_ctx_create(&param)))
        rte_exit(1, "no context\n");
    if (rte_pktmbuf_alloc_bulk(mbufs, in, PACKETS))
        rte_exit(1, "no mbufs\n");
    for (unsigned i = 0; i < PACKETS; i++)
        build(in[i], i % flows, i / flows);
    unsigned kept = 0;
    uint64_t began = rte_rdtsc_precise();
    for (unsigned i = 0; i < PACKETS; i += BURST) {
        unsigned passed = rte_gro_reassemble(in + i, BURST, context);
        memcpy(out + kept, in + i, passed * sizeof *out);
        kept += passed;
    }
    kept += rte_gro_timeout_flush(context, 0, RTE_GRO_TCP_IPV4, out + kept, PACKETS);
    uint64_t took = rte_rdtsc_precise() - began;
    rte_pktmbuf_free_bulk(out, kept);
    printf("%.3f %u\n", ns(took, PACKETS), kept);
}

/* A chain of mbufs, one a segment, cut into mbufs that point into it. */
static void gso(void)
{
    static struct rte_mbuf *train;
    struct rte_mbuf *out[2 * SEGMENTS];
    struct rte_gso_ctx context = {
        .direct_pool = mbufs, .indirect_pool = indirect,
        .gso_types = RTE_ETH_TX_OFFLOAD_TCP_TSO, .gso_size = HEADERS + MSS,
    };
    for (unsigned i = 0; !train || train->nb_segs < SEGMENTS; i++) {
        struct rte_mbuf *m = rte_pktmbuf_alloc(mbufs);
        if (!m)
            rte_exit(1, "no mbufs\n");
        build(m, 0, i);
        if (!train) {
            train = m;
        } else {
            rte_pktmbuf_adj(m, HEADERS);
            rte_pktmbuf_chain(train, m);
        }
    }
    rte_pktmbuf_mtod_offset(train, struct rte_ipv4_hdr *, 14)->total_length =
        rte_cpu_to_be_16(20 + 32 + SEGMENTS * MSS);
    int made = 0;
    uint64_t began = rte_rdtsc_precise();
    for (unsigned i = 0; i < TRAINS; i++) {
        /* The call takes the flags off. */
        train->ol_flags |= RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_IPV4;
        made = rte_gso_segment(train, &context, out, RTE_DIM(out));
        if (made <= 0)
            rte_exit(1, "rte_gso_segment: %d\n", made);
        rte_pktmbuf_free_bulk(out, made);
    }
    uint64_t took = rte_rdtsc_precise() - began;
    printf("%.3f %d\n", ns(took, TRAINS * made), made);
}

int main(int argc, char **argv)
{
    /* Initialisation spins until its control threads have run, which on the one CPU of a real-time
     * process they never do. */
    struct sched_param real_time, fair = { 0 };
    int policy = sched_getscheduler(0);
    sched_getparam(0, &real_time);
    sched_setscheduler(0, SCHED_OTHER, &fair);
    if (rte_eal_init(argc, argv) < 0)
        return 1;
    sched_setscheduler(0, policy, &real_time);
    mbufs = rte_pktmbuf_pool_create("mbufs", 4095, 256, 0, 2176, SOCKET_ID_ANY);
    indirect = rte_pktmbuf_pool_create("indirect", 4095, 256, 0, 0, SOCKET_ID_ANY);
    if (!mbufs || !indirect)
        rte_exit(1, "no pools\n");
    printf("ready\n");
    fflush(stdout);
    char line[64];
    unsigned flows;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "gro %u", &flows) == 1)
            gro(flows);
        else if (!strcmp(line, "gso\n"))
            gso();
        else
            break;
        fflush(stdout);
    }
    return 0;
}
