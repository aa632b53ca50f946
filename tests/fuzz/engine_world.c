/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine_world.h"

#include <string.h>

#include "fuzz.h"

#define CQ_CQE	 16
#define RING_MAX 8192

static struct {
	_Alignas(64) uint8_t engine[1 << 20];
	_Alignas(64) uint8_t mem[4096];
	_Alignas(64) uint8_t rings[QPS][RING_MAX];
	_Alignas(64) uint8_t srq_ring[4096];
	struct ibv_wc cq_ring[64];
} memory;

struct ur_engine *engine;
struct ur_mem *mem;
struct ur_cq cq;
struct ur_srq srq;
struct ur_qp *qps[QPS];
struct ur_ah ah;
uint8_t *region;
uint32_t key, readonly_key;
uint64_t now_ns;

static const struct {
	enum ibv_qp_type type;
	enum ur_mode mode;
	bool srq, strict;
	uint8_t paths;
	struct ur_adm_agreed agreed;
} kinds[QPS] = {
	{.type = IBV_QPT_RC},
	{.type = IBV_QPT_RC},
	{.type = IBV_QPT_UC},
	{.type = IBV_QPT_UD},
	{.type = IBV_QPT_RC, .srq = true},
	{.type = IBV_QPT_RC, .mode = UR_MODE_REORDER},
	{.type = IBV_QPT_RC,
	 .mode = UR_MODE_EXTENDED,
	 .strict = true,
	 .agreed = {.receives_status = true,
		    .notifies = true,
		    .paper = true,
		    .delay = true,
		    .pool = POOL + 1}},
	{.type = IBV_QPT_RC,
	 .mode = UR_MODE_EXTENDED,
	 .srq = true,
	 .paths = 2,
	 .agreed = {.sends_status = true,
		    .receives_status = true,
		    .notifies = true,
		    .delay = true,
		    .pool = POOL}},
};

static void on_completion(void *ctx, struct ur_cq *c)
{
	(void)ctx, (void)c;
}

static void on_async(void *ctx, enum ibv_event_type type, void *user)
{
	(void)ctx, (void)type, (void)user;
}

static void on_cross_worker(void *ctx, struct ur_cq *c, const struct ibv_wc *wc, bool solicited)
{
	(void)ctx, (void)c, (void)wc, (void)solicited;
	FUZZ_CHECK(false);
}

static void on_cm(void *ctx, const struct ur_cm_event *ev)
{
	(void)ctx, (void)ev;
}

static struct ur_path_attr path_attr(void)
{
	return (struct ur_path_attr){.src = ur_gid_from_ipv4(0x0a000001),
				     .dst = ur_gid_from_ipv4(0x0a000002),
				     .sport = 0xc000};
}

void connect_qp(struct ur_qp *qp)
{
	struct ur_path_attr path = path_attr();
	struct ibv_qp_attr a = {
		.port_num = 1,
		.qkey = QKEY,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = PEER_QPN,
		.rq_psn = FIRST_PSN,
		.sq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 2,
		.max_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = 8,
		.retry_cnt = 2,
		.rnr_retry = 2,
	};
	int connected = qp->ops->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	int rtr = qp->ops->type == IBV_QPT_UD
			  ? 0
			  : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts = IBV_QP_SQ_PSN;

	if (qp->ops->type == IBV_QPT_RC) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
		a.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	}
	a.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	a.qp_state = IBV_QPS_INIT;
	FUZZ_CHECK(ur_engine_modify_qp(engine, qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | connected,
				       NULL, now_ns) == 0);
	a.qp_state = IBV_QPS_RTR;
	FUZZ_CHECK(ur_engine_modify_qp(engine, qp, &a, IBV_QP_STATE | rtr,
				       qp->ops->type == IBV_QPT_UD ? NULL : &path, now_ns) == 0);
	a.qp_state = IBV_QPS_RTS;
	FUZZ_CHECK(ur_engine_modify_qp(engine, qp, &a, IBV_QP_STATE | rts, NULL, now_ns) == 0);
}

