/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_CONFIG_KEYS_H
#define UR_EDGE_CONFIG_KEYS_H

#include <uroce/pacing_modes.h>

/*
 * Every key of a configuration file, once. The structs of config.h, the parser, the error texts
 * and `--help-config` are made from these lists.
 *
 *   K(SECTION, MEMBER, KEY, KIND, LO, HI, DEFAULT, DOC)
 *
 * KIND    C type in the struct         accepted text
 * U32     uint32_t                     a decimal number in [LO, HI]
 * PMTU    uint32_t, 0 is "auto"        auto or one of the five InfiniBand path MTUs
 * BOOL    bool                         yes or no
 * CHOICE  int, an index into the list  one of the words of LO
 * REAL    double                       a decimal number in [LO, HI]
 * SPRAY   uint32_t, UDP source ports   off (0), all (UR_CONFIG_SPRAY_ALL) or 2 to 16
 * LANES   struct ur_config_lanes       "vl:weight,vl:weight", a table of lanes in its order
 * BY_SL   uint8_t[16]                  16 decimal numbers in [LO, HI], that of SL 0 first
 * PERCENT double, 1.0 is 100 %         0 to 100 with decimals, "%" optional
 * TEXT    char[UR_CONFIG_TEXT]         LO says what is meant
 * CPUS    char[UR_CONFIG_TEXT]         CPU numbers, "2,4-6"; "" is "auto"
 * KEY64   uint64_t, 0 is "none"        a hexadecimal number that begins with 0x
 * MAC     uint8_t[6], zero is "auto"   six bytes in hex with colons, not a group address
 * NET4    struct ur_config_net         address/prefix length; len 0 is "none"
 * NET6    struct ur_config_net         the same for IPv6
 * IP4     struct ur_gid, zero is none  IPv4 address, kept IPv4-mapped
 * IP6     struct ur_gid, zero is none  IPv6 address
 * NEIGH   struct ur_config_neighbors   "ip=mac ip=mac"; the key may be repeated
 */

/* X(enumerator, word) */
#define UR_DRIVERS(X)                                                                              \
	X(AF_PACKET, "af_packet")                                                                  \
	X(AF_XDP, "af_xdp")                                                                        \
	X(MEMIF, "memif")                                                                          \
	X(TAP, "tap")                                                                              \
	X(RING, "ring")                                                                            \
	X(PCAP, "pcap")                                                                            \
	X(PCI, "pci")

#define UR_TRISTATES(X)                                                                            \
	X(AUTO, "auto")                                                                            \
	X(YES, "yes")                                                                              \
	X(NO, "no")

#define UR_MEMIF_ROLES(X)                                                                          \
	X(NONE, "none")                                                                            \
	X(SERVER, "server")                                                                        \
	X(CLIENT, "client")

#define UR_WORKER_MODES(X)                                                                         \
	X(AUTO, "auto")                                                                            \
	X(INLINE, "inline")                                                                        \
	X(DEDICATED, "dedicated")

#define UR_PROGRESS_WORDS(X)                                                                       \
	X(TICK, "tick")                                                                            \
	X(ADAPTIVE, "adaptive")

/* In the order of enum ur_vl_mode, vl/vl.h. */
#define UR_VL_MODE_WORDS(X)                                                                        \
	X(IBA, "iba")                                                                              \
	X(MEASURED, "measured")                                                                    \
	X(STRICT, "strict")

/* In the order of enum ur_emux_policy, sched/emux.h. */
#define UR_POLICY_WORDS(X)                                                                         \
	X(RR, "rr")                                                                                \
	X(WRR, "wrr")                                                                              \
	X(STRICT, "strict")

/* In the order of enum uroce_qp_mode, uroce/uroce.h. */
#define UR_TRANSPORT_MODES(X)                                                                      \
	X(AUTO, "auto")                                                                            \
	X(EXTENDED, "extended")                                                                    \
	X(REORDER, "reorder")                                                                      \
	X(GBN, "gbn")

/*
 * The congestion control algorithms, from their list: the choices, in the form that config_value.c
 * makes of the other lists, and the text for --help-config.
 */
