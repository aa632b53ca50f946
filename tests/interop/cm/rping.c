/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rping: the client announces its source buffer and the server READs it; the client announces its
 * sink buffer and the server WRITEs the same bytes to it. Each of the four steps ends with a SEND
 * of 16 bytes.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "peer.h"

enum { RPING_PORT = 7174, RPING_MAX = 65536 };

struct advert {
	__be64 addr;
	__be32 rkey, bytes;
};

static struct {
	struct advert in, out;
	char source[RPING_MAX], sink[RPING_MAX];
} buf;
static struct ibv_mr *mr;

static void post_advert_receive(struct peer *p)
{
	if (mr == NULL)
		mr = peer_memory(p, &buf, sizeof(buf));
	peer_receive(p, mr, &buf.in, sizeof(buf.in));
}

static void send_advert(struct peer *p, const char *where, unsigned bytes)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	buf.out.addr = htobe64((uintptr_t)where);
	buf.out.rkey = htobe32(mr->rkey);
	buf.out.bytes = htobe32(bytes);
	peer_post(p, &wr, mr, &buf.out, sizeof(buf.out));
	peer_completion(p, p->send_cq);
}

static struct advert await_advert(struct peer *p)
{
	struct ibv_wc wc = peer_completion(p, p->recv_cq);
	struct advert a = buf.in;

	if (wc.byte_len != sizeof(a))
		die("an advert of %u bytes", wc.byte_len);
	post_advert_receive(p);
	return a;
}

static void client(struct peer *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		int n = snprintf(buf.source, p->bytes, "rdma-ping-%u: ", i);

		for (unsigned k = (unsigned)n; k < p->bytes; k++)
			buf.source[k] = (char)('A' + (i + k) % 58);
		buf.source[p->bytes - 1] = '\0';
		memset(buf.sink, 0, sizeof(buf.sink));
		send_advert(p, buf.source, p->bytes);
		await_advert(p);
		send_advert(p, buf.sink, p->bytes);
		await_advert(p);
		if (memcmp(buf.sink, buf.source, p->bytes) != 0)
			die("ping %u: what came back is not what was sent", i);
	}
	peer_end(p, true);
}

/* Checks the data of rping: a text with its number, then letters. rping -V checks what it gets back. */
static void check_ping(const struct peer *p, unsigned nr, unsigned bytes)
{
	char want[32];
	int n = snprintf(want, sizeof(want), "rdma-ping-%u: ", nr);

	if (bytes != p->bytes || memcmp(buf.sink, want, (size_t)n) != 0)
		die("ping %u: %u bytes, beginning '%.20s'", nr, bytes, buf.sink);
	for (unsigned k = (unsigned)n + 1; k + 1 < bytes; k++)
		if (buf.sink[k] != (buf.sink[k - 1] == 'z' ? 'A' : buf.sink[k - 1] + 1))
			die("ping %u: byte %u is '%c' behind '%c'", nr, k, buf.sink[k],
			    buf.sink[k - 1]);
}

static void one_sided(struct peer *p, enum ibv_wr_opcode opcode, struct advert a)
{
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.wr.rdma = {.remote_addr = be64toh(a.addr), .rkey = be32toh(a.rkey)}};

	peer_post(p, &wr, mr, buf.sink, be32toh(a.bytes));
	peer_completion(p, p->send_cq);
}

static void server(struct peer *p)
{
	struct advert a;

	for (unsigned i = 0; i < p->count; i++) {
		a = await_advert(p);
		if (be32toh(a.bytes) > RPING_MAX)
			die("ping %u has %u bytes", i, be32toh(a.bytes));
		memset(buf.sink, 0, sizeof(buf.sink));
		one_sided(p, IBV_WR_RDMA_READ, a);
		check_ping(p, i, be32toh(a.bytes));
		send_advert(p, NULL, 0);
		a = await_advert(p);
		one_sided(p, IBV_WR_RDMA_WRITE, a);
		send_advert(p, NULL, 0);
	}
	peer_end(p, false);
}

void run_rping(struct peer *p)
{
	peer_connect(p, RPING_PORT, post_advert_receive);
	(p->server ? server : client)(p);
}
