/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device under test: opens a device and executes commands, one per line. It does not know
 * packets and does not judge results.
 */
#include "dut.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "dut_line.h"

#define OBJECTS	   64
#define CQ_ENTRIES 512
#define LINE_BYTES (1u << 20)
#define IDLE_NS	   100000 /* time that it sleeps if there is nothing to do */
#define IDLE_AFTER 64

struct region {
	struct ibv_mr *mr;
	uint8_t *bytes;
};

struct queue_pair {
	struct ibv_qp *qp;
	struct ibv_cq *cq[2]; /* CQ of sends, of receives */
	struct ibv_srq *srq;
};

static struct ibv_context *ctx;
static struct ibv_pd *pds[2];
static struct region regions[OBJECTS];
static struct queue_pair qps[OBJECTS];
static bool quit;

/* A command returns 0 or an errno value. */
typedef int (*command_fn)(struct dut_line *l);

static struct queue_pair *qp_of(const struct dut_line *l)
{
	uint64_t i = dut_line_number(l, "qp", OBJECTS);

	return i < OBJECTS && qps[i].qp ? &qps[i] : NULL;
}

/* The region `mr`; NULL if [off, off + len) is not inside. */
static struct region *region_of(const struct dut_line *l)
{
	uint64_t i = dut_line_number(l, "mr", OBJECTS), off = dut_line_number(l, "off", 0);
	uint64_t len = dut_line_number(l, "len", 0);

	if (i >= OBJECTS || !regions[i].bytes)
		return NULL;
	return off + len <= regions[i].mr->length ? &regions[i] : NULL;
}

/* ---- memory ---- */

static int do_mr(struct dut_line *l)
{
	size_t size = dut_line_number(l, "size", 4096);
	unsigned i = 0;

	while (i < OBJECTS && regions[i].bytes)
		i++;
	if (i == OBJECTS)
		return ENOSPC;
	regions[i].bytes = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	if (!regions[i].bytes)
		return ENOMEM;
	memset(regions[i].bytes, 0, size);
	regions[i].mr = V(reg_mr)(pds[dut_line_number(l, "pd", 0) & 1], regions[i].bytes, size,
				  (int)dut_line_number(l, "access", 0xf));
	if (!regions[i].mr) {
		free(regions[i].bytes);
		regions[i].bytes = NULL;
		return errno;
	}
	dut_line_say(l, " mr=%u addr=%llu rkey=%u lkey=%u", i,
		     (unsigned long long)(uintptr_t)regions[i].bytes, regions[i].mr->rkey,
		     regions[i].mr->lkey);
	return 0;
}

static int do_dereg(struct dut_line *l)
{
	struct region *r = region_of(l);
	int rc = r ? V(dereg_mr)(r->mr) : ENOENT;

	if (rc == 0) {
		free(r->bytes);
		r->bytes = NULL;
	}
	return rc;
}