#define UR_PACING_WORD(NAME, name, summary) "|" #name
#define UR_PACING_WORDS(X)		    UROCE_PACING_MODES(UR_PACING_WORD)
#define UR_PACING_HELP(NAME, name, summary) "\n#   " #name ": " summary

/* In the order of enum ur_adm_mode, admission/pool.h. */
#define UR_ADMISSION_WORDS(X)                                                                      \
	X(PLAIN, "plain")                                                                          \
	X(AB, "ab")                                                                                \
	X(INTELLIGENT, "intelligent")                                                              \
	X(PAPER, "paper")

/* Of a switch: what it does with requests that their receive pool would refuse. */
#define UR_FORWARDING_ADMISSIONS(X)                                                                \
	X(OFF, "off")                                                                              \
	X(HOLD, "hold")

#define UR_AVERAGES(X)                                                                             \
	X(MEAN, "mean")                                                                            \
	X(EWMA, "ewma")

#define UR_DELAYS(X)                                                                               \
	X(AUTO, "auto")                                                                            \
	X(ROUND_TRIP, "round_trip")

#define UR_CONFIG_KEYS_EAL(K)                                                                      \
	K(eal, lcores, "lcores", TEXT, "what DPDK takes after --lcores, or auto", 0, "auto",       \
	  "lcores of the process; auto: one for the caller and one for each dedicated "            \
	  "worker")                                                                                \
	K(eal, memory_mb, "memory_mb", U32, 32, 1048576, "256",                                    \
	  "memory for packets and rings, MiB")                                                     \
	K(eal, hugepages, "hugepages", CHOICE, UR_TRISTATES, 0, "auto",                            \
	  "auto: use hugepages when enough are free, otherwise run without")                       \
	K(eal, in_memory, "in_memory", BOOL, 0, 0, "yes",                                          \
	  "yes: leave no files behind; no: hugetlbfs must be mounted")                             \
	K(eal, file_prefix, "file_prefix", TEXT, "a word without '/', or auto", 0, "auto",         \
	  "name for dpdk-telemetry.py -f; auto: uroce-PID")                                        \
	K(eal, extra, "extra", TEXT, "EAL options separated by blanks", 0, "",                     \
	  "further EAL options, such as --log-level=8")

