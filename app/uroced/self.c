/* SPDX-License-Identifier: BSD-3-Clause */
#include "self.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <jansson.h>

#include "questions.h"
#include "wire/icrc.h"
#include "wire/mad_path.h"

#define CM_ANSWERS 64 /* that wait to be sent */

struct self {
	struct device dev;
	struct rte_mempool *pool;
	const struct ur_clock *clock;
	struct ur_cm *cm;
	uint32_t psn;
	bool up, announced;
	struct kernel *kernel; /* or NULL, then neigh is used */
	struct ur_neigh neigh;
};

/* ---- frames from the switch ---- */

/* A datagram to QP1. Without listeners and connections the connection manager refuses what is asked. */
static void take_mad(struct self *s, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_cm_src src = {.sgid = p->ip.src, .dgid = p->ip.dst, .sqpn = p->deth.sqpn};
	struct ur_path_attr back = {
		.src = p->ip.dst,
		.dst = p->ip.src,
		.tos = p->ip.tos & 0xfc,
		.ttl = 64,
		.sport = ur_path_back_sport(p->sport),
	};

	memcpy(back.smac, p->dmac, 6);
	memcpy(back.dmac, p->smac, 6);
	ur_path_init(&src.path, &back);
	/* What it drops, it counts itself. */
	(void)ur_cm_input(s->cm, p->payload, &src, now_ns);
}

static void take(struct self *s, const uint8_t *frame, uint32_t len, uint8_t client,
		 uint64_t now_ns)
{
	struct ur_packet p;

	if (s->kernel)
		kernel_ask(s->kernel, frame, len, client, now_ns);
	else if (ur_neigh_input(&s->neigh, frame, len, now_ns) != UR_NEIGH_OTHER)
		return;
	if (ur_packet_decode(frame, len, &p) == UR_DROP_NONE && !p.has_vlan &&
	    ur_icrc_ok(frame, &p) && ur_mad_is_valid(&p) && p.bth.dqpn.v == UR_GSI_QPN &&
	    p.payload[1] == UR_MAD_CLASS_CM)
		take_mad(s, &p, now_ns);
}

static unsigned self_tx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct self *s = (struct self *)d;
	uint64_t now_ns = ur_clock_ns(s->clock);

	for (unsigned i = 0; i < n; i++) {
		take(s, rte_pktmbuf_mtod(m[i], uint8_t *), m[i]->data_len,
		     m[i]->port & (QUESTIONS_CLIENTS - 1), now_ns);
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

/* ---- frames to the switch ---- */

/* `looked`: for an answer of the kernel, in this call of self_rx(). One look is enough: it is many system calls, and frames wait. */
static bool asks_kernel(const struct self *s, bool looked, uint64_t now_ns)
{
	return s->kernel && !looked && kernel_wants_answer(s->kernel, now_ns);
}

static bool has_output(const struct self *s, bool looked)
{
	return asks_kernel(s, looked, ur_clock_ns(s->clock)) ||
	       s->neigh.out.head != s->neigh.out.tail || ur_cm_wants_output(s->cm);
}

static uint32_t next_frame(struct self *s, uint8_t *frame, bool *looked)
{
	struct ur_cm_out out;
	uint64_t now_ns = ur_clock_ns(s->clock);
	uint32_t len;

	if (asks_kernel(s, *looked, now_ns)) {
		*looked = true;
		if (kernel_answer(s->kernel, frame, now_ns))
			return KERNEL_FRAME;
	}
	len = (uint32_t)ur_neigh_output(&s->neigh, frame, s->dev.max_frame);
	if (len || !ur_cm_output(s->cm, &out, 1, now_ns))
		return len;
	return ur_mad_frame(frame, out.path, out.dest_qpn, ur_qpn(UR_GSI_QPN),
			    ur_psn(s->psn++ & UR_PSN_MASK), out.mad);
}

static unsigned self_rx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct self *s = (struct self *)d;
	bool looked = false;
	unsigned got = 0;
	uint32_t len;

	if (!s->up)
		return 0;
	if (!s->kernel && !s->announced)
		ur_neigh_announce(&s->neigh);
	s->announced = true;
	while (got < n && has_output(s, looked)) {
		m[got] = rte_pktmbuf_alloc(s->pool);
		if (!m[got])
			break;
		len = next_frame(s, rte_pktmbuf_mtod(m[got], uint8_t *), &looked);
		if (!len) { /* nothing, or one that is too long */
			rte_pktmbuf_free(m[got]);
			continue;
		}
		m[got]->data_len = (uint16_t)len;
		m[got]->pkt_len = len;
		got++;
	}
	return got;
}

