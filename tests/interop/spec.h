/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_SPEC_H
#define INTEROP_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "verbs.h"

/* X(NAME, word). RELAY is a fenced SEND of the data that the preceding READ has fetched. */
#define INTEROP_OPS(X)                                                                             \
	X(SEND, "send")                                                                            \
	X(SEND_IMM, "send_imm")                                                                    \
	X(WRITE, "write")                                                                          \
	X(WRITE_IMM, "write_imm")                                                                  \
	X(READ, "read")                                                                            \
	X(CAS, "cas")                                                                              \
	X(FADD, "fadd")                                                                            \
	X(RELAY, "relay")

enum op {
#define X(NAME, word) OP_##NAME,
	INTEROP_OPS(X)
#undef X
};

/*
 * The parameters of a scenario, the same at both ends. X(type, key, default, meaning). A list
 * consists of words or numbers separated by commas.
 */
#define INTEROP_SPEC(W, L, N)                                                                      \
	W(kind, "traffic", "kind of scenario; scenario.c lists the kinds")                         \
	W(service, "rc", "rc, uc or ud")                                                           \
	W(from, "uroce", "which end posts the requests: uroce, rxe or both")                       \
	W(connect, "manual", "how queue pairs meet: manual (over TCP) or cm")                      \
	W(active, "uroce", "cm: which end connects")                                               \
	W(gid, "4", "4, ll or 6: kind of addresses")                                               \
	W(mode, "reorder", "uroce's transport mode, gbn or reorder")                               \
	W(srq, "none", "which end receives from an SRQ: none, uroce, rxe or both")                 \
	W(fault, "", "kind refused: the error in the request (faults.c)")                          \
	L(ops, "send", "operations, taken in turn")                                                \
	L(sizes, "64", "bytes of a message, the next one after each cycle of the operations")      \
	N(count, 0, "messages in one direction; 0: each operation in each size once")              \
	N(depth, 16, "messages posted at once; memory is compared after each such round")          \
	N(megabytes, 0, "continue until this volume, 10^6 bytes, is reached in one direction")     \
	N(mtu, 1024, "path MTU")                                                                   \
	N(sge, 1, "pieces that a message is gathered from and scattered to")                       \
	N(signal, 1, "every n-th request is signaled, and so is the last one of a round")          \
	N(inline_data, 0, "1: SENDs and WRITEs that fit are posted inline")                        \
	N(solicited, 0, "1: the last receive of every other round is solicited")                   \
	N(late_ms, 0, "receives are posted this long after the requests")                          \
	N(lossy, 0, "1: messages may be lost (UC and UD on a bad link)")                           \
	N(psn, 0x123456, "first PSN of uroce's requests; rxe's is its complement")                 \
	N(timeout, 18, "local ACK timeout code")                                                   \
	N(retry, 7, "retry_cnt")                                                                   \
	N(rnr_retry, 7, "rnr_retry")                                                               \
	N(rnr_timer, 12, "min_rnr_timer code")                                                     \
	N(rd, 8, "READs and atomics outstanding")                                                  \
	N(seed, 1, "seed of contents and offsets")                                                 \
	N(stall, 120, "seconds without a completion after which the scenario has failed")

struct spec {
	char name[96];
#define W(key, value, meaning) char key[24];
#define L(key, value, meaning) char key[192];
#define N(key, value, meaning) unsigned key;
	INTEROP_SPEC(W, L, N)
#undef W
#undef L
#undef N
	/* Computed from the words and lists above. */
	enum ibv_qp_type type;
	unsigned op[16], op_cnt;
	unsigned size[48], size_cnt, size_max;
};

/* Parses "name key=value ...". On failure returns false, with a sentence in `err`. */
bool spec_parse(struct spec *spec, const char *line, char *err, size_t err_bytes);

/* True if "uroce", "rxe", "both" or "none" includes us, or the peer. */
bool is_us(const char *which);
bool is_peer(const char *which);

const char *op_word(enum op op);
bool op_takes_receive(enum op op);
bool op_is_atomic(enum op op);

#endif