static int nibble(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static int do_write(struct dut_line *l)
{
	struct region *r = region_of(l);
	const char *hex = dut_line_text(l, "hex");
	size_t off = dut_line_number(l, "off", 0);

	if (!r || !hex || off + strlen(hex) / 2 > r->mr->length)
		return EINVAL;
	for (; hex[0] && hex[1]; hex += 2, off++)
		r->bytes[off] = (uint8_t)(nibble(hex[0]) << 4 | nibble(hex[1]));
	return 0;
}

static int do_read(struct dut_line *l)
{
	struct region *r = region_of(l);

	if (!r)
		return EINVAL;
	dut_line_say(l, " hex=");
	dut_line_say_bytes(l, r->bytes + dut_line_number(l, "off", 0),
			   dut_line_number(l, "len", 0));
	return 0;
}

/* ---- queue pairs ---- */

static const struct {
	const char *word;
	enum ibv_qp_type type;
} types[] = {{"rc", IBV_QPT_RC}, {"uc", IBV_QPT_UC}, {"ud", IBV_QPT_UD}};

static void drop_qp(struct queue_pair *q)
{
	if (q->qp)
		V(destroy_qp)(q->qp);
	for (unsigned i = 0; i < 2; i++)
		if (q->cq[i])
			V(destroy_cq)(q->cq[i]);
	if (q->srq)
		V(destroy_srq)(q->srq);
	memset(q, 0, sizeof(*q));
}

static int make_qp(struct dut_line *l, struct queue_pair *q, enum ibv_qp_type type)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 64, .max_sge = 1}};
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 2, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	const char *mode = dut_line_text(l, "mode");
	int rc;

	for (unsigned i = 0; i < 2; i++)
		q->cq[i] = V(create_cq)(ctx, CQ_ENTRIES, NULL, NULL, 0);
	if (dut_line_number(l, "srq", 0)) {
		q->srq = V(create_srq)(pds[0], &srq);
		if (!q->srq)
			return errno;
	}
	init.send_cq = q->cq[0];
	init.recv_cq = q->cq[1];
	init.srq = q->srq;
	q->qp = V(create_qp)(pds[0], &init);
	if (!q->qp)
		return errno;
	rc = mode && type == IBV_QPT_RC ? dut_set_mode(q->qp, mode) : 0;
	if (rc)
		return rc;
	attr.qkey = (uint32_t)dut_line_number(l, "qkey", 0x11111111);
	attr.qp_access_flags = (unsigned)dut_line_number(l, "access", 0xf);
	return V(modify_qp)(q->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int do_qp(struct dut_line *l)
{
	const char *word = dut_line_text(l, "type");
	unsigned i = 0, t = 0;
	int rc;

	while (i < OBJECTS && qps[i].qp)
		i++;
	while (t < 3 && word && strcmp(word, types[t].word) != 0)
		t++;
	if (i == OBJECTS || t == 3 || !word)
		return EINVAL;
	rc = make_qp(l, &qps[i], types[t].type);
	if (rc) {
		drop_qp(&qps[i]);
		return rc;
	}
	dut_line_say(l, " qp=%u qpn=%u", i, qps[i].qp->qp_num);
	return 0;
}

static int parse_gid(const char *text, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (text && inet_pton(AF_INET, text, gid->raw + 12) == 1) {
		gid->raw[10] = gid->raw[11] = 0xff;
		return 0;
	}
	return text && inet_pton(AF_INET6, text, gid->raw) == 1 ? 0 : EINVAL;
}

static int fill_path(struct dut_line *l, struct ibv_ah_attr *ah)
{
	ah->is_global = 1;
	ah->port_num = 1;
	ah->grh.hop_limit = 64;
	ah->grh.traffic_class = (uint8_t)dut_line_number(l, "tclass", 0);
	ah->grh.sgid_index = (uint8_t)dut_line_number(l, "gid", 0);
	return parse_gid(dut_line_text(l, "ip"), &ah->grh.dgid);
}

static int to_rtr(struct dut_line *l, struct queue_pair *q)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask = IBV_QP_STATE, mtu = (int)dut_line_number(l, "mtu", 1024);

	if (q->qp->qp_type == IBV_QPT_UD)
		return V(modify_qp)(q->qp, &attr, mask);
	if (fill_path(l, &attr.ah_attr))
		return EINVAL;
	attr.path_mtu = (enum ibv_mtu)(__builtin_ctz((unsigned)mtu) - 7);
	attr.dest_qp_num = (uint32_t)dut_line_number(l, "dest", 0);
	attr.rq_psn = (uint32_t)dut_line_number(l, "rq_psn", 0);
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (q->qp->qp_type == IBV_QPT_RC) {
		attr.max_dest_rd_atomic = (uint8_t)dut_line_number(l, "dest_rd", 4);
		attr.min_rnr_timer = (uint8_t)dut_line_number(l, "min_rnr", 12);
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	return V(modify_qp)(q->qp, &attr, mask);
}

static int to_rts(struct dut_line *l, struct queue_pair *q)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	attr.sq_psn = (uint32_t)dut_line_number(l, "sq_psn", 0);
	if (q->qp->qp_type == IBV_QPT_RC) {
		attr.timeout = (uint8_t)dut_line_number(l, "timeout", 0);
		attr.retry_cnt = (uint8_t)dut_line_number(l, "retry", 3);
		attr.rnr_retry = (uint8_t)dut_line_number(l, "rnr_retry", 3);
		attr.max_rd_atomic = (uint8_t)dut_line_number(l, "rd", 4);
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	}
	return V(modify_qp)(q->qp, &attr, mask);
}

static int do_connect(struct dut_line *l)
{
	struct queue_pair *q = qp_of(l);
	int rc = q ? to_rtr(l, q) : ENOENT;

	return rc ? rc : to_rts(l, q);
}

static const char *const states[] = {"reset", "init", "rtr", "rts", "sqd", "sqe", "err"};

static int do_modify(struct dut_line *l)
{
	struct queue_pair *q = qp_of(l);
	const char *word = dut_line_text(l, "state");

	for (unsigned i = 0; q && word && i < 7; i++) {
		struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)i};

		if (strcmp(word, states[i]) == 0)
			return V(modify_qp)(q->qp, &attr, IBV_QP_STATE);
	}
	return EINVAL;
}

