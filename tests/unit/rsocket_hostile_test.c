/* SPDX-License-Identifier: BSD-3-Clause */
#include "rsocket/flow.h"
#include "rsocket_pair.h"

/*
 * A peer that speaks the protocol as it likes, by verbs, against an rsocket. Whatever it says ends its own connection at
 * most. RSOCKET-HOSTILE-01
 */

TestSuite(rsocket_hostile, .init = setup, .timeout = 60);

#define CREDITS 384 /* that an rsocket offers */

static uint8_t memory[4096] __attribute__((aligned(16)));

struct peer {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ur_rs_offer theirs;
	int listener, fd; /* the rsockets */
};

static struct rdma_cm_id *call(const void *offer, size_t len)
{
	struct rdma_conn_param p = param;
	struct rdma_cm_id *id = resolve(IP_B, RDMA_PS_TCP);

	make_qp(id);
	p.private_data = offer;
	p.private_data_len = (uint8_t)len;
	cr_assert_eq(rdma_connect(id, &p), 0);
	return id;
}

static void post_receive(struct rdma_cm_id *id)
{
	struct ibv_recv_wr wr = {0}, *bad;

	cr_assert_eq(ibv_post_recv(id->qp, &wr, &bad), 0);
}

/* Connected: memory[] has two targets at 0, and a buffer of 2048 bytes behind. */
static struct peer connect_peer(uint32_t rkey_spoiled)
{
	struct peer p = {.listener = serve(IP_B)};
	struct ur_rs_offer own = {.credits = 16, .has_maps = true};
	uint8_t bytes[UR_RS_OFFER_BYTES];
	struct rdma_cm_event *e;
	int maps = 2;

	rsetsockopt(p.listener, SOL_RDMA, RDMA_IOMAPSIZE, &maps, sizeof(maps));
	p.id = resolve(IP_B, RDMA_PS_TCP);
	make_qp(p.id);
	for (int i = 0; i < 4; i++)
		post_receive(p.id);
	p.mr = ibv_reg_mr(p.id->pd, memory, sizeof(memory),
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_not_null(p.mr);
	own.targets = (struct ur_rs_place){(uintptr_t)memory, p.mr->rkey, 2};
	own.buffer =
		(struct ur_rs_place){(uintptr_t)memory + 2048, p.mr->rkey ^ rkey_spoiled, 2048};
	ur_rs_put_offer(bytes, &own);
	param.private_data = bytes;
	param.private_data_len = sizeof(bytes);
	cr_assert_eq(rdma_connect(p.id, &param), 0);
	p.fd = raccept(p.listener, NULL, NULL);
	cr_assert_geq(p.fd, 0, "%s", strerror(errno));
	e = next_event(ch[A], RDMA_CM_EVENT_ESTABLISHED);
	cr_assert(ur_rs_get_offer(e->param.conn.private_data, UR_RS_OFFER_BYTES, &p.theirs));
	rdma_ack_cm_event(e);
	return p;
}

static void reap(struct peer *p)
{
	struct ibv_wc wc;
	uint64_t until = now_ms() + PATIENCE_MS;

	while (!ibv_poll_cq(p->id->send_cq, 1, &wc))
		cr_assert_lt(now_ms(), until);
}

/* A message without data; what it says is not true. */
static void say(struct peer *p, uint32_t word)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htonl(word)},
			   *bad;

	cr_assert_eq(ibv_post_send(p->id->qp, &wr, &bad), 0);
	reap(p);
}

