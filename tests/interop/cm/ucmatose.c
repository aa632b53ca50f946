/* SPDX-License-Identifier: BSD-3-Clause */
/* ucmatose: the server SENDs `count` messages, then the client does; the server ends the
 * connection. */
#include <stdio.h>
#include <string.h>

#include "peer.h"

enum { UCMATOSE_PORT = 7471, MAX_BYTES = 65536, MAX_COUNT = 60 };

static char out[MAX_BYTES], in[MAX_BYTES];
static struct ibv_mr *out_mr, *in_mr;

static void post_receives(struct peer *p)
{
	if (out_mr == NULL) {
		out_mr = peer_memory(p, out, sizeof(out));
		in_mr = peer_memory(p, in, sizeof(in));
	}
	for (unsigned i = 0; i < p->count; i++)
		peer_receive(p, in_mr, in, p->bytes);
}

static void send_all(struct peer *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

		peer_post(p, &wr, out_mr, out, p->bytes);
	}
	for (unsigned i = 0; i < p->count; i++)
		peer_completion(p, p->send_cq);
}

static void receive_all(struct peer *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		struct ibv_wc wc = peer_completion(p, p->recv_cq);

		if (wc.byte_len != p->bytes)
			die("message %u has %u bytes of %u", i, wc.byte_len, p->bytes);
	}
}

void run_ucmatose(struct peer *p)
{
	if (p->count > MAX_COUNT || p->bytes > MAX_BYTES)
		die("too many or too large messages");
	peer_connect(p, UCMATOSE_PORT, post_receives);
	if (p->server) {
		send_all(p);
		receive_all(p);
	} else {
		receive_all(p);
		send_all(p);
	}
	peer_end(p, p->server);
}