static int do_state(struct dut_line *l)
{
	struct queue_pair *q = qp_of(l);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {0};
	int rc = q ? V(query_qp)(q->qp, &attr, IBV_QP_STATE, &init) : ENOENT;

	if (rc == 0)
		dut_line_say(l, " state=%s", attr.qp_state < 7 ? states[attr.qp_state] : "?");
	return rc;
}

/* Destroys all queue pairs and memory, before the next test. */
static int do_clear(struct dut_line *l)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		drop_qp(&qps[i]);
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (!regions[i].bytes)
			continue;
		V(dereg_mr)(regions[i].mr);
		free(regions[i].bytes);
		regions[i].bytes = NULL;
	}
	return 0;
}

/* ---- work requests ---- */

static struct ibv_sge sge_of(const struct dut_line *l, const struct region *r)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)r->bytes + dut_line_number(l, "off", 0),
		.length = (uint32_t)dut_line_number(l, "len", 0),
		.lkey = (uint32_t)dut_line_number(l, "lkey", r->mr->lkey),
	};
}

static int do_recv(struct dut_line *l)
{
	struct queue_pair *q = qp_of(l);
	struct region *r = region_of(l);
	struct ibv_recv_wr wr = {.wr_id = dut_line_number(l, "id", 0), .num_sge = 1}, *bad;
	struct ibv_sge sge;

	if (!q || !r)
		return EINVAL;
	sge = sge_of(l, r);
	wr.sg_list = &sge;
	return q->srq ? V(post_srq_recv)(q->srq, &wr, &bad) : V(post_recv)(q->qp, &wr, &bad);
}