#define UR_CONFIG_KEYS_PORT(K)                                                                          \
	K(port, driver, "driver", CHOICE, UR_DRIVERS, 0, "af_packet",                                   \
	  "DPDK driver that carries the packets")                                                       \
	K(port, device, "device", TEXT,                                                                 \
	  "an interface, a PCI address, a memif socket, a ring name or IN.pcap,OUT.pcap", 0, "",        \
	  "the interface (af_packet, af_xdp, tap), PCI address (pci), socket path (memif), name "       \
	  "that both ends of a ring share, or IN.pcap,OUT.pcap (pcap)")                                 \
	K(port, dev, "dev", TEXT,                                                                       \
	  "the name of a kernel interface, uroced, uroced:PATH, or nothing", 0, "",                     \
	  "a kernel interface to share: the kernel's addresses, UDP port 4791 alone, its routes and "   \
	  "neighbours; replaces device and [address]. Without driver: af_xdp where it works, else "     \
	  "af_packet. uroced: a port leased from this daemon, at the socket PATH; uroced@ADDRESS asks " \
	  "for an address")                                                                             \
	K(port, args, "args", TEXT, "PMD arguments, key=value,key=value", 0, "",                        \
	  "further arguments for the DPDK driver")                                                      \
	K(port, mtu, "mtu", U32, 0, 9600, "0",                                                          \
	  "largest IP packet, in bytes; 0: the largest that interface and driver allow")                \
	K(port, role, "role", CHOICE, UR_MEMIF_ROLES, 0, "none",                                        \
	  "memif only: which end of the socket this is; start the server first")                        \
	K(port, zero_copy, "zero_copy", BOOL, 0, 0, "no",                                               \
	  "memif client only: receive without a copy; needs hugepages")                                 \
	K(port, evict, "evict", CHOICE, UR_TRISTATES, 0, "auto",                                        \
	  "with zero_copy: evict received frames from the cache after use. Faster if the CPU of "       \
	  "the other process is far away (another socket or cache), slower if it is near. auto: "       \
	  "measured when the port opens")                                                               \
	K(port, rx_desc, "rx_desc", U32, 0, 32768, "0", "RX descriptors; 0: the driver's choice")       \
	K(port, tx_desc, "tx_desc", U32, 0, 32768, "0", "TX descriptors; 0: the driver's choice")       \
	K(port, promiscuous, "promiscuous", BOOL, 0, 0, "no",                                           \
	  "receive packets for other MAC addresses as well")                                            \
	K(port, framesz, "framesz", U32, 0, 65536, "0",                                                 \
	  "size of one slot of a shared ring (af_packet, memif), in bytes; 0: derived "                 \
	  "from the MTU")                                                                               \
	K(port, framecnt, "framecnt", U32, 0, 32768, "0",                                               \
	  "slots of a shared ring (af_packet, memif, ring), a power of two; 0: a suitable default")     \
	K(port, mbufs, "mbufs", U32, 0, 1048576, "0",                                                   \
	  "packet buffers; 0: derived from the ring sizes")                                             \
	K(port, rate_gbps, "rate_gbps", REAL, 0, 1000, "0",                                             \
	  "emulate a slower link: the maximum rate of the port, in Gb/s on the wire (frames "           \
	  "with preamble, FCS and gap), divided evenly among the workers; 0: no limit")                 \
	K(port, credits, "credits", BOOL, 0, 0, "no",                                                   \
	  "link credits, if the other end of the link offers them too: a frame is sent only when "      \
	  "there is a buffer for it (docs/design/credits.md); needs [worker] count = 1")                \
	K(port, credit_life_ms, "credit_life_ms", U32, 1, 60000, "100",                                 \
	  "with credits: time after which a lane without credit is given up, in milliseconds: a "       \
	  "switch drops what waits in it, an endpoint sends without credit")

#define UR_CONFIG_KEYS_ADDRESS(K)                                                                  \
	K(address, mac, "mac", MAC, 0, 0, "auto", "auto: the interface's own address")             \
	K(address, ipv4, "ipv4", NET4, 0, 0, "none", "the endpoint's own IPv4 address")            \
	K(address, ipv6, "ipv6", NET6, 0, 0, "none", "the endpoint's own IPv6 address")            \
	K(address, link_local, "link_local", BOOL, 0, 0, "yes",                                    \
	  "also use the IPv6 link-local address that is derived from the MAC address")             \
	K(address, gateway4, "gateway4", IP4, 0, 0, "none", "next hop to other IPv4 networks")     \
	K(address, gateway6, "gateway6", IP6, 0, 0, "none", "next hop to other IPv6 networks")     \
	K(address, vlan, "vlan", U32, 0, 4094, "0", "802.1Q VLAN id; 0: untagged")                 \
	K(address, neighbors, "neighbor", NEIGH, 0, 0, "none",                                     \
	  "static neighbour entries; the key may be repeated")

#define UR_CONFIG_KEYS_WORKER(K)                                                                    \
	K(worker, mode, "mode", CHOICE, UR_WORKER_MODES, 0, "auto",                                 \
	  "inline: calls of the library do the work; dedicated: workers poll on cores "             \
	  "of their own; auto: dedicated when there are more than two CPUs")                        \
	K(worker, count, "count", U32, 1, 8, "1",                                                   \
	  "number of workers, a power of two; each uses one RX and one TX queue of the "            \
	  "port")                                                                                   \
	K(worker, lcores, "lcores", CPUS, 0, 0, "auto", "CPUs of the dedicated workers")            \
	K(worker, thread_safe, "thread_safe", BOOL, 0, 0, "yes",                                    \
	  "no: the application uses each object from one thread only, and no lock is "              \
	  "taken")                                                                                  \
	K(worker, gather, "gather", CHOICE, UR_TRISTATES, 0, "auto",                                \
	  "inline: posts to several queue pairs leave together, at the next poll or when "          \
	  "there are 32. auto: only posts within 4 us of each other, and none once "                \
	  "completion events are asked for. no: each post leaves at once")                          \
	K(worker, progress, "progress", CHOICE, UR_PROGRESS_WORDS, 0, "adaptive",                   \
	  "inline: how a thread of the library serves peers while the application makes no calls. " \
	  "adaptive: without a pause while packets come, on a CPU of its own if there is one; it "  \
	  "stands back while the application polls. tick: once in a millisecond")

