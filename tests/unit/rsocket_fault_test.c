/* SPDX-License-Identifier: BSD-3-Clause */
#include "rsocket_peer.h"

/* What a program is told when the peer, the path or this host fails. */

TestSuite(rsocket_fault, .init = setup, .timeout = 60);

static bool no_ids, no_binds; /* of this host; the linker puts what follows in between */

int __real_rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps);
int __wrap_rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps);
int __real_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);
int __wrap_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);

int __wrap_rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps)
{
	if (!no_ids)
		return __real_rdma_create_id(c, id, context, ps);
	errno = ENOMEM;
	return -1;
}

int __wrap_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (!no_binds)
		return __real_rdma_bind_addr(id, addr);
	errno = ENOMEM;
	return -1;
}

/* ---- connecting ---- */

/* Messages of connections arrive in order: once this request has, all that A has sent before is here. */
static void await_messages_of_cm(void)
{
	struct rdma_cm_id *listener = new_id(B, RDMA_PS_TCP), *a = new_id(A, RDMA_PS_TCP), *b;
	union addr from = addr(IP_A, 0), to = addr(IP_B, PORT + 1);

	cr_assert_eq(try_bind(listener, IP_B, PORT + 1), 0);
	cr_assert_eq(rdma_listen(listener, 1), 0);
	cr_assert_eq(rdma_resolve_addr(a, &from.sa, &to.sa, 5000), 0);
	expect(ch[A], RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(a, 5000), 0);
	expect(ch[A], RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(a);
	cr_assert_eq(rdma_connect(a, &param), 0);
	b = expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	free_id(a);
	free_id(b);
	free_id(listener);
}

Test(rsocket_fault, a_caller_that_has_gone_is_not_accepted)
{
	int listener = serve(IP_B), fd = new_socket(IP_B);
	struct pollfd p[2] = {{.fd = listener, .events = POLLIN}, {.fd = fd, .events = POLLOUT}};

	set_nonblocking(fd, true);
	cr_assert_eq(try_connect(fd, IP_B), EINPROGRESS);
	cr_assert_eq(rpoll(p, 2, PATIENCE_MS), 1);
	cr_assert(p[0].revents & POLLIN);
	rclose(fd);
	await_messages_of_cm();
	set_nonblocking(listener, true);
	cr_expect_eq(errno_of(raccept(listener, NULL, NULL)), EAGAIN);
	set_nonblocking(listener, false);
	expect_others_work(listener);
	rclose(listener);
}

#define OWN_PORT 7000

/* Whatever fails of a second attempt, a third one is bound as the first. */
Test(rsocket_fault, an_attempt_that_could_not_begin_may_be_repeated)
{
	int fd = new_socket(IP_B), listener, both[SIDES] = {fd};
	union addr to = addr(IP_B, PORT), own;
	socklen_t len = sizeof(own);

	bind_to(fd, IP_A, OWN_PORT);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), ECONNREFUSED);
	no_ids = true;
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), ENOMEM);
	no_ids = false;
	cr_expect_eq(rgetsockname(fd, &own.sa, &len), 0);
	no_binds = true;
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), ENOMEM);
	no_binds = false;
	listener = serve(IP_B);
	set_nonblocking(fd, true);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), EINPROGRESS);
	both[B] = accept_from(listener, fd);
	cr_assert_eq(rgetpeername(both[B], &own.sa, &len), 0);
	cr_expect_eq(own.in.sin_port, htons(OWN_PORT));
	rclose(both[B]);
	rclose(fd);
	rclose(listener);
}

static void move_qp(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {.qp_state = to};
	int mask;

	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0, "%s", strerror(errno));
	cr_assert_eq(ibv_modify_qp(qp, &attr, mask), 0);
}

/* The peer has a queue pair of its own, so that no confirmation is sent for it. */
static struct ibv_qp *call_by_number(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ur_rs_offer own = {.credits = 16, .targets = {.bytes = 2}};
	struct ibv_qp *qp = ibv_create_qp(id->pd, &attr);
	uint8_t bytes[UR_RS_OFFER_BYTES];
	struct rdma_conn_param p = param;

	cr_assert_not_null(qp);
	ur_rs_put_offer(bytes, &own);
	p.private_data = bytes;
	p.private_data_len = sizeof(bytes);
	p.qp_num = qp->qp_num;
	cr_assert_eq(rdma_connect(id, &p), 0);
	return qp;
}