/* ---- the device ---- */

static bool self_link(struct device *d)
{
	return ((struct self *)d)->up;
}

void self_set_link(struct device *d, bool up)
{
	((struct self *)d)->up = up;
}

static void self_close(struct device *d)
{
	struct self *s = (struct self *)d;

	free(s->cm);
	free(s);
}

static void self_stats(const struct device *d, json_t *out)
{
	const struct self *s = (const struct self *)d;
	json_t *neigh = json_object(), *cm = json_object();
	const struct ur_cm_counters *c = ur_cm_counters(s->cm);

	for (unsigned i = 0; i < UR_NEIGH_VERDICT_CNT; i++)
		json_object_set_new(neigh, ur_neigh_verdict_name(i),
				    json_integer((json_int_t)s->neigh.cnt[i]));
#define X(name, unit, help) json_object_set_new(cm, #name, json_integer((json_int_t)c->name));
	UR_CM_COUNTERS(X)
#undef X
	json_object_set_new(out, "neighbours", neigh);
	json_object_set_new(out, "cm", cm);
}

/* What else it has to send follows from what it gets. */
static bool self_interrupts(struct device *d, bool on)
{
	const struct self *s = (const struct self *)d;

	return !s->kernel || !kernel_is_asked(s->kernel, ur_clock_ns(s->clock));
}

static const struct device_ops self_ops = {.rx = self_rx,
					   .tx = self_tx,
					   .link = self_link,
					   .close = self_close,
					   .stats = self_stats,
					   .interrupts = self_interrupts};

static void no_event(void *ctx, const struct ur_cm_event *ev)
{
}

static struct ur_cm *make_cm(const uint8_t mac[6])
{
	static const struct ur_cm_limits limits = {
		.max_ids = 1, .max_pending = 1, .max_tx = CM_ANSWERS};
	struct ur_cm_attr attr = {
		.ca_guid = ur_mac_guid(mac), .timewait_ns = 1000000000, .sink = no_event};
	void *mem = aligned_alloc(16, (ur_cm_size(&limits) + 15) & ~(size_t)15);

	arc4random_buf(&attr.seed, sizeof(attr.seed));
	arc4random_buf(&attr.id_key, sizeof(attr.id_key));
	return mem ? ur_cm_init(mem, &limits, &attr) : NULL;
}

struct device *self_new(const struct self_attr *attr)
{
	struct self *s = calloc(1, sizeof(*s));
	struct ur_neigh_attr neigh = {.addr_cnt = 2};

	if (s)
		s->cm = make_cm(attr->mac);
	if (!s || !s->cm) {
		free(s);
		return NULL;
	}
	s->pool = attr->pool;
	s->clock = attr->clock;
	s->kernel = attr->kernel;
	s->dev.ops = &self_ops;
	s->dev.max_frame = attr->max_frame;
	memcpy(s->dev.mac, attr->mac, 6);
	strlcpy(s->dev.name, "the host itself", sizeof(s->dev.name));
	memcpy(neigh.mac, attr->mac, 6);
	neigh.addr[0] = (struct ur_neigh_addr){ur_gid_from_ipv4(attr->address), attr->prefix};
	neigh.addr[1] = (struct ur_neigh_addr){ur_neigh_link_local(attr->mac), 64};
	ur_neigh_init(&s->neigh, &neigh);
	return &s->dev;
}