#define UR_CONFIG_KEYS_TRANSPORT(K)                                                                \
	K(transport, path_mtu, "path_mtu", PMTU, 0, 0, "auto",                                     \
	  "payload of a full packet, in bytes; auto: the largest that fits the MTU")               \
	K(transport, mode, "mode", CHOICE, UR_TRANSPORT_MODES, 0, "auto",                          \
	  "how a reliable connection survives loss. extended: only lost packets are "              \
	  "sent again; both ends must be uroce and connect by CM. reorder: any peer; "             \
	  "early packets are kept. gbn: any peer; everything from a gap on is sent "               \
	  "again (go-back-N). auto: extended if the peer agrees, otherwise reorder")               \
	K(transport, strict, "strict", BOOL, 0, 0, "no",                                           \
	  "yes: the last packet of a WRITE is placed after all packets before it, for "            \
	  "applications that poll on the last byte instead of waiting for a completion; "          \
	  "needs a reorder slot for each message whose last packet arrives early")                 \
	K(transport, spray, "spray", SPRAY, 2, 16, "off",                                          \
	  "extended mode: number of UDP source ports over which a QP spreads its "                 \
	  "packets, to use all paths of a network with ECMP; a path that loses or "                \
	  "delays more packets is used less")                                                      \
	K(transport, repath, "repath", BOOL, 0, 0, "yes",                                          \
	  "yes: a timeout changes the UDP source port of a reliable QP that does not spray, to "   \
	  "leave a path with a dead link where ECMP hashes ports. no: a QP keeps its port")        \
	K(transport, plb, "plb", BOOL, 0, 0, "yes",                                                \
	  "yes: a reliable QP in extended mode whose round trips stay long changes its UDP "       \
	  "source port, to leave a congested path where ECMP hashes ports. no: only timeouts "     \
	  "do. With repath = no, nothing does")                                                    \
	K(transport, window, "window", U32, 1, 16384, "512",                                       \
	  "packets that a QP may have unacknowledged. extended mode: four times as many, 2048 at " \
	  "least, may follow a gap, of which both ends keep track; both ends have to set it")      \
	K(transport, loss_memory_mb, "loss_memory_mb", U32, 0, 16384, "64",                        \
	  "extended mode: most memory, in MiB per worker, for QPs with a gap, 2 KiB each "         \
	  "for most gaps. It is taken as it is needed. Once it is used up, less is known "         \
	  "of a gap and more is sent again: ooo_short, ooo_exhausted, rtx_short, "                 \
	  "rtx_exhausted")                                                                         \
	K(transport, spray_contexts, "spray_contexts", U32, 0, 65536, "64",                        \
	  "QPs per worker that may spray at the same time (2 KiB each); without a free "           \
	  "context, a QP uses one port")                                                           \
	K(transport, reorder_contexts, "reorder_contexts", U32, 0, 65536, "1024",                  \
	  "mode reorder: QPs per worker that may keep early packets at the same time")             \
	K(transport, reorder_slots, "reorder_slots", U32, 0, 65536, "1280",                        \
	  "mode reorder and strict placement: early packets that a worker keeps for all "          \
	  "its QPs, one path MTU each; a QP may use at most four times the number of "             \
	  "slots that are left free (1024 when it is alone); without a free slot, early "          \
	  "packets are dropped")                                                                   \
	K(transport, read_gaps, "read_gaps", U32, 0, 65536, "1024",                                \
	  "mode reorder: QPs per worker that may have gaps in READ responses at the "              \
	  "same time without requesting all responses again")                                      \
	K(transport, ack_coalesce, "ack_coalesce", U32, 1, 256, "16",                              \
	  "within a long message, request an ACK once per this many packets")                      \
	K(transport, max_qp, "max_qp", U32, 1, 65536, "1024", "queue pairs per worker")            \
	K(transport, max_cq, "max_cq", U32, 1, 65536, "1024", "completion queues")                 \
	K(transport, max_srq, "max_srq", U32, 1, 65536, "256", "shared receive queues")            \
	K(transport, max_mr, "max_mr", U32, 1, 65536, "1024", "memory regions")                    \
	K(transport, max_pd, "max_pd", U32, 1, 65536, "64", "protection domains")                  \
	K(transport, max_sge, "max_sge", U32, 1, 32, "16", "scatter/gather entries of a request")  \
	K(transport, max_inline, "max_inline", U32, 0, 1024, "256", "bytes of inline data")        \
	K(transport, max_rd_atomic, "max_rd_atomic", U32, 1, 64, "16",                             \
	  "READs and atomics a QP may have outstanding")                                           \
	K(transport, timeout, "timeout", U32, 0, 31, "14",                                         \
	  "local ACK timeout, 4.096 us * 2^n; 0: no timeout")                                      \
	K(transport, min_timeout, "min_timeout", U32, 0, 31, "0",                                  \
	  "least local ACK timeout, as timeout: a shorter one that an application sets is "        \
	  "raised to it. Lost packets are sent again as soon as without it")                       \
	K(transport, retry_cnt, "retry_cnt", U32, 0, 7, "7", "retries after a local ACK timeout")  \
	K(transport, rnr_retry, "rnr_retry", U32, 0, 7, "7",                                       \
	  "retries after an RNR NAK; 7: no limit")                                                 \
	K(transport, min_rnr_timer, "min_rnr_timer", U32, 0, 31, "12",                             \
	  "time that the peer has to wait after an RNR NAK of this end, as an InfiniBand "         \
	  "timer code; 12: 0.64 ms")