/* Data is there, and the peer withdraws instead of confirming. */
Test(rsocket_fault, an_accepted_peer_that_withdraws_is_a_reset_behind_its_data)
{
	int listener = serve(IP_B), fd;
	struct rdma_cm_id *id = resolve(IP_B, RDMA_PS_TCP);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	struct ibv_qp *qp = call_by_number(id, cq);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htonl(ur_rs_word(UR_RS_DATA, 5))},
			   *bad;
	union addr to = addr(IP_A, PORT);
	struct ibv_wc wc;
	char got[5];

	fd = raccept(listener, NULL, NULL);
	cr_assert_geq(fd, 0);
	expect(ch[A], RDMA_CM_EVENT_CONNECT_RESPONSE);
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
		move_qp(id, qp, (enum ibv_qp_state)state);
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(rdma_reject(id, NULL, 0), 0);
	await_messages_of_cm();
	cr_expect_eq(rrecv(fd, got, 5, MSG_WAITALL), 5);
	cr_expect_eq(errno_of(rrecv(fd, got, 1, 0)), ECONNRESET);
	cr_expect_eq(rrecv(fd, got, 1, 0), 0);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), EISCONN);
	rclose(fd);
	rclose(listener);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	rdma_destroy_id(id);
}

/* ---- a connection that is lost: RSOCKET-LOSS-01 ---- */

/* A request decides how often both ends try again; seven times would take 17 s. */
static struct peer connect_brief_peer(void)
{
	param.retry_count = 0;
	return connect_peer(0);
}

/* The peer's endpoint says nothing any more. */
static void silence(struct peer *p)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	cr_assert_eq(ibv_modify_qp(p->id->qp, &attr, IBV_QP_STATE), 0);
}

Test(rsocket_fault, a_peer_that_falls_silent_is_a_timeout_for_a_reader)
{
	struct peer p = connect_brief_peer();
	char c;

	silence(&p);
	put(p.fd, "lost", 4);
	cr_expect_eq(errno_of(rrecv(p.fd, &c, 1, 0)), ETIMEDOUT);
	cr_expect_eq(rrecv(p.fd, &c, 1, 0), 0);
	rclose(p.fd);
	drop_peer(&p);
}

Test(rsocket_fault, data_that_is_lost_after_the_peers_end_is_an_error)
{
	struct peer p = connect_brief_peer();

	send_control(&p, ur_rs_word(UR_RS_CONTROL, UR_RS_SHUTDOWN));
	cr_expect(await(p.fd, POLLIN) & POLLIN);
	silence(&p);
	put(p.fd, "lost", 4);
	cr_expect(await(p.fd, 0) & POLLERR);
	cr_expect_eq(error_of(p.fd), ETIMEDOUT);
	rclose(p.fd);
	drop_peer(&p);
}

Test(rsocket_fault, a_peer_that_has_all_data_may_go_after_its_end)
{
	struct peer p = connect_peer(0);

	put(p.fd, "fine", 4);
	await_messages(&p, 1);
	send_control(&p, ur_rs_word(UR_RS_CONTROL, UR_RS_SHUTDOWN));
	cr_expect(await(p.fd, POLLIN) & POLLIN);
	rdma_disconnect(p.id);
	cr_expect(await(p.fd, 0) & POLLHUP);
	cr_expect_eq(error_of(p.fd), 0);
	rclose(p.fd);
	drop_peer(&p);
}

static void reset(int fd)
{
	struct linger now = {.l_onoff = 1};

	rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	rclose(fd);
}

static int listener_with_depth(int depth)
{
	int fd = serve(IP_B);

	cr_assert_eq(rsetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &depth, sizeof(depth)), 0);
	return fd;
}

#define MANY 5000 /* messages; more than one look takes */

/* The peer refuses the WRITE, after much that it has said itself. */
Test(rsocket_fault, what_has_arrived_is_read_before_an_error_of_sending)
{
	struct peer p = connect_peer_to(listener_with_depth(MANY + 8), 0x100);
	uint8_t got[MANY];

	for (int i = 0; i < MANY; i++)
		send_control(&p, ur_rs_word(UR_RS_DATA, 1));
	put(p.fd, "lost", 4);
	cr_expect_eq(rrecv(p.fd, got, MANY, MSG_WAITALL), MANY);
	cr_expect_eq(errno_of(rrecv(p.fd, got, 1, 0)), ECONNRESET);
	rclose(p.fd);
	drop_peer(&p);
}

