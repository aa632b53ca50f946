/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_CREDIT_H
#define UR_WIRE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Credits of a link, at one of its ends (docs/design/credits.md): one credit is one buffer for one frame of a
 * lane. Counters are absolute, as in IBA 7.9.4, so a message that is lost is healed by the next one.
 *
 * What this end sends, frame by frame, in the order in which they go to the link:
 *
 *	if (ur_credit_left(c, vl) > 0)
 *		...hand the frame over, then ur_credit_sent(c, vl)
 *
 * What it receives, in the order of arrival:
 *
 *	if (ur_credit_is_message(frame, len))
 *		ur_credit_input(c, frame, len, now)
 *	else
 *		vl = ur_credit_lane_of(&c->peer_map, frame, len), then ur_credit_received(c, vl)
 *		to keep it:	if ur_credit_has_room(c, vl): ur_credit_hold(c, vl), later ur_credit_free(c, vl)
 *
 * And, as ur_credit_is_due(c, now) says, ur_credit_output() makes a message, to be sent behind what has been
 * counted as sent and ahead of everything else.
 *
 * Pure. Time is in nanoseconds and does not go back. The struct belongs to the caller. Thread class: one thread.
 */
#define UR_CREDIT_LANES	 15	    /* data lanes */
#define UR_CREDIT_NONE	 15	    /* the lane of a frame that is not counted */
#define UR_CREDIT_BYTES	 186	    /* of a message, from the Ethernet header on */
#define UR_CREDIT_MIN	 16	    /* buffers: least for a lane */
#define UR_CREDIT_HELLO	 100000000  /* between messages without another reason, in ns */
#define UR_CREDIT_DEAD	 1000000000 /* silence after which the other end is taken to be gone */
#define UR_CREDIT_ASK	 200000	    /* between messages that ask */
#define UR_CREDIT_ANSWER 100000	    /* between answers */

/* By which lane a port sends: [0, UR_CREDIT_LANES), UR_CREDIT_NONE: no service. */
struct ur_credit_map {
	uint8_t of_dscp[64]; /* of IP packets */
	uint8_t of_pcp[8];   /* of others, by 802.1Q priority; untagged: [0] */
};

struct ur_credit_attr {
	struct ur_credit_map map; /* of what this end sends */
	uint32_t buffers;	  /* frames that this end can hold; at least UR_CREDIT_MIN */
	uint32_t session;	  /* random */
	uint64_t life_ns;	  /* without credit, after which a lane is stalled */
	uint32_t
		spare; /* credits of a lane that its owner keeps for more urgent frames: closed without more */
};

/* X(name, help) */
#define UR_CREDIT_COUNTERS(X)                                                                      \
	X(credit_messages_sent, "messages about link credits sent")                                \
	X(credit_messages_received, "messages about link credits received")                        \
	X(credit_messages_invalid, "messages about link credits that are malformed")               \
	X(credit_sessions, "times that the other end of the link has begun to give credits")       \
	X(credit_overruns, "frames received without a credit")                                     \
	X(credit_silences,                                                                         \
	  "times that nothing was heard from the other end of the link for a second")              \
	X(credit_wait_ns, "time during which lanes with frames waited for credit")                 \
	X(credit_stalls, "times that a lane had no credit for longer than credit_life_ms")

struct ur_credit_counters {
#define X(name, help) uint64_t name;
	UR_CREDIT_COUNTERS(X)
#undef X
};

/* What is sent in a lane: [sent, limit) may still be. */
struct ur_credit_tx {
	uint32_t sent, limit; /* mod 2^32 */
	uint64_t since_ns;    /* of a lane in `waiting`: since when */
};

/* What is received in a lane. */
struct ur_credit_rx {
	uint32_t received; /* as the other end counts: mod 2^32 */
	uint32_t told;	   /* limit, as last told */
	uint32_t
		held; /* frames in buffers, [0, ...]: may exceed `buffers` after these have become fewer */
	uint32_t buffers;
};

struct ur_credit {
	uint32_t session, peer; /* numbers; peer 0: none known */
	bool on;		/* the other end has named our session: limits hold */
	bool answer, update;	/* why a message is due */
	uint16_t closed;	/* bit v: lane v has no credit but the spare ones */
	uint16_t waiting;	/* of these, lanes that have frames */
	uint16_t stalled;	/* of these, lanes that had none for life_ns */
	int32_t spare;
	uint64_t life_ns;
	uint64_t heard_ns, told_ns; /* time of the last message in, out */
	uint64_t answered_ns;	    /* time of the last answer */
	uint64_t next_ns;	    /* when a message is due without another reason */
	uint32_t buffers, quantum;  /* of all lanes; buffers that become free between messages */
	uint32_t held;		    /* in all lanes */
	struct ur_credit_map map, peer_map;
	struct ur_credit_tx tx[UR_CREDIT_LANES];
	struct ur_credit_rx rx[UR_CREDIT_LANES];
	struct ur_credit_counters cnt;
};

