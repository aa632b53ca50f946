/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "cm/cm.h"
#include "fuzz.h"

/*
 * A connection manager with few slots gets a random sequence of MADs, commands and time steps. The
 * MADs are random, except for the header and, often, the communication ids, which belong to live
 * ids. Callbacks answer with random commands. The CM is validated after each step. At the end every
 * slot must become free once the caller has destroyed all ids.
 */
#define SLOTS 3
#define MADS  6

struct fuzz {
	struct ur_cm *cm;
	const uint8_t *p, *end;
	uint64_t now;
	struct ur_cm_id ids[SLOTS + 1];	  /* the last handle of each slot, by index */
	struct ur_cm_id stale;		  /* a handle that was replaced */
	uint8_t mads[MADS][UR_MAD_BYTES]; /* MADs sent */
	unsigned mad_cnt;
};

static uint8_t u8(struct fuzz *f)
{
	return f->p < f->end ? *f->p++ : 0;
}

static void bytes(struct fuzz *f, uint8_t *to, size_t n)
{
	while (n--)
		*to++ = u8(f);
}

static struct ur_cm_id some_id(struct fuzz *f)
{
	uint8_t which = u8(f) % (SLOTS + 1);

	return which < SLOTS ? f->ids[which] : f->stale;
}

static void remember(struct fuzz *f, struct ur_cm_id id)
{
	struct ur_cm_id *slot =
		&f->ids[id.v & SLOTS]; /* the index of three slots has two bits of a handle */

	if (slot->v != id.v)
		f->stale = *slot;
	*slot = id;
}

static struct ur_gid some_gid(struct fuzz *f)
{
	return ur_gid_from_ipv4(0x0a630001u + u8(f) % 2);
}

static void connect_some(struct fuzz *f)
{
	struct ur_cm_connect_attr attr = {.path = {.len = UR_PATH_MIN_BYTES},
					  .dgid = some_gid(f),
					  .service_id = u8(f) % 4,
					  .qpn = {u8(f)},
					  .pmtu = u8(f) % 7,
					  .responder_resources = u8(f),
					  .initiator_depth = u8(f),
					  .remote_resp_timeout = u8(f) & 31,
					  .local_resp_timeout = u8(f) & 31,
					  .max_cm_retries = u8(f) & 15};
	struct ur_cm_id id;

	attr.sgid = attr.dgid;
	if (ur_cm_connect(f->cm, NULL, &attr, f->now, &id) == 0)
		remember(f, id);
}

static void sidr_some(struct fuzz *f)
{
	struct ur_cm_sidr_attr attr = {.path = {.len = UR_PATH_MIN_BYTES},
				       .dgid = some_gid(f),
				       .service_id = u8(f) % 4,
				       .resp_timeout = u8(f) & 31,
				       .max_cm_retries = u8(f) & 15};
	struct ur_cm_id id;

	if (ur_cm_sidr_req(f->cm, NULL, &attr, f->now, &id) == 0)
		remember(f, id);
}

static void command(struct fuzz *f, struct ur_cm_id id)
{
	struct ur_cm_accept_attr accept = {.qpn = {0x10}, .responder_resources = 7};

	switch (u8(f) % 12) {
	case 0:
		connect_some(f);
		break;
	case 1:
		sidr_some(f);
		break;
	case 2:
	case 3:
		ur_cm_accept(f->cm, id, &accept, f->now);
		break;
	case 4:
	case 5:
		ur_cm_rtu(f->cm, id, f, u8(f), f->now);
		break;
	case 6:
		ur_cm_reject(f->cm, id, u8(f), NULL, 0, f->now);
		break;
	case 7:
		ur_cm_mra(f->cm, id, u8(f) & 31, f->now);
		break;
	case 8:
		ur_cm_disconnect(f->cm, id, NULL, 0, f->now);
		break;
	case 9:
		ur_cm_sidr_rep(f->cm, id, u8(f), ur_qpn(0x11), 1, NULL, 0, f->now);
		break;
	case 10:
		ur_cm_destroy(f->cm, id, f->now);
		break;
	default:
		ur_cm_establish(f->cm, id);
		break;
	}
}

static void sink(void *arg, const struct ur_cm_event *ev)
{
	struct fuzz *f = arg;

	FUZZ_CHECK((ur_cm_state(f->cm, ev->id) == UR_CM_ST_FREE) == ev->final);
	if (!ev->final)
		remember(f, ev->id);
	command(f, ev->id);
}