void make_qp(unsigned i)
{
	struct ur_qp_create c = {
		.type = kinds[i].type,
		.pd = PD,
		.send_cq = &cq,
		.recv_cq = &cq,
		.srq = kinds[i].srq ? &srq : NULL,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 32},
		.sig_all = i == 1,
		.max_dest_rd_atomic = 2,
		.rings = memory.rings[i],
	};

	FUZZ_CHECK(ur_qp_rings_bytes(&c) <= RING_MAX);
	FUZZ_CHECK(ur_engine_create_qp(engine, &c, now_ns, &qps[i]) == 0);
	if (kinds[i].mode)
		FUZZ_CHECK(ur_qp_set_mode(qps[i], kinds[i].mode, kinds[i].strict) == 0);
	if (kinds[i].mode)
		FUZZ_CHECK(ur_qp_set_agreed(qps[i], &kinds[i].agreed) == 0);
	if (kinds[i].paths)
		FUZZ_CHECK(ur_qp_set_paths(qps[i], kinds[i].paths) == 0);
	connect_qp(qps[i]);
}

void make_world(void)
{
	/* Short times, so that they expire. */
	static const struct ur_adm_attr admission = {
		.mode = UR_ADM_INTELLIGENT,
		.fallback_ns = 1000000,
		.grant_life_ns = 100000,
		.refusal_life_ns = 5000000,
		.status_ns = 4000000,
	};
	static const struct ur_engine_mgmt_attr mgmt = {.config = {.open = true},
							.mac = {2, 0, 0, 0, 0, 1}};
	struct ur_path_attr path = path_attr();
	struct ur_engine_attr attr = {
		.limits = {.max_qp = QPS,
			   .workers = 1,
			   .cm = {.max_ids = 2, .max_listeners = 1, .max_pending = 1, .max_tx = 4},
			   .reorder_slots = 6,
			   .reorder_slot_bytes = 4096,
			   .reorder_contexts = 2,
			   .read_gaps = 2,
			   .loss_slabs = 6,
			   .loss_slabs_max = 6,
			   .loss_slab_bytes = 4096,
			   .loss_first = 16,
			   .spray_contexts = 1,
			   .admission = 2,
			   .max_sge = 2},
		.sink = {.completion = on_completion,
			 .async = on_async,
			 .cross_worker = on_cross_worker},
		.cm = {.ca_guid = 1, .seed = 1, .timewait_ns = 1000000, .sink = on_cm},
		.random = 1,
		.time_wait_ns = 1000,
		.window = 8,
		.ackreq_every = 4,
		.mtu_shift = 12,
		.admission = &admission,
		.mgmt = &mgmt,
	};

	ur_engine_mgmt_limits_default(&attr.limits.mgmt);
	now_ns = 1000000;
	FUZZ_CHECK(ur_engine_size(&attr.limits) <= sizeof(memory.engine));
	FUZZ_CHECK(ur_mem_size(8) <= sizeof(memory.mem));
	mem = ur_mem_init(memory.mem, 8);
	attr.mem = mem;
	region = malloc(2 * MR_BYTES);
	FUZZ_CHECK(region);
	memset(region, 0x5a, 2 * MR_BYTES);
	FUZZ_CHECK(ur_mem_register(mem, PD, region, MR_BYTES, 0x1000,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
				   5, &key) == 0);
	FUZZ_CHECK(ur_mem_register(mem, PD, region + MR_BYTES, MR_BYTES, 0x1000,
				   IBV_ACCESS_REMOTE_READ | UR_ACCESS_REMOTE_INVALIDATE, 77,
				   &readonly_key) == 0);
	FUZZ_CHECK(ur_cq_ring_bytes(CQ_CQE) <= sizeof(memory.cq_ring));
	ur_cq_init(&cq, memory.cq_ring, CQ_CQE, 0, NULL);
	FUZZ_CHECK(ur_rq_ring_bytes(DEPTH, 2) <= sizeof(memory.srq_ring));
	ur_srq_init(&srq, memory.srq_ring, DEPTH, 2, PD, NULL);
	srq.limit = 2;
	ur_path_init(&ah.path, &path);
	ah.pd = PD;
	engine = ur_engine_init(memory.engine, &attr, now_ns);
	for (unsigned i = 0; i < QPS; i++)
		make_qp(i);
}
