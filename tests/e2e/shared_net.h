/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SHARED_NET_H
#define TESTS_SHARED_NET_H

#include <stdint.h>

#include "uroce/uroce.h"

/*
 * A network namespace of its own for a test, with a veth pair: the endpoint on sh0, the other end, sh1, is the test's to
 * use.
 */
#define PATIENCE_MS 20000
#define PEER_MAC    "02:00:00:00:00:02"
/* The kernel asks three times for a neighbour, at this distance, before it gives it up. Without this: a second. */
#define QUESTION_MS 100u

/* The endpoint, if there is one, and why there is none. */
extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern char err[512];
extern const char *const by_af_packet[];

/* A command of the shell, which has to succeed. */
__attribute__((format(printf, 1, 2))) void run(const char *fmt, ...);
uint64_t now_ms(void);

/* Skips the test without root. */
void make_network(void);
/* Shares sh0. `more` overrides, NULL at its end. */
struct ibv_context *try_open(const char *const *more);
void open_endpoint(void);
void open_network(void); /* both */
void close_endpoint(void);

/* The next event within PATIENCE_MS. */
enum ibv_event_type next_event(void);
void expect_event(enum ibv_event_type want);

/* Of what the telemetry command returns, such as "/uroce/port". */
uint64_t counter_of(const char *command, const char *name);
uint64_t neigh_counter(const char *name);

/* A descriptor that sees what arrives at sh1, and sends from there. */
int open_wire(void);
/* A UDP datagram in a frame, from the other end to the endpoint's address. */
void arrive(int wire, uint16_t port);

#endif