static void fetch(struct fuzz *f)
{
	struct ur_cm_out out;

	while (ur_cm_output(f->cm, &out, 1, f->now))
		memcpy(f->mads[f->mad_cnt++ % MADS], out.mad, UR_MAD_BYTES);
}

static void input(struct fuzz *f, const uint8_t mad[UR_MAD_BYTES])
{
	struct ur_cm_src src = {
		.sgid = some_gid(f), .sqpn = {1}, .path = {.len = UR_PATH_MIN_BYTES}};

	ur_cm_input(f->cm, mad, &src, f->now);
}

/* Returns one of our own messages, perhaps slightly changed. This leads to many states. */
static void echo(struct fuzz *f)
{
	uint8_t mad[UR_MAD_BYTES];
	unsigned flips = u8(f) % 4;

	memcpy(mad, f->mads[u8(f) % MADS], sizeof(mad));
	while (flips--)
		mad[16 + u8(f) % 160] = u8(f);
	input(f, mad);
}

/* A random message for ids that may be live. */
static void invent(struct fuzz *f)
{
	uint8_t mad[UR_MAD_BYTES] = {1, 7, 2, 3};
	uint8_t *body = mad + UR_MAD_HDR_BYTES;
	uint8_t which = u8(f);

	mad[17] = (uint8_t)(0x10 + u8(f) % 12);
	bytes(f, body, 16);
	bytes(f, body + 24, 36);
	if (which & 1)
		memcpy(body, f->mads[which >> 4 & 3] + UR_MAD_HDR_BYTES, 4);
	if (which & 2)
		memcpy(body + 4, f->mads[which >> 4 & 3] + UR_MAD_HDR_BYTES, 4);
	if (which & 4)
		memcpy(body, f->mads[which >> 6 & 3] + UR_MAD_HDR_BYTES + 4, 4);
	input(f, mad);
}

static void pass_time(struct fuzz *f)
{
	uint64_t next = ur_cm_next_deadline(f->cm);

	f->now += (uint64_t)u8(f) * 1000000;
	if (u8(f) & 1 && next != UINT64_MAX && next > f->now)
		f->now = next;
	ur_cm_expire(f->cm, f->now);
	FUZZ_CHECK(ur_cm_next_deadline(f->cm) > f->now);
}

static void step(struct fuzz *f)
{
	switch (u8(f) % 8) {
	case 0:
	case 1:
		command(f, some_id(f));
		break;
	case 2:
	case 3:
	case 4:
		echo(f);
		break;
	case 5:
	case 6:
		invent(f);
		break;
	default:
		pass_time(f);
		break;
	}
	ur_cm_validate(f->cm);
	fetch(f);
}

/* Destroys all ids. In bounded time every slot must be free. */
static void let_go(struct fuzz *f)
{
	uint64_t next;
	unsigned i;

	f->end = f->p;
	for (i = 0; i < SLOTS; i++)
		ur_cm_destroy(f->cm, f->ids[i], f->now);
	while ((next = ur_cm_next_deadline(f->cm)) != UINT64_MAX) {
		f->now = next;
		ur_cm_expire(f->cm, f->now);
		for (i = 0; i < SLOTS; i++)
			ur_cm_destroy(f->cm, f->ids[i], f->now);
		ur_cm_validate(f->cm);
		fetch(f);
	}
	FUZZ_CHECK(ur_cm_ids_in_use(f->cm) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ur_cm_limits limits = {
		.max_ids = SLOTS, .max_listeners = 4, .max_pending = 2, .max_tx = 4};
	struct fuzz f = {.p = data, .end = data + size, .now = 1};
	struct ur_cm_attr attr = {
		.ca_guid = 1, .seed = 7, .timewait_ns = 50000000, .sink = sink, .sink_ctx = &f};
	void *mem = aligned_alloc(16, (ur_cm_size(&limits) + 15) / 16 * 16);

	if (!mem)
		return 0;
	f.cm = ur_cm_init(mem, &limits, &attr);
	for (enum ur_cm_kind kind = 0; kind < UR_CM_KIND_CNT; kind++) {
		ur_cm_listen(f.cm, kind, 1, NULL);
		ur_cm_listen(f.cm, kind, 2, NULL);
	}
	while (f.p < f.end)
		step(&f);
	let_go(&f);
	free(mem);
	return 0;
}