static const struct {
	const char *word;
	enum ibv_wr_opcode op;
} operations[] = {
	{"send", IBV_WR_SEND},
	{"send_imm", IBV_WR_SEND_WITH_IMM},
	{"send_inv", IBV_WR_SEND_WITH_INV},
	{"write", IBV_WR_RDMA_WRITE},
	{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
	{"read", IBV_WR_RDMA_READ},
	{"cas", IBV_WR_ATOMIC_CMP_AND_SWP},
	{"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD},
};

static int fill_send(struct dut_line *l, struct queue_pair *q, struct ibv_send_wr *wr,
		     struct ibv_ah **ah)
{
	uint64_t raddr = dut_line_number(l, "raddr", 0);
	uint32_t rkey = (uint32_t)dut_line_number(l, "rkey", 0);
	struct ibv_ah_attr path = {0};

	wr->imm_data = htonl((uint32_t)dut_line_number(l, "imm", 0));
	if (wr->opcode == IBV_WR_SEND_WITH_INV)
		wr->invalidate_rkey = rkey;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = raddr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = dut_line_number(l, "compare_add", 0);
		wr->wr.atomic.swap = dut_line_number(l, "swap", 0);
	} else if (q->qp->qp_type == IBV_QPT_UD) {
		if (fill_path(l, &path))
			return EINVAL;
		*ah = V(create_ah)(pds[0], &path);
		if (!*ah)
			return errno;
		wr->wr.ud.ah = *ah;
		wr->wr.ud.remote_qpn = (uint32_t)dut_line_number(l, "dest", 0);
		wr->wr.ud.remote_qkey = (uint32_t)dut_line_number(l, "qkey", 0x11111111);
	} else {
		wr->wr.rdma.remote_addr = raddr;
		wr->wr.rdma.rkey = rkey;
	}
	return 0;
}

static int do_send(struct dut_line *l)
{
	struct queue_pair *q = qp_of(l);
	struct region *r = region_of(l);
	const char *word = dut_line_text(l, "op");
	struct ibv_send_wr wr = {.wr_id = dut_line_number(l, "id", 0), .num_sge = 1}, *bad;
	struct ibv_ah *ah = NULL;
	struct ibv_sge sge;
	unsigned i = 0;
	int rc;

	while (i < 8 && word && strcmp(word, operations[i].word) != 0)
		i++;
	if (!q || !r || !word || i == 8)
		return EINVAL;
	sge = sge_of(l, r);
	wr.sg_list = &sge;
	wr.opcode = operations[i].op;
	wr.send_flags = (dut_line_number(l, "fence", 0) ? IBV_SEND_FENCE : 0) |
			(dut_line_number(l, "solicited", 0) ? IBV_SEND_SOLICITED : 0);
	rc = fill_send(l, q, &wr, &ah);
	if (rc == 0)
		rc = V(post_send)(q->qp, &wr, &bad);
	if (ah)
		V(destroy_ah)(ah);
	return rc;
}

static int do_poll(struct dut_line *l)
{
	struct queue_pair *q = qp_of(l);
	struct ibv_wc wc;
	int n = 0;

	if (!q)
		return ENOENT;
	while (V(poll_cq)(q->cq[dut_line_number(l, "recv", 0) & 1], 1, &wc) == 1)
		dut_line_say(l, " wc%d=%llu:%d:%d:%u:%u:%u", n++, (unsigned long long)wc.wr_id,
			     wc.status, wc.opcode, wc.byte_len, wc.wc_flags, ntohl(wc.imm_data));
	return 0;
}

static int do_counters(struct dut_line *l)
{
	char *text = dut_counters(ctx);

	if (!text)
		return ENOMEM;
	dut_line_say(l, " json=");
	for (const char *p = text; *p; p++)
		if (*p != ' ')
			dut_line_say(l, "%c", *p);
	free(text);
	return 0;
}

static int do_hello(struct dut_line *l)
{
	dut_line_say(l, " impl=%s", DUT_IMPL);
	return 0;
}

static int do_quit(struct dut_line *l)
{
	quit = true;
	return 0;
}

static const struct {
	const char *word;
	command_fn fn;
} commands[] = {
	{"hello", do_hello},	   {"mr", do_mr},	  {"dereg", do_dereg},
	{"write", do_write},	   {"read", do_read},	  {"qp", do_qp},
	{"connect", do_connect},   {"modify", do_modify}, {"state", do_state},
	{"clear", do_clear},	   {"recv", do_recv},	  {"send", do_send},
	{"counters", do_counters}, {"poll", do_poll},	  {"quit", do_quit},
};

static void execute(char *text, int control)
{
	struct dut_line l;
	int rc = ENOSYS;
	char head[64];

	dut_line_parse(&l, text);
	for (size_t i = 0; l.word && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(l.word, commands[i].word) == 0)
			rc = commands[i].fn(&l);
	if (rc)
		snprintf(head, sizeof(head), "error %d", rc);
	else
		snprintf(head, sizeof(head), "ok");
	dprintf(control, "%s%s\n", head, rc ? "" : l.reply);
	dut_line_free(&l);
}

/* Reads input and executes each complete line. Returns false if the tester has ended. */
static bool obey(int control)
{
	static char line[LINE_BYTES];
	static size_t have;
	ssize_t n = recv(control, line + have, sizeof(line) - have - 1, MSG_DONTWAIT);
	char *end;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	have += (size_t)n;
	line[have] = '\0';
	while ((end = strchr(line, '\n'))) {
		size_t used = (size_t)(end - line) + 1;

		*end = '\0';
		execute(line, control);
		have -= used;
		memmove(line, line + used, have + 1);
	}
	return have + 1 < sizeof(line);
}

static void serve(int control)
{
	const struct timespec nap = {.tv_nsec = IDLE_NS};
	unsigned idle = 0;

	while (!quit) {
		struct pollfd p = {.fd = control, .events = POLLIN};

		idle = dut_progress(ctx) ? 0 : idle + 1;
		if (ppoll(&p, 1, idle > IDLE_AFTER ? &nap : &(struct timespec){0}, NULL) > 0) {
			idle = 0;
			if (!obey(control))
				return;
		}
	}
}

/* Accepts the control connection of a tester on another machine. */
static int accept_tester(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, got;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1)) {
		perror("dut: listen");
		exit(2);
	}
	printf("listening\n");
	fflush(stdout);
	got = accept(fd, NULL, NULL);
	close(fd);
	return got;
}

static const struct option options[] = {
	{"device", required_argument, NULL, 'd'},
	{"set", required_argument, NULL, 's'},
	{"control", required_argument, NULL, 'c'},
	{"frames", required_argument, NULL, 'f'},
	{"ring", required_argument, NULL, 'r'},
	{"listen", required_argument, NULL, 'l'},
	{NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
	struct dut_options o = {.frames_fd = -1, .ring = "loop"};
	int control = -1, c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			o.device = optarg;
		else if (c == 's' && o.set_cnt < 31)
			o.set[o.set_cnt++] = optarg;
		else if (c == 'c')
			control = atoi(optarg);
		else if (c == 'f')
			o.frames_fd = atoi(optarg);
		else if (c == 'r')
			o.ring = optarg;
		else if (c == 'l')
			control = accept_tester((uint16_t)atoi(optarg));
		else
			return 2;
	}
	if (!o.device || control < 0) {
		fprintf(stderr, "dut: --device and --control or --listen are needed\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN); /* the end of the tester is not an error */
	ctx = dut_open(&o);
	for (unsigned i = 0; i < 2; i++)
		pds[i] = V(alloc_pd)(ctx);
	if (!pds[0] || !pds[1])
		return 2;
	serve(control);
	do_clear(NULL);
	for (unsigned i = 0; i < 2; i++)
		V(dealloc_pd)(pds[i]);
	dut_close(ctx);
	return 0;
}