#define UR_CONFIG_KEYS_QOS(K)                                                                      \
	K(qos, traffic_class, "traffic_class", U32, 0, 255, "0",                                   \
	  "IPv4 TOS or IPv6 traffic class of sent packets: DSCP * 4 + ECN; a service "             \
	  "level with a DSCP of its own (sl_dscp, not 0) takes only the ECN bits from "            \
	  "here")                                                                                  \
	K(qos, vl_mode, "vl_mode", CHOICE, UR_VL_MODE_WORDS, 0, "iba",                             \
	  "how virtual lanes share the port. iba: weights in 64 bytes, at most "                   \
	  "vl_high_limit * 4096 bytes of the high table between two packets of the low "           \
	  "table; measured: weights in path MTUs, by the law in "                                  \
	  "docs/design/virtual-lanes.md; strict: the low table is served only while no "           \
	  "lane of the high table has a packet")                                                   \
	K(qos, vl_high, "vl_high", LANES, 0, 0, "none", "high-priority table of lanes")            \
	K(qos, vl_low, "vl_low", LANES, 0, 0,                                                      \
	  "0:64,1:64,2:64,3:64,4:64,5:64,6:64,7:64,8:64,9:64,10:64,11:64,12:64,13:64,14:64",       \
	  "low-priority table of lanes; a lane that is in neither table, or has weight "           \
	  "0, is not served")                                                                      \
	K(qos, vl_high_limit, "vl_high_limit", U32, 0, 255, "0",                                   \
	  "limit of high priority, in units of 4096 bytes; 0: one packet; 255: no limit "          \
	  "(mode iba)")                                                                            \
	K(qos, sl2vl, "sl2vl", BY_SL, 0, 15, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7",               \
	  "virtual lane of each service level; 15: the service level is not served")               \
	K(qos, sl_dscp, "sl_dscp", BY_SL, 0, 63, "0,8,16,24,32,40,48,56,2,10,18,26,34,42,50,58",   \
	  "DSCP of each service level, unless the application sets a traffic class; by "           \
	  "default SL n has class selector n, and SL n + 8 has that plus 2")                       \
	K(qos, sl_pcp, "sl_pcp", BY_SL, 0, 7, "0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7",                   \
	  "802.1Q priority of each service level, when packets are tagged ([address] "             \
	  "vlan)")                                                                                 \
	K(qos, policy, "policy", CHOICE, UR_POLICY_WORDS, 0, "rr",                                 \
	  "which queue pair of a lane is served next. rr: round robin; wrr: round robin "          \
	  "with turns in proportion to the weight; strict: highest priority first "                \
	  "(weight and priority are set by uroce_set_qp_share())")                                 \
	K(qos, turn_wqes, "turn_wqes", U32, 1, 65535, "8",                                         \
	  "work requests that a queue pair may begin in one turn")                                 \
	K(qos, turn_bytes, "turn_bytes", U32, 1, 16777216, "16384",                                \
	  "bytes of frames after which a turn ends")                                               \
	K(qos, sparse_first, "sparse_first", BOOL, 0, 0, "yes",                                    \
	  "policies rr and wrr: a queue pair that has little to send, less than its share, is "    \
	  "served before those with a backlog")

#define UR_CONFIG_KEYS_PACING(K)                                                                    \
	K(pacing, mode, "mode", CHOICE, UR_PACING_WORDS, 0, "none",                                 \
	  "congestion control of RC and UC QPs, by destination" UROCE_PACING_MODES(                 \
		  UR_PACING_HELP))                                                                  \
	K(pacing, average, "average", CHOICE, UR_AVERAGES, 0, "mean",                               \
	  "cmdpd: the average delay is the plain mean of all delays, or an exponentially weighted " \
	  "moving average")                                                                         \
	K(pacing, delay, "delay", CHOICE, UR_DELAYS, 0, "auto",                                     \
	  "which delay counts. auto: the time in queues on the way there, where switches on the "   \
	  "path stamp it and the peer understands it, in extended mode; elsewhere the round trip. " \
	  "round_trip: always the round trip")                                                      \
	K(pacing, init0, "init0", U32, 1, 254, "8",                                                 \
	  "cmdpd: throttling ends when a delay is less than this many times the average")           \
	K(pacing, init1, "init1", U32, 2, 255, "16",                                                \
	  "cmdpd: throttling begins when a delay is more than this many times the average; must "   \
	  "exceed init0")                                                                           \
	K(pacing, target_us, "target_us", U32, 1, 100000, "100",                                    \
	  "swift: the base target delay, in microseconds: the round trip of the idle network plus " \
	  "the queueing delay that is wanted; the same at all senders. Up to 125 us are added "     \
	  "for small windows")                                                                      \
	K(pacing, link_gbps, "link_gbps", REAL, 0, 1000, "0",                                       \
	  "algorithms with rates: the speed of the port, in Gb/s, where they start; 0: [port] "     \
	  "rate_gbps, or 100 if that is 0")                                                         \
	K(pacing, destinations, "destinations", U32, 1, 65536, "256",                               \
	  "destinations that a worker can pace at the same time; further ones are not paced, and "  \
	  "counted")

#define UR_CONFIG_KEYS_ADMISSION(K)                                                                \
	K(admission, mode, "mode", CHOICE, UR_ADMISSION_WORDS, 0, "plain",                         \
	  "order in which peers that overrun an SRQ get its receives; in extended mode, if "       \
	  "neither end is plain. plain: first come, first served; ab: the oldest refused "         \
	  "requests first; intelligent: the same, and peers hold back messages that would be "     \
	  "refused until a receive is granted; paper: the same without grants")                    \
	K(admission, fallback_ms, "fallback_ms", U32, 1, 655, "20",                                \
	  "intelligent, paper: interval between the probes of a sender that holds a refused "      \
	  "request back, in milliseconds")                                                         \
	K(admission, recall_us, "recall_us", U32, 10, 1000000, "2000",                             \
	  "intelligent: time after which an unused grant is void and its receive goes to the "     \
	  "next refused request, in microseconds; should be a few round trips")                    \
	K(admission, mark_ms, "mark_ms", U32, 10, 60000, "1000",                                   \
	  "time of silence of its sender after which a refused request loses its place, in "       \
	  "milliseconds; should exceed four times the longer of fallback_ms and the RNR timer")    \
	K(admission, peers, "peers", U32, 0, 65536, "1024",                                        \
	  "peers per worker that are notified of the status of SRQs, and peers' SRQs whose "       \
	  "status is kept; further ones depend on the status in ACKs, and count as "               \
	  "adm_exhausted; 0: all do")

#define UR_CONFIG_KEYS_CAPTURE(K)                                                                  \
	K(capture, file, "file", TEXT, "a file name, empty for no capture", 0, "",                 \
	  "pcap file of what the port sends and receives")                                         \
	K(capture, filter, "filter", TEXT, "a pcap filter expression", 0, "",                      \
	  "which packets to capture, such as: udp port 4791")                                      \
	K(capture, snaplen, "snaplen", U32, 64, 65535, "65535", "bytes kept of each packet")       \
	K(capture, max_mb, "max_mb", U32, 1, 1048576, "1024",                                      \
	  "size at which the capture stops, in MiB")                                               \
	K(capture, ring, "ring", U32, 64, 1048576, "4096",                                         \
	  "packets that may wait to be written, a power of two")

#define UR_CONFIG_KEYS_IMPAIR(K)                                                                   \
	K(impair, seed, "seed", U32, 0, 4294967295, "1",                                           \
	  "seed of all random choices; the same seed repeats them")

#define UR_CONFIG_KEYS_MANAGEMENT(K)                                                                \
	K(management, agent, "agent", BOOL, 0, 0, "yes",                                            \
	  "answer management datagrams for QP0 and QP1 (docs/design/management.md)")                \
	K(management, m_key, "m_key", KEY64, 0, 0, "none",                                          \
	  "M_Key: needed to write what is managed")                                                 \
	K(management, protect, "protect", U32, 0, 3, "1",                                           \
	  "M_KeyProtectBits: 0: the M_Key can be read, 1: it cannot, 2 and 3: nothing can be read " \
	  "without it")                                                                             \
	K(management, lease_s, "lease_s", U32, 0, 65535, "0",                                       \
	  "M_KeyLeasePeriod: time after a request with a wrong M_Key, without one with the right "  \
	  "M_Key, after which protect becomes 0, in seconds; 0: never")                             \
	K(management, open, "open", BOOL, 0, 0, "no",                                               \
	  "without an M_Key: registers and the E2PROM can be written by any manager")               \
	K(management, ask_neighbours, "ask_neighbours", BOOL, 0, 0, "no",                           \
	  "ask the node at the other end of a link that comes up for its GUID and port")            \
	K(management, eeprom, "eeprom", TEXT, "a file name, or nothing", 0, "",                     \
	  "file of the E2PROM, which has the registers' values at the start; none: the endpoint "   \
	  "has no E2PROM")                                                                          \
	K(management, description, "description", TEXT, "a text of up to 64 bytes", 0, "",          \
	  "NodeDescription; none: uroce and the name of the host")

#define UR_CONFIG_KEYS_FORWARDING(K)                                                               \
	K(forwarding, ports, "ports", TEXT, "port descriptions separated by blanks", 0, "",        \
	  "uroce-switch: its ports, each as after --port; those of --port follow them")            \
	K(forwarding, macs, "macs", U32, 64, 1048576, "8192", "addresses that can be learned")     \
	K(forwarding, age_s, "age_s", U32, 1, 1000000, "300",                                      \
	  "time of silence after which a learned address is forgotten, in seconds")                \
	K(forwarding, frames, "frames", U32, 64, 65536, "2048",                                    \
	  "frames of one port that may wait in all queues together; half as many in one lane")     \
	K(forwarding, lane_kb, "lane_kb", U32, 16, 65536, "256",                                   \
	  "length of the queue of a data lane at a port, in KiB")                                  \
	K(forwarding, vl15_kb, "vl15_kb", U32, 1, 65536, "64",                                     \
	  "length of the queue of VL15 (management) at a port, in KiB")                            \
	K(forwarding, ecn_min_kb, "ecn_min_kb", U32, 0, 65536, "0",                                \
	  "length of a lane's queue from which on frames may be marked CE, in KiB")                \
	K(forwarding, ecn_max_kb, "ecn_max_kb", U32, 0, 65536, "0",                                \
	  "length from which on every ECN-capable frame is marked, in KiB; 0: none are marked")    \
	K(forwarding, ecn_percent, "ecn_percent", PERCENT, 0, 0, "10",                             \
	  "chance of a mark just below ecn_max_kb; it grows from 0 at ecn_min_kb")                 \
	K(forwarding, flood_pps, "flood_pps", U32, 0, 100000000, "100000",                         \
	  "frames of one port to unknown, multicast and broadcast addresses that are forwarded "   \
	  "in a second; 0: no limit")                                                              \
	K(forwarding, mgmt_pps, "mgmt_pps", U32, 0, 100000000, "50000",                            \
	  "management packets of one port that are accepted in a second; 0: no limit")             \
	K(forwarding, admission, "admission", CHOICE, UR_FORWARDING_ADMISSIONS, 0, "off",          \
	  "hold: requests that their receive pool would refuse wait here for half a millisecond "  \
	  "at most (docs/design/admission.md)")                                                    \
	K(forwarding, routes, "routes", TEXT, "ADDRESS=LID or ADDRESS=LID/LMC, blanks between", 0, \
	  "",                                                                                      \
	  "LIDs of IP addresses: RoCEv2 to these is forwarded by LID; with an LMC, the UDP "       \
	  "source port chooses among 2^LMC LIDs")                                                  \
	K(forwarding, lids, "lids", TEXT, "LID=PORT, blanks between; ports count from 1", 0, "",   \
	  "ports of LIDs: the linear forwarding table")

/* One direction; M(field) is the struct member, P the key's prefix. */
#define UR_CONFIG_KEYS_IMPAIR_DIR(K, M, P)                                                         \
	K(impair, M(loss), P "loss", PERCENT, 0, 0, "0", "packets dropped outside of bursts")      \
	K(impair, M(burst), P "burst", PERCENT, 0, 0, "0",                                         \
	  "packets that begin a burst of loss (Gilbert-Elliott model); 0: no bursts")              \
	K(impair, M(burst_packets), P "burst_packets", U32, 1, 1000000, "8",                       \
	  "mean length of a burst, in packets")                                                    \
	K(impair, M(burst_loss), P "burst_loss", PERCENT, 0, 0, "100",                             \
	  "packets dropped within a burst")                                                        \
	K(impair, M(duplicate), P "duplicate", PERCENT, 0, 0, "0", "packets duplicated")           \
	K(impair, M(reorder), P "reorder", PERCENT, 0, 0, "0", "packets held back")                \
	K(impair, M(corrupt), P "corrupt", PERCENT, 0, 0, "0", "packets with one bit flipped")     \
	K(impair, M(ecn), P "ecn", PERCENT, 0, 0, "0",                                             \
	  "packets marked CE (congestion experienced)")                                            \
	K(impair, M(reorder_packets), P "reorder_packets", U32, 1, 1024, "3",                      \
	  "a packet that is held back is released after this many later packets ...")              \
	K(impair, M(reorder_us), P "reorder_us", U32, 1, 1000000, "1000",                          \
	  "... or after this many microseconds, whichever comes first")                            \
	K(impair, M(delay_us), P "delay_us", U32, 0, 1000000, "0",                                 \
	  "delay of every packet, in microseconds")                                                \
	K(impair, M(jitter_us), P "jitter_us", U32, 0, 1000000, "0",                               \
	  "additional random delay in [0, jitter_us), in microseconds; the order of "              \
	  "packets is kept")                                                                       \
	K(impair, M(rate_gbps), P "rate_gbps", REAL, 0, 1000, "0",                                 \
	  "emulate a slower link behind a FIFO queue, in Gb/s on the wire as in [port] "           \
	  "rate_gbps, divided evenly among the workers; 0: no such link")                          \
	K(impair, M(queue_kb), P "queue_kb", U32, 16, 16384, "1024",                               \
	  "length of that queue, in KiB, but at most 4096 packets; packets that find it "          \
	  "full are dropped")                                                                      \
	K(impair, M(ecn_kb), P "ecn_kb", U32, 0, 16384, "0",                                       \
	  "queue depth above which packets are marked CE, in KiB; 0: none are marked")

#endif
