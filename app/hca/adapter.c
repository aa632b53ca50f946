/* SPDX-License-Identifier: BSD-3-Clause */
#include "adapter_priv.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"
#include "wire/smp.h"

#define PORT	     1
#define FRAMES_A_RUN 256
#define LINK_POLL_NS 100000000ull /* how often the link's state is looked at */
#define FRAME_ROOM   2048

/* ---- callbacks of the agent ---- */

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	const struct adapter *a = ctx;

	*link = (struct ur_nma_link){.up = a->link_was_up, .mtu = 5, .bps = a->link.bps};
}

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *counters)
{
	*counters = ((const struct adapter *)ctx)->counters;
}

/* It has neither packet buffers nor rings, and is hardly ever busy. */
static void get_gauges(void *ctx, struct ur_nma_gauges *gauges)
{
	*gauges = (struct ur_nma_gauges){.load = 0};
}

const struct ur_nma_ops adapter_nma_ops = {
	.get_link = get_link,
	.get_counters = get_counters,
	.get_gauges = get_gauges,
};

/* ---- programs to the agent ---- */

static bool is_smp(uint8_t mgmt_class)
{
	return mgmt_class == UR_MAD_CLASS_SMP_LID || mgmt_class == UR_MAD_CLASS_SMP_DR;
}

void adapter_send_local(void *arg, const uint8_t *mad, const struct ib_mad_addr *to)
{
	struct adapter *a = arg;
	const uint8_t qpn = is_smp(mad[1]) ? UR_SMI_QPN : UR_GSI_QPN;
	const struct ur_nma_from from = {
		.way = UR_MAD_LOCAL,
		.qpn = qpn,
		.sqpn = qpn,
		.slid = ur_nma_lid(a->nma, PORT, &(uint8_t){0}),
		.dlid = ntohs(to->lid),
	};

	ur_nma_input(a->nma, mad, &from, a->now);
}

/* ---- the agent to programs and the link ---- */

static void transmit(struct adapter *a, const struct ur_nma_out *out)
{
	uint8_t frame[FRAME_ROOM];
	struct ur_path path;
	unsigned len;

	if (out->to.way == UR_MAD_HOP)
		ur_mad_hop_path(&path, a->link.mac);
	else if (out->to.way == UR_MAD_LID)
		ur_mad_lid_path(&path, out->to.slid, out->to.dlid);
	else
		path = out->to.path;
	a->psn = (a->psn + 1) & 0xffffff;
	len = ur_mad_frame(frame, &path, ur_qpn(out->to.dqpn), ur_qpn(out->to.sqpn), ur_psn(a->psn),
			   out->mad);
	link_send(&a->link, frame, len);
	a->counters.tx_packets++;
	a->counters.tx_bytes += len;
}

/* MGMT-STATUS-01: no program has registered for it. */
static void refuse(struct adapter *a, const struct ur_nma_out *out, const struct ib_mad_addr *from)
{
	uint8_t mad[UR_MAD_BYTES];

	memcpy(mad, out->mad, sizeof(mad));
	if (!mux_refuse(&a->mux, mad, ur_nma_serves(mad)))
		return;
	if (mad[1] != UR_MAD_CLASS_SMP_DR && out->to.slid == UR_LID_PERMISSIVE) {
		struct ur_nma_out back = {.to = {.way = UR_MAD_HOP,
						 .port = PORT,
						 .sqpn = out->to.dqpn,
						 .dqpn = out->to.sqpn}};

		memcpy(back.mad, mad, sizeof(back.mad));
		transmit(a, &back);
		return;
	}
	adapter_send_local(a, mad, from);
}

static void deliver(struct adapter *a, const struct ur_nma_out *out)
{
	struct ib_mad_addr from = {
		.lid = htons(out->to.slid),
		.qpn = htonl(out->to.sqpn),
		.qkey = htonl(out->to.dqpn == UR_GSI_QPN ? UR_GSI_QKEY : 0),
	};

	if (!mux_input(&a->mux, out->mad, &from, a->now))
		refuse(a, out, &from);
}

void adapter_pump(struct adapter *a)
{
	struct ur_nma_out out;

	while (ur_nma_output(a->nma, &out, a->now)) {
		if (out.to.way == UR_MAD_LOCAL)
			deliver(a, &out);
		else
			transmit(a, &out);
	}
}

/* ---- the link to the agent ---- */

static void input_frame(struct adapter *a, const uint8_t *frame, size_t len)
{
	struct ur_nma_from from = {.port = PORT};
	enum ur_drop drop;
	struct ur_packet p;
	uint8_t lmc;
	uint16_t lid;

	/* What a switch floods, LLDP and messages about credits are no errors of the link. */
	if (len < UR_ETH_BYTES || !ur_mad_is_mgmt_mac(frame))
		return;
	drop = ur_packet_decode(frame, len, &p);
	if (drop == UR_DROP_NOT_ROCE)
		return;
	if (drop != UR_DROP_NONE || !ur_icrc_ok(frame, &p) || !ur_mad_is_valid(&p)) {
		a->counters.rx_errors++;
		return;
	}
	from.way = ur_mad_way_of(&p, &from.slid, &from.dlid);
	if (from.way != UR_MAD_HOP && from.way != UR_MAD_LID)
		return;
	lid = ur_nma_lid(a->nma, PORT, &lmc);
	if (from.way == UR_MAD_LID && (!lid || lid >> lmc != from.dlid >> lmc))
		return;
	from.qpn = (uint8_t)p.bth.dqpn.v;
	from.sqpn = p.deth.sqpn.v;
	a->counters.rx_packets++;
	a->counters.rx_bytes += len;
	ur_nma_input(a->nma, p.payload, &from, a->now);
}

static void watch_link(struct adapter *a)
{
	bool up;

	if (a->now < a->watch_at)
		return;
	a->watch_at = a->now + LINK_POLL_NS;
	up = link_reopen(&a->link) && link_is_up(&a->link);
	if (up == a->link_was_up)
		return;
	a->link_was_up = up;
	if (!up)
		a->counters.link_downed++;
	ur_nma_link_event(a->nma, PORT, a->now);
}

void adapter_run(struct adapter *a, uint64_t now)
{
	uint8_t frame[FRAME_ROOM];
	size_t len;

	a->now = now;
	watch_link(a);
	adapter_pump(a);
	for (unsigned i = 0; i < FRAMES_A_RUN; i++) {
		len = link_receive(&a->link, frame, sizeof(frame));
		if (len == 0)
			break;
		input_frame(a, frame, len);
		adapter_pump(a);
	}
	if (ur_nma_next_deadline(a->nma) <= now)
		ur_nma_expire(a->nma, now);
	if (mux_deadline(&a->mux) <= now)
		mux_expire(&a->mux, now);
	adapter_pump(a);
}

uint64_t adapter_deadline(const struct adapter *a)
{
	uint64_t first = a->watch_at, nma = ur_nma_next_deadline(a->nma);
	uint64_t mux = mux_deadline(&a->mux);

	if (nma < first)
		first = nma;
	return mux < first ? mux : first;
}

void adapter_set_clients(struct adapter *a, bool present, bool is_sm)
{
	if (present == a->client && is_sm == a->is_sm)
		return;
	a->client = present;
	a->is_sm = is_sm;
	ur_nma_set_client(a->nma, present, is_sm);
}
