/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_EXT_END_H
#define UR_TEST_EXT_END_H

#include "end.h"
#include "transport/rc/ext.h"
#include "transport/rc/ext.h"

/*
 * The requester of one extended queue pair, without an engine. The test acts as the responder.
 * Messages are numbered from 1, whatever the first PSN is. The invariants are asserted after each
 * step.
 */
#define XEND_STEP_NS UINT64_C(1000) /* time between two packets, so that each has its own stamp */

struct end *xend_new(struct end_attr attr);
void xend_free(struct end *e);
#define XEND(...) xend_new((struct end_attr){__VA_ARGS__})

/* The next packet, valid until the next call; NULL if there is none. */
const struct ur_packet *xend_out(struct end *e);
/* Fails unless the next packet has this opcode and PSN. */
const struct ur_packet *xend_expect(struct end *e, uint8_t opcode, uint32_t psn);
void xend_expect_silence(struct end *e);
unsigned xend_drain(struct end *e);

/* A response to the packet with stamp `echo`. */
struct ur_packet xend_packet(struct end *e, uint8_t opcode, uint32_t psn, uint32_t epsn,
			     uint32_t echo, const uint8_t *payload, uint16_t payload_len);
enum ur_drop xend_in(struct end *e, struct ur_packet p);
/* An ACK (or another syndrome, for ePSN) without a bitmap. */
enum ur_drop xend_ack(struct end *e, uint32_t epsn, uint8_t syndrome, uint32_t msn, uint32_t echo);
/* A sequence NAK: PSN epsn + 1 + i has arrived if bit i of `bits` is set. */
enum ur_drop xend_sack(struct end *e, uint32_t epsn, uint32_t bits, uint32_t echo);
/*
 * The response at `offset` to READ `ssn`, whose request has `psn`, in or out of order. All bytes
 * are (uint8_t)(offset + 1).
 */
enum ur_drop xend_read(struct end *e, uint32_t ssn, uint32_t offset, uint32_t psn, uint16_t len,
		       uint32_t echo);
enum ur_drop xend_atomic(struct end *e, uint32_t ssn, uint32_t psn, uint32_t echo);
/* Advances the time to the next deadline, unless it has passed, and fires the timer. */
void xend_wait(struct end *e);

#endif
