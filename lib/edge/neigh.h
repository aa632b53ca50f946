/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_NEIGH_H
#define UR_EDGE_NEIGH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edge/neigh_attr.h"
#include "wire/packet.h"

/*
 * The part of an IP stack that a kernel provides for its interfaces: ARP (RFC 826, 5227), IPv6
 * neighbour discovery (RFC 4861), answers to ping (RFC 792, 4443), and a table of neighbours. A port
 * that DPDK drives has no kernel for this.
 *
 * Pure: frames and time are arguments, frames to send wait in a bounded queue in the struct. Every
 * frame may be hostile: it gets a verdict, each verdict has a counter, and no frame makes the table
 * grow beyond its bound, moves a static entry, or replaces a neighbour that we have resolved.
 *
 * Thread class: one owner (worker 0); other threads read only what the comments allow.
 */

#define UR_NEIGH_ENTRIES_MAX 256
#define UR_NEIGH_GROUPS_MAX  256 /* multicast groups that are joined */
#define UR_NEIGH_QUEUE_BYTES 32768
#define UR_NEIGH_FRAME_MAX   9216 /* longer ping requests go unanswered */

#define UR_NEIGH_RETRY_NS     1000000000ull  /* between two queries */
#define UR_NEIGH_TRIES	      3		     /* queries before a neighbour is unreachable */
#define UR_NEIGH_REACHABLE_NS 30000000000ull /* how long an answer is valid without confirmation */
#define UR_NEIGH_FAILED_NS    3000000000ull  /* how long a failed neighbour is not queried again */

/*
 * The verdict on a frame; also the counters. X(name, text)
 * Only after OTHER may another consumer be interested in the frame.
 */
#define UR_NEIGH_VERDICTS(X)                                                                       \
	X(OTHER, "neither ARP, ND nor ping")                                                       \
	X(FOREIGN, "for another host, VLAN or address")                                            \
	X(MALFORMED, "truncated, or a wrong length, checksum or hop limit")                        \
	X(IGNORED, "well-formed, without effect")                                                  \
	X(CONFLICT, "another host uses our address")                                               \
	X(QUEUE_FULL, "answer dropped because the queue is full")                                  \
	X(ARP_REQUEST, "ARP request answered")                                                     \
	X(ARP_REPLY, "ARP reply learned")                                                          \
	X(ND_SOLICIT, "neighbour solicitation answered")                                           \
	X(ND_ADVERT, "neighbour advertisement learned")                                            \
	X(PING4, "ICMP echo answered")                                                             \
	X(PING6, "ICMPv6 echo answered")                                                           \
	X(MLD_QUERY, "MLD query, to be answered")                                                  \
	X(IGMP_QUERY, "IGMP query, to be answered")

enum ur_neigh_verdict {
#define X(name, text) UR_NEIGH_##name,
	UR_NEIGH_VERDICTS(X)
#undef X
		UR_NEIGH_VERDICT_CNT
};

/* Other counters of the table. X(name, unit, help): docs/design/counters.md */
#define UR_NEIGH_COUNTERS(X)                                                                       \
	X(queries, "packets", "ARP requests and neighbour solicitations sent")                     \
	X(learned, "entries", "entries created or changed by a received frame")                    \
	X(evicted, "entries", "entries replaced by a new one")                                     \
	X(no_room, "entries", "neighbours not learned because the table was full")                 \
	X(moved, "entries", "known MAC addresses that changed")

/* X(name, text): states of an entry, see ur_neigh_resolve(). */
#define UR_NEIGH_STATES(X)                                                                         \
	X(FREE, "free")                                                                            \
	X(STATIC, "static")	    /* by configuration; never changes */                          \
	X(INCOMPLETE, "incomplete") /* queried, no answer yet */                                   \
	X(REACHABLE, "reachable")   /* answered within UR_NEIGH_REACHABLE_NS */                    \
	X(STALE, "stale")	    /* known, and to be confirmed when used */                     \
	X(PROBE, "probe")	    /* being confirmed; usable meanwhile */                        \
	X(FAILED, "failed")	    /* did not answer; deleted after UR_NEIGH_FAILED_NS */

enum ur_neigh_state {
#define X(name, text) UR_NEIGH_STATE_##name,
	UR_NEIGH_STATES(X)
#undef X
};

struct ur_neigh_entry {
	struct ur_gid gid;
	uint8_t mac[6];
	uint8_t state;	  /* enum ur_neigh_state */
	uint8_t tries;	  /* queries sent: INCOMPLETE and PROBE */
	bool wanted;	  /* this endpoint resolves it: only another wanted entry may replace it */
	uint64_t due_ns;  /* end of the state, or the next query; UINT64_MAX: never */
	uint64_t used_ns; /* last resolved or updated */
};

struct ur_neigh_group {
	struct ur_gid gid;
	bool leaving; /* left, and to be reported as such once more */
};

/* Frames that wait to be sent: records of a 16-bit length and the frame, in [head, tail). */
struct ur_neigh_queue {
	uint32_t head, tail; /* free-running; their difference is at most UR_NEIGH_QUEUE_BYTES */
	uint8_t ring[UR_NEIGH_QUEUE_BYTES];
};