/* NULL if the attributes are valid, else a phrase that says what is wrong (a constant). */
const char *ur_credit_attr_check(const struct ur_credit_attr *a);

/* `a` has passed the check. The first message is due at once. */
void ur_credit_init(struct ur_credit *c, const struct ur_credit_attr *a);

/* The link went down, or the map changes (NULL: it does not): a new session. Frames that are held stay so. */
void ur_credit_restart(struct ur_credit *c, const struct ur_credit_map *map);

/* The lane of service level `sl` is lane_of_sl[sl]; DSCPs of no SL belong to SL DSCP / 8, as at a switch. */
void ur_credit_map_make(struct ur_credit_map *m, const uint8_t lane_of_sl[16],
			const uint8_t sl_dscp[16], const uint8_t sl_pcp[16]);

/* The lane in which a frame is counted; UR_CREDIT_NONE: management, or too short for an Ethernet header. */
uint8_t ur_credit_lane_of(const struct ur_credit_map *m, const uint8_t *frame, uint32_t len);

bool ur_credit_is_message(const uint8_t *frame, uint32_t len);
/* Takes a message; anything may be in it. False: it is malformed, and counted. */
bool ur_credit_input(struct ur_credit *c, const uint8_t *frame, uint32_t len, uint64_t now_ns);
/* Writes the message that is due: UR_CREDIT_BYTES at `frame`, from `mac`. */
void ur_credit_output(struct ur_credit *c, uint8_t *frame, const uint8_t mac[6], uint64_t now_ns);

/*
 * To be called while lanes are closed. `wants`: lanes that have frames to send. Returns the lanes that are stalled from
 * now on.
 */
uint16_t ur_credit_wait(struct ur_credit *c, uint16_t wants, uint64_t now_ns);

/* When a message is due at the latest if nothing happens. */
static inline uint64_t ur_credit_next_deadline(const struct ur_credit *c)
{
	if (c->update)
		return 0;
	return c->answer && c->answered_ns + UR_CREDIT_ANSWER < c->next_ns
		       ? c->answered_ns + UR_CREDIT_ANSWER
		       : c->next_ns;
}

static inline bool ur_credit_is_due(const struct ur_credit *c, uint64_t now_ns)
{
	return ur_credit_next_deadline(c) <= now_ns;
}

/* How many frames lane `vl` may send: 0 or less, none. */
static inline int32_t ur_credit_left(const struct ur_credit *c, unsigned vl)
{
	return c->on ? (int32_t)(c->tx[vl].limit - c->tx[vl].sent) : INT32_MAX;
}

/* CREDIT-GATE-01 */
static inline void ur_credit_sent(struct ur_credit *c, unsigned vl)
{
	if (vl >= UR_CREDIT_LANES)
		return;
	c->tx[vl].sent++;
	if (ur_credit_left(c, vl) <= c->spare)
		c->closed |= (uint16_t)(1u << vl);
}

/*
 * CREDIT-BOUND-01: never more than the buffers that are free. After a new map, lanes of the old one may still hold what the
 * others have been given.
 */
static inline uint32_t ur_credit_room(const struct ur_credit *c, unsigned vl)
{
	const struct ur_credit_rx *r = &c->rx[vl];
	uint32_t of_lane = r->buffers > r->held ? r->buffers - r->held : 0;
	uint32_t of_all = c->buffers > c->held ? c->buffers - c->held : 0;

	return of_lane < of_all ? of_lane : of_all;
}

static inline bool ur_credit_has_room(const struct ur_credit *c, unsigned vl)
{
	return c->on && vl < UR_CREDIT_LANES && ur_credit_room(c, vl);
}

/* A frame was received, held, or neither: whether the other end is to be told. */
static inline void ur_credit_settle(struct ur_credit *c, unsigned vl)
{
	const struct ur_credit_rx *r = &c->rx[vl];

	c->update |= c->on && (int32_t)(r->received + ur_credit_room(c, vl) - r->told) >=
				      (int32_t)c->quantum;
}

static inline void ur_credit_received(struct ur_credit *c, unsigned vl)
{
	if (vl < UR_CREDIT_LANES)
		c->rx[vl].received++;
}

static inline void ur_credit_hold(struct ur_credit *c, unsigned vl)
{
	c->rx[vl].held++;
	c->held++;
}

static inline void ur_credit_free(struct ur_credit *c, unsigned vl)
{
	c->rx[vl].held--;
	c->held--;
	ur_credit_settle(c, vl);
}

#ifdef __cplusplus
}
#endif

#endif
