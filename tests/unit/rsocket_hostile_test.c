/* SPDX-License-Identifier: BSD-3-Clause */
#include "rsocket_peer.h"

/* Whatever a peer says ends its own connection at most. RSOCKET-HOSTILE-01 */

TestSuite(rsocket_hostile, .init = setup, .timeout = 60);

#define CREDITS 384 /* that an rsocket offers */

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

static void expect_broken(struct peer *p)
{
	char c;

	cr_expect_eq(errno_of(rrecv(p->fd, &c, 1, 0)), ECONNRESET);
	cr_expect_eq(rrecv(p->fd, &c, 1, 0), 0);
	cr_expect_eq(errno_of(rsend(p->fd, "x", 1, 0)), ECONNRESET);
	expect(ch[A], RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(rclose(p->fd), 0);
	expect_others_work(p->listener);
	drop_peer(p);
}

Test(rsocket_hostile, honest_words_are_accepted)
{
	struct peer p = connect_peer(0);
	char got[6] = "";

	send_control(&p, ur_rs_word(UR_RS_DATA, 5));
	cr_expect_eq(rrecv(p.fd, got, 5, MSG_WAITALL), 5, "zeros, because nothing was written");
	send_control(&p, ur_rs_word(UR_RS_CONTROL, UR_RS_KEEPALIVE));
	send_control(&p, ur_rs_word(UR_RS_CONTROL, 77));
	send_control(&p, ur_rs_word(UR_RS_CONTROL, UR_RS_SHUTDOWN));
	cr_expect_eq(rrecv(p.fd, got, 5, 0), 0);
	put(p.fd, "fine", 4);
	rclose(p.fd);
	cr_expect_arr_eq(memory + 2048, "fine", 4);
	drop_peer(&p);
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

/* An answer that is none: here the peer is the listener. RSOCKET-OFFER-02 */
Test(rsocket_hostile, an_answer_without_an_offer_is_a_protocol_error)
{
	struct rdma_cm_id *listener = listen_at(IP_B, RDMA_PS_TCP, 0), *b;
	struct pollfd p[2] = {{.fd = ch[B]->fd, .events = POLLIN}, {.events = POLLOUT}};
	struct rdma_conn_param bad = param;
	int fd = new_socket(IP_B);

	set_nonblocking(fd, true);
	cr_assert_eq(try_connect(fd, IP_B), EINPROGRESS);
	p[1].fd = fd;
	cr_assert_eq(rpoll(p, 2, PATIENCE_MS), 1);
	b = expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(b);
	bad.private_data = (uint8_t[UR_RS_OFFER_BYTES]){UR_RS_VERSION, 0, 0, 0};
	bad.private_data_len = UR_RS_OFFER_BYTES;
	cr_assert_eq(rdma_accept(b, &bad), 0);
	cr_expect(await(fd, POLLOUT) & POLLERR);
	cr_expect_eq(error_of(fd), EPROTO);
	rclose(fd);
	free_id(b);
	free_id(listener);
	expect_others_work(serve(IP_B));
}

Test(rsocket_hostile, more_data_than_the_buffer_has)
{
	struct peer p = connect_peer(0);

	send_control(&p, ur_rs_word(UR_RS_DATA, p.theirs.buffer.bytes + 1));
	expect_broken(&p);
}

Test(rsocket_hostile, as_much_data_as_a_word_can_say)
{
	struct peer p = connect_peer(0);

	send_control(&p, ur_rs_word(UR_RS_DATA, UR_RS_VALUE_MAX));
	expect_broken(&p);
}

Test(rsocket_hostile, data_after_its_end)
{
	struct peer p = connect_peer(0);

	send_control(&p, ur_rs_word(UR_RS_CONTROL, UR_RS_SHUTDOWN));
	send_control(&p, ur_rs_word(UR_RS_DATA, 1));
	cr_assert(await(p.fd, POLLHUP) & POLLHUP);
	expect_broken(&p);
}

/* RSOCKET-CREDIT-01. The program does not read, so no credits come back. */
Test(rsocket_hostile, more_messages_than_credits)
{
	struct peer p = connect_peer(0);

	for (int i = 0; i <= CREDITS; i++)
		send_control(&p, ur_rs_word(UR_RS_DATA, 0));
	expect_broken(&p);
}

/* RSOCKET-CREDIT-02 */
Test(rsocket_hostile, credits_that_it_does_not_have)
{
	struct peer p = connect_peer(0);

	send_control(&p, ur_rs_word(UR_RS_CREDIT, 17));
	expect_broken(&p);
}

Test(rsocket_hostile, kinds_that_do_not_exist)
{
	static const unsigned kinds[] = {1, 2, 3, 5};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct peer p = connect_peer(0);

		send_control(&p, ur_rs_word((enum ur_rs_kind)kinds[i], 1));
		expect_broken(&p);
	}
}

Test(rsocket_hostile, an_entry_beyond_the_table_of_maps)
{
	struct peer p = connect_peer(0);

	send_control(&p, ur_rs_word(UR_RS_MAP, p.theirs.maps));
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

/* RSOCKET-TARGET-01. Before its message an entry may be there in part. */
Test(rsocket_hostile, a_target_counts_when_its_message_has_come)
{
	struct peer p = connect_peer(0);
	static const uint8_t all[2048];

	put(p.fd, all, sizeof(all));
	write_target(&p, IBV_WR_RDMA_WRITE);
	cr_expect_eq(errno_of(rsend(p.fd, "x", 1, MSG_DONTWAIT)), EAGAIN);
	send_control(&p, ur_rs_word(UR_RS_CREDIT, 16));
	cr_expect_eq(errno_of(rsend(p.fd, "x", 1, MSG_DONTWAIT)), EAGAIN);
	write_target(&p, IBV_WR_RDMA_WRITE_WITH_IMM);
	put(p.fd, "x", 1);
	rclose(p.fd);
	drop_peer(&p);
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
	drop_peer(&p);
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
	drop_peer(&p);
}