static void expect_broken(struct peer *p)
{
	char c;

	cr_expect_eq(errno_of(rrecv(p->fd, &c, 1, 0)), ECONNRESET);
	cr_expect_eq(rrecv(p->fd, &c, 1, 0), 0);
	cr_expect_eq(errno_of(rsend(p->fd, "x", 1, 0)), ECONNRESET);
	expect(ch[A], RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(rclose(p->fd), 0);
	expect_others_work(p->listener);
	rclose(p->listener);
	free_id(p->id);
	ibv_dereg_mr(p->mr);
}

Test(rsocket_hostile, honest_words_are_accepted)
{
	struct peer p = connect_peer(0);
	char got[6] = "";

	say(&p, ur_rs_word(UR_RS_DATA, 5));
	cr_expect_eq(rrecv(p.fd, got, 5, MSG_WAITALL), 5, "zeros, because nothing was written");
	say(&p, ur_rs_word(UR_RS_CONTROL, UR_RS_KEEPALIVE));
	say(&p, ur_rs_word(UR_RS_CONTROL, 77));
	say(&p, ur_rs_word(UR_RS_CONTROL, UR_RS_SHUTDOWN));
	cr_expect_eq(rrecv(p.fd, got, 5, 0), 0);
	put(p.fd, "fine", 4);
	rclose(p.fd);
	cr_expect_arr_eq(memory + 2048, "fine", 4);
	rclose(p.listener);
	free_id(p.id);
	ibv_dereg_mr(p.mr);
}

Test(rsocket_hostile, an_offer_of_another_version_is_refused)
{
	int listener = serve(IP_B);
	uint8_t bytes[UR_RS_OFFER_BYTES] = {2, 0, 1, 1};
	struct rdma_cm_id *id = call(bytes, sizeof(bytes));

	set_nonblocking(listener, true);
	cr_assert(await(listener, POLLIN) & POLLIN);
	cr_expect_eq(errno_of(raccept(listener, NULL, NULL)), EAGAIN, "as if it had not called");
	expect_status(ch[A], RDMA_CM_EVENT_REJECTED, 28);
	free_id(id);
	set_nonblocking(listener, false);
	expect_others_work(listener);
	rclose(listener);
}

Test(rsocket_hostile, more_data_than_the_buffer_has)
{
	struct peer p = connect_peer(0);

	say(&p, ur_rs_word(UR_RS_DATA, p.theirs.buffer.bytes + 1));
	expect_broken(&p);
}

Test(rsocket_hostile, as_much_data_as_a_word_can_say)
{
	struct peer p = connect_peer(0);

	say(&p, ur_rs_word(UR_RS_DATA, UR_RS_VALUE_MAX));
	expect_broken(&p);
}

Test(rsocket_hostile, data_after_its_end)
{
	struct peer p = connect_peer(0);

	say(&p, ur_rs_word(UR_RS_CONTROL, UR_RS_SHUTDOWN));
	say(&p, ur_rs_word(UR_RS_DATA, 1));
	cr_assert(await(p.fd, POLLHUP) & POLLHUP);
	expect_broken(&p);
}

/* RSOCKET-CREDIT-01. The program does not read, so no credits come back. */
Test(rsocket_hostile, more_messages_than_credits)
{
	struct peer p = connect_peer(0);

	for (int i = 0; i <= CREDITS; i++)
		say(&p, ur_rs_word(UR_RS_DATA, 0));
	expect_broken(&p);
}

/* RSOCKET-CREDIT-02 */
Test(rsocket_hostile, credits_that_it_does_not_have)
{
	struct peer p = connect_peer(0);

	say(&p, ur_rs_word(UR_RS_CREDIT, 17));
	expect_broken(&p);
}

Test(rsocket_hostile, kinds_that_do_not_exist)
{
	static const unsigned kinds[] = {1, 2, 3, 5};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct peer p = connect_peer(0);

		say(&p, ur_rs_word((enum ur_rs_kind)kinds[i], 1));
		expect_broken(&p);
	}
}

Test(rsocket_hostile, an_entry_beyond_the_table_of_maps)
{
	struct peer p = connect_peer(0);

	say(&p, ur_rs_word(UR_RS_MAP, p.theirs.maps));
	expect_broken(&p);
}

Test(rsocket_hostile, a_message_that_is_no_write)
{
	struct peer p = connect_peer(0);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	cr_assert_eq(ibv_post_send(p.id->qp, &wr, &bad), 0);
	reap(&p);
	expect_broken(&p);
}

/* Its own buffer is none: it is the one that refuses the WRITE. */
Test(rsocket_hostile, a_buffer_that_does_not_exist)
{
	struct peer p = connect_peer(0x100);
	char c;

	put(p.fd, "lost", 4);
	cr_expect_eq(errno_of(rrecv(p.fd, &c, 1, 0)), ECONNRESET);
	rclose(p.fd);
	expect_others_work(p.listener);
	rclose(p.listener);
	free_id(p.id);
	ibv_dereg_mr(p.mr);
}

/* What it may write is only what was offered. */
Test(rsocket_hostile, memory_before_the_tables)
{
	struct peer p = connect_peer(0);
	struct ibv_sge sge = {(uintptr_t)memory, 1, p.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {p.theirs.targets.addr - 1, p.theirs.targets.key}},
			   *bad;
	char c;

	cr_assert_eq(ibv_post_send(p.id->qp, &wr, &bad), 0);
	reap(&p);
	cr_expect_eq(errno_of(rrecv(p.fd, &c, 1, 0)), ECONNRESET);
	rclose(p.fd);
	expect_others_work(p.listener);
	rclose(p.listener);
	free_id(p.id);
	ibv_dereg_mr(p.mr);
}