struct ur_neigh {
	struct ur_neigh_attr attr;
	struct ur_neigh_entry entry[UR_NEIGH_ENTRIES_MAX];
	unsigned entry_max;	     /* bound in use, at most UR_NEIGH_ENTRIES_MAX */
	uint64_t next_due_ns;	     /* at most the earliest due_ns */
	_Atomic uint32_t generation; /* changes whenever an entry's MAC address does; any thread */
	uint64_t cnt[UR_NEIGH_VERDICT_CNT];
#define X(name, unit, help) uint64_t name##_cnt;
	UR_NEIGH_COUNTERS(X)
#undef X
	uint64_t mld_due_ns; /* of the next MLD report; UINT64_MAX: none */
	uint8_t mld_repeats; /* reports of joining that are still to come */
	bool mld_v1;	     /* the query was MLDv1's */
	struct ur_neigh_group group[UR_NEIGH_GROUPS_MAX]; /* [0, group_cnt) */
	unsigned group_cnt;
	uint64_t igmp_due_ns;	    /* of the next IGMP report; UINT64_MAX: none */
	uint8_t igmp_repeats;	    /* reports of joining that are still to come */
	uint8_t igmp_old;	    /* 1 or 2: the version of the last querier, */
	uint64_t igmp_old_until_ns; /* for this long */
	struct ur_neigh_queue out;
};

/* "ARP_REQUEST"; "reachable". Never NULL for a valid value. */
const char *ur_neigh_verdict_name(unsigned verdict);
const char *ur_neigh_state_name(unsigned state);

/* The link-local IPv6 address of a MAC address (fe80::/64 and the modified EUI-64). */
struct ur_gid ur_neigh_link_local(const uint8_t mac[6]);

/* Initializes an empty table and an empty queue. *attr is copied. */
void ur_neigh_init(struct ur_neigh *n, const struct ur_neigh_attr *attr);

/*
 * Queues a gratuitous ARP request for each of our IPv4 addresses and an unsolicited advertisement
 * for each IPv6 one, so that neighbours update their entries. Call it once the link is up.
 */
void ur_neigh_announce(struct ur_neigh *n);

/*
 * Reports to switches that snoop MLD: queues a report of our solicited-node groups, repeats it within a
 * second, and answers queries from then on. Call it before ur_neigh_announce().
 */
void ur_mld_join(struct ur_neigh *n, uint64_t now_ns);

/*
 * MCAST-JOIN-01. Joins and leaves a multicast group, as a host does by IGMPv3 (RFC 3376) and MLDv2 (RFC 3810): switches that
 * snoop deliver its packets only to ports that have reported it. Each state change is reported twice, queries are answered
 * meanwhile, and IGMP in the version of an older querier. -EINVAL: not a group; -ENOSPC: UR_NEIGH_GROUPS_MAX are joined;
 * -EALREADY; leaving a group that is not joined has no effect.
 */
int ur_neigh_join_group(struct ur_neigh *n, const struct ur_gid *gid, uint64_t now_ns);
void ur_neigh_leave_group(struct ur_neigh *n, const struct ur_gid *gid, uint64_t now_ns);

/* Adds a static entry. -ENOSPC: the table is full of static ones; -EINVAL: not the MAC address of a
 * host. */
int ur_neigh_add_static(struct ur_neigh *n, const struct ur_gid *gid, const uint8_t mac[6],
			uint64_t now_ns);

/*
 * Handles the received frame [frame, frame + len), which it does not keep. Answers go to the queue.
 * Returns the verdict, which is counted. With has_vlan it accepts only frames with that VLAN id (any
 * priority); otherwise untagged frames and those with VLAN id 0.
 */
enum ur_neigh_verdict ur_neigh_input(struct ur_neigh *n, const uint8_t *frame, size_t len,
				     uint64_t now_ns);

/*
 * Moves the oldest queued frame to buf and returns its length; 0 if there is none. A frame longer
 * than `cap` is dropped (UR_NEIGH_FRAME_MAX always suffices).
 */
size_t ur_neigh_output(struct ur_neigh *n, uint8_t *buf, size_t cap);

/*
 * Returns the MAC address for packets to `dst`: by mapping for multicast and broadcast, our own
 * for our own addresses, the gateway's for destinations in no subnet of ours, else the neighbour's.
 *   0             mac is written
 *   -EAGAIN       not known yet; a query is queued or under way: call this again later
 *   -EHOSTUNREACH UR_NEIGH_TRIES queries got no answer
 *   -ENETUNREACH  no subnet of ours and no gateway, or no address of that family
 *   -ENOBUFS      the table is full of neighbours in use
 */
int ur_neigh_resolve(struct ur_neigh *n, const struct ur_gid *dst, uint8_t mac[6], uint64_t now_ns);

/*
 * The same from the table only, without a query: false if the MAC address is not known, or is mapped
 * and so never changes. Thread class: also other threads, while the owner pauses.
 */
bool ur_neigh_lookup(const struct ur_neigh *n, const struct ur_gid *dst, uint8_t mac[6]);

/* Repeats queries and ages entries that are due. Cheap if nothing is due. */
void ur_neigh_expire(struct ur_neigh *n, uint64_t now_ns);

/* When ur_neigh_expire() has something to do; UINT64_MAX for never. */
uint64_t ur_neigh_next_deadline(const struct ur_neigh *n);

#endif