static int fail_to_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	*bad = wr;
	return ENOMEM;
}

/* The queue pair is sound, so the peer would never know. */
Test(rsocket_fault, a_post_that_fails_ends_the_connection_for_both)
{
	struct peer p = connect_peer(0);
	struct rdma_cm_id *b = new_id(B, RDMA_PS_TCP);
	struct ibv_context_ops saved;
	char got[5];

	cr_assert_eq(try_bind(b, IP_B, PORT + 1), 0);
	put(p.fd, "fine", 4);
	send_control(&p, ur_rs_word(UR_RS_DATA, 5));
	saved = b->verbs->ops;
	b->verbs->ops.post_send = fail_to_post;
	put(p.fd, "lost", 4);
	cr_expect_eq(rrecv(p.fd, got, 5, MSG_WAITALL), 5);
	cr_expect_eq(errno_of(rrecv(p.fd, got, 1, 0)), ECONNRESET);
	expect(ch[A], RDMA_CM_EVENT_DISCONNECTED);
	b->verbs->ops = saved;
	free_id(b);
	rclose(p.fd);
	drop_peer(&p);
}

static void *send_two_buffers(void *arg)
{
	static const uint8_t data[4096];

	return (void *)(intptr_t)rsend(*(int *)arg, data, sizeof(data), 0);
}

Test(rsocket_fault, an_error_behind_a_part_that_was_sent_is_told_afterwards)
{
	struct peer p = connect_peer(0);
	pthread_t t;
	void *sent;

	pthread_create(&t, NULL, send_two_buffers, &p.fd);
	await_messages(&p, 1);
	rdma_disconnect(p.id);
	pthread_join(t, &sent);
	cr_expect_eq((intptr_t)sent, 2048);
	cr_expect_eq(error_of(p.fd), ECONNRESET);
	rclose(p.fd);
	drop_peer(&p);
}

/* ---- the end ---- */

static void *shut_down(void *arg)
{
	rshutdown(*(int *)arg, SHUT_RDWR);
	return NULL;
}

static void *close_it(void *arg)
{
	rclose(*(int *)arg);
	return NULL;
}

/* RSOCKET-CLOSE-01. The peer has four receives, and no more until rclose() has sent the other thread away. */
Test(rsocket_fault, close_waits_for_what_another_thread_has_sent)
{
	struct peer p = connect_peer(0);
	pthread_t shutter, closer;

	/* With the message that grants the second half of the buffer, and the end, these are seven. */
	for (int i = 0; i < 5; i++)
		put(p.fd, "x", 1);
	pthread_create(&shutter, NULL, shut_down, &p.fd);
	while (!rsend(p.fd, "", 0, 0))
		;
	pthread_create(&closer, NULL, close_it, &p.fd);
	pthread_join(shutter, NULL);
	await_messages(&p, 4);
	for (int i = 0; i < 3; i++)
		post_receive(p.id);
	cr_expect_eq(await_messages(&p, 3), ur_rs_word(UR_RS_CONTROL, UR_RS_DISCONNECT));
	pthread_join(closer, NULL);
	drop_peer(&p);
}

/* ---- waiting ---- */

/* Verbs promise no event for what was left behind by the last look. */
Test(rsocket_fault, a_writer_does_not_sleep_while_messages_are_left)
{
	struct peer p = connect_peer_to(listener_with_depth(MANY + 8), 0);
	static const uint8_t all[2048];

	/* With the grant of the second half, these take the peer's receives: nothing that is sent completes later. */
	put(p.fd, all, 1);
	put(p.fd, all, 1);
	put(p.fd, all, sizeof(all) - 2);
	await_messages(&p, 4);
	for (int i = 0; i < MANY; i++)
		send_control(&p, ur_rs_word(UR_RS_DATA, 0));
	write_target(&p, IBV_WR_RDMA_WRITE_WITH_IMM);
	put(p.fd, "x", 1);
	reset(p.fd); /* the peer has no receive for the end */
	drop_peer(&p);
}
