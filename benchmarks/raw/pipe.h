/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PIPE_H
#define BENCH_PIPE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "histogram.h"
#include "port.h"

/*
 * The bare pipe: what any RoCEv2 endpoint must do with the bytes of a message, and nothing of the
 * protocol (docs/benchmarks.md). A frame is a constant header, payload and a CRC-32 computed as the
 * ICRC. Of a header the receiver reads one byte, which tells data from control frames.
 *
 * The client decides what is done. Its first frame, HELLO, carries its attributes to the server; END
 * ends the run, and DONE returns what the server has found.
 *
 * Thread class: one thread.
 */
#define PIPE_BURST	 32
#define PIPE_HEADERS	 54u /* Ethernet, IPv4, UDP, BTH: the least a frame has */
#define PIPE_HEADERS_MAX 128u
#define PIPE_ATTR_MAGIC	 0x75726f6365706970ull /* changes with struct pipe_attr */

/* X(enumerator, word) */
#define PIPE_MODES(X)                                                                              \
	X(WRITE, "write")                                                                          \
	X(READ, "read")                                                                            \
	X(PINGPONG, "pingpong")

enum pipe_mode {
#define X(NAME, word) PIPE_##NAME,
	PIPE_MODES(X)
#undef X
};

/* Where a BTH has its opcode. */
enum pipe_kind {
	PIPE_HELLO = 1,
	PIPE_READY,
	PIPE_DATA,
	PIPE_ACK,
	PIPE_REQUEST,
	PIPE_END,
	PIPE_DONE
};

struct pipe_attr {
	uint64_t magic;
	uint32_t mode;	      /* enum pipe_mode */
	uint32_t message;     /* bytes; a multiple of `payload` */
	uint32_t payload;     /* bytes of each data frame */
	uint32_t headers;     /* bytes of each data frame's headers */
	uint32_t window;      /* WRITE: frames that may be unacknowledged */
	uint32_t ack_every;   /* WRITE: frames for which an ACK is due, at most `window` */
	uint32_t outstanding; /* READ: messages that may be outstanding */
	uint32_t verify;      /* 1: compare the bytes of every frame */
	uint32_t corrupt;     /* flip a bit of every so-manyth frame after it is summed; 0: never */
	uint32_t forge;	      /* the same before it is summed */
	uint32_t keep_cached; /* 1: received frames are not evicted from the cache */
	uint32_t reserved;    /* 0: no byte of a HELLO is padding */
};

/* What the client does with it; durations are in TSC cycles. */
struct pipe_limits {
	uint64_t messages; /* 0: until the time is over */
	uint64_t warmup, duration;
};

/* What one end has found in the frames that it received. */
struct pipe_found {
	uint64_t frames;      /* data frames */
	uint64_t requests;    /* READ requests */
	uint64_t bad_sums;    /* frames of any kind whose sum is wrong; they are not copied */
	uint64_t wrong_bytes; /* data frames whose sum is right and whose bytes are wrong */
	uint64_t strange;     /* frames that are none of ours */
};

/* The part of the message that the next data frame carries. */
struct pipe_cursor {
	uint32_t at;	/* offset in the message, [0, message) */
	uint32_t shift; /* verify: offset added in the source, so that no two messages are alike */
};

struct pipe {
	struct pipe_attr attr;
	struct pipe_limits limits;
	struct port port;
	const volatile sig_atomic_t *stop;
	const char *why; /* after a failure: a sentence that says why; NULL after a signal */
	bool greeted;	 /* HELLO, or in the client READY, has arrived */
	uint8_t control[PIPE_HEADERS]; /* headers of control frames */

	/* derived from attr */
	uint32_t frame_bytes, frames_per_message;
	bool attach;	  /* payload is attached to a frame, and copied by the driver */
	bool evict;	  /* received frames are evicted from the cache once they are read */
	bool alters_some; /* corrupt or forge */
	uint8_t header[PIPE_HEADERS_MAX]; /* of data frames */
	struct rte_mbuf_ext_shared_info shared;

	uint8_t *source, *destination; /* the application's memory; owned by the pipe */
	struct pipe_cursor tx, rx;
	uint64_t sent;	    /* data frames */
	uint64_t acked;	    /* WRITE: of these, acknowledged: in flight is [acked, sent) */
	uint64_t acks;	    /* ACKs received */
	uint64_t unacked;   /* data frames received since the last ACK was sent */
	uint64_t requested; /* READ: messages asked for by the client */
	bool ended;	    /* END or DONE has arrived */
	struct pipe_found found, peer_found; /* the latter from DONE */

	/* the measured interval: [from, to), in TSC cycles, and messages completed before each */
	uint64_t from, to, done_from, done_to;
	uint64_t idle, idle_since;    /* rounds in a row in which nothing moved; TSC of the first */
	struct perf_histogram halves; /* PINGPONG: half round trips */
};

/* ---- pipe_frame.c ---- */

/*
 * Checks attributes, also those of a HELLO. Returns NULL, or a sentence that names the option and
 * its range.
 */
const char *pipe_check(const struct pipe_attr *attr);

/* Makes the headers of control frames; `p` is zero but for the port. */
void pipe_init(struct pipe *p);
/* Allocates memory and makes the header for p->attr, which is good. False: no memory. */
bool pipe_prepare(struct pipe *p);
void pipe_release(struct pipe *p);

/* Builds the next `n` <= PIPE_BURST data frames. False: no packet buffers are free. */
bool pipe_build_data(struct pipe *p, struct rte_mbuf **m, unsigned n);
/* Builds a small frame: the shortest headers, `len` bytes of `body`, the sum. NULL: no buffer. */
struct rte_mbuf *pipe_build_control(struct pipe *p, enum pipe_kind kind, const void *body,
				    uint32_t len);

/* True if the frame is long enough and its sum is right; counts it otherwise. */
bool pipe_frame_ok(struct pipe *p, const struct rte_mbuf *m);
enum pipe_kind pipe_frame_kind(const struct rte_mbuf *m);
/* Copies the body of a control frame, which must have `len` bytes. False: it has not. */
bool pipe_read_control(const struct rte_mbuf *m, void *body, uint32_t len);
/* Checks the sum of a data frame, copies its payload to where it belongs and counts it. */
void pipe_take_data(struct pipe *p, const struct rte_mbuf *m);
/* Prefetches what pipe_take_data() reads first: small frames as a whole. */
void pipe_prefetch(const struct rte_mbuf *m);

/* ---- pipe_modes.c ---- */

/*
 * Runs the client's or the server's side of attr.mode, from the first message to DONE. Returns 0,
 * or -1 with p->why set.
 */
int pipe_run_client(struct pipe *p);
int pipe_run_server(struct pipe *p);

/*
 * Receives a burst: takes data and notes control frames. The first HELLO is left in p->attr,
 * unchecked. Returns the number of frames, or -1 as pipe_send_control().
 */
int pipe_receive(struct pipe *p);
/*
 * Transmits a control frame, waiting while the ring is full. Returns 0, or -1 after a signal or,
 * with p->why set, if the peer has left or has stopped.
 */
int pipe_send_control(struct pipe *p, enum pipe_kind kind, const void *body, uint32_t len);

#endif
