/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "frames.h"
#include "mgmt/nma.h"
#include "mgmt/registers.h"
#include "switch/agent.h"
#include "wire/icrc.h"
#include "wire/perf.h"

/*
 * Two switches with agents: port 2 of the first is joined to port 3 of the second. A manager without an agent is
 * at port 1 of the first.
 */
#define SWITCHES 2
#define PORTS	 4 /* port 0 included */

static struct ur_switch *sw[SWITCHES];
static struct ur_switch_agent *agent[SWITCHES];
static uint64_t now_ns = 1000, tid = 1;
static struct frame inbox[64]; /* of the manager */
static unsigned inbox_cnt;
static const uint8_t manager_mac[6] = {2, 0, 0, 0, 0, 0x77};
static const uint8_t data_mac[2][6] = {{2, 0, 0, 0, 1, 1}, {2, 0, 0, 0, 1, 2}};
static unsigned data_cnt; /* frames of data that port 1 of the first switch has sent */
static struct ur_nma_config config;

static void start(void)
{
	for (unsigned i = 0; i < SWITCHES; i++) {
		struct ur_switch_agent_attr a = {
			.config = config, .guid = 0x100 + i, .seed = i + 1};
		struct ur_switch_attr attr;

		ur_switch_attr_default(&attr);
		attr.limits.ports = PORTS;
		sw[i] = ur_switch_init(aligned_alloc(64, ur_switch_size(&attr)), &attr);
		snprintf(a.description, sizeof(a.description), "switch %u", i);
		for (uint8_t p = 1; p < PORTS; p++) {
			ur_switch_set_link(sw[i], p, true, now_ns);
			memcpy(a.mac[p], (const uint8_t[]){2, 0, 0, 1, (uint8_t)i, p}, 6);
		}
		agent[i] = ur_switch_agent_init(aligned_alloc(64, ur_switch_agent_size(PORTS)),
						sw[i], &a, now_ns);
	}
}

static void stop(void)
{
	for (unsigned i = 0; i < SWITCHES; i++) {
		free(sw[i]);
		free(agent[i]);
	}
}

static bool deliver(unsigned i, uint8_t port, const struct ur_switch_tx *tx)
{
	unsigned peer = 1 - i;
	uint8_t *copy;

	cr_assert_eq(tx->head_len, 0);
	if (port == 0) {
		ur_switch_agent_input(agent[i], &tx->frame, tx->in_port, now_ns);
	} else if (i == 0 && port == 1 && memcmp(tx->frame.data, data_mac[0], 6) == 0) {
		cr_assert_eq(ur_load32(tx->frame.data + 14), data_cnt++, "in order");
	} else if (i == 0 && port == 1) {
		memcpy(inbox[inbox_cnt % 64].b, tx->frame.data, tx->frame.len);
		inbox[inbox_cnt++ % 64].len = tx->frame.len;
	} else if ((i == 0 && port == 2) || (i == 1 && port == 3)) {
		struct ur_switch_frame f = tx->frame;

		copy = malloc(f.len);
		memcpy(copy, f.data, f.len);
		f.data = copy;
		f.handle = copy;
		if (!ur_switch_input(sw[peer], i ? 2 : 3, &f, now_ns))
			free(copy);
	}
	return true;
}

/* Everything that can move, moves. */
static void run(void)
{
	bool busy = true;

	while (busy) {
		busy = false;
		for (unsigned i = 0; i < SWITCHES; i++) {
			struct ur_switch_tx tx;

			ur_switch_agent_expire(agent[i], now_ns);
			for (uint8_t p = 0; p < PORTS; p++)
				while (ur_switch_output(sw[i], p, &tx, 1, now_ns)) {
					busy = deliver(i, p, &tx);
					free(tx.frame.handle);
				}
			while (ur_switch_agent_wants_output(agent[i])) {
				struct ur_switch_frame f = {.data = malloc(UR_SWITCH_MAD_FRAME)};

				f.handle = f.data;
				if (!ur_switch_agent_output(agent[i], &f, now_ns))
					free(f.data);
				busy = true;
			}
			while (ur_switch_reap(sw[i], &tx, 1))
				free(tx.frame.handle);
			ur_switch_validate(sw[i]);
		}
	}
}

/* A frame arrives at port 1 of the first switch. */
static void arrive(const uint8_t *frame, uint32_t len)
{
	struct ur_switch_frame f = {.data = malloc(len ? len : 1), .len = len};

	memcpy(f.data, frame, len);
	f.handle = f.data;
	if (!ur_switch_input(sw[0], 1, &f, now_ns))
		free(f.data);
}

static void send_mad(const struct ur_path *path, unsigned qpn, const uint8_t *mad)
{
	uint8_t frame[UR_SWITCH_MAD_FRAME];

	arrive(frame, ur_mad_frame(frame, path, ur_qpn(qpn), ur_qpn(qpn), ur_psn(1), mad));
	run();
}

static void head(uint8_t *mad, uint8_t class, uint8_t method, uint16_t attr, uint32_t mod)
{
	struct ur_mad h = {.base_version = 1,
			   .mgmt_class = class,
			   .class_version = 1,
			   .method = method,
			   .tid = tid++,
			   .attr_id = attr,
			   .attr_mod = mod};
	struct ur_cursor c = ur_cursor(mad, UR_MAD_HDR_BYTES);

	ur_put_mad(&c, &h);
}

/* The response to the last request: the only one in the inbox with its TransactionID. NULL: there is none. */
static const uint8_t *response(void)
{
	const uint8_t *found = NULL;
	struct ur_packet p;

	for (unsigned i = 0; i < inbox_cnt && i < 64; i++) {
		cr_assert_eq(ur_packet_decode(inbox[i].b, inbox[i].len, &p), UR_DROP_NONE);
		cr_assert(ur_icrc_ok(inbox[i].b, &p));
		cr_assert_eq(p.payload_len, UR_MAD_BYTES);
		if (ur_load64(p.payload + 8) == tid - 1 && p.payload[3] & 0x80)
			found = p.payload;
	}
	inbox_cnt = 0;
	return found;
}

/* A directed route of up to two hops. data: of a Set, or NULL. */
static const uint8_t *ask(unsigned hops, uint8_t method, uint16_t attr, uint32_t mod,
			  const uint8_t *data)
{
	uint8_t mad[UR_MAD_BYTES] = {0};
	struct ur_path path;

	head(mad, UR_MAD_CLASS_SMP_DR, method, attr, mod);
	mad[UR_SMP_HOP_POINTER] = 1;
	mad[UR_SMP_HOP_COUNT] = (uint8_t)hops;
	ur_store16(mad + UR_SMP_DR_SLID, UR_LID_PERMISSIVE);
	ur_store16(mad + UR_SMP_DR_DLID, UR_LID_PERMISSIVE);
	mad[UR_SMP_INITIAL + 1] = 1;
	mad[UR_SMP_INITIAL + 2] = 2;
	if (data)
		memcpy(mad + UR_SMP_DATA, data, UR_SMP_DATA_BYTES);
	ur_mad_hop_path(&path, manager_mac);
	send_mad(&path, UR_SMI_QPN, mad);
	return response();
}

static const uint8_t *ask_lid(uint16_t lid, uint8_t class, unsigned qpn, uint8_t method,
			      uint16_t attr, uint32_t mod, const uint8_t *body, unsigned at)
{
	uint8_t mad[UR_MAD_BYTES] = {0};
	struct ur_path path;

	head(mad, class, method, attr, mod);
	if (body)
		memcpy(mad + at, body, 64);
	ur_mad_lid_path(&path, 1, lid);
	send_mad(&path, qpn, mad);
	return response();
}

static uint16_t status_of(const uint8_t *mad)
{
	return ur_load16(mad + 4) & 0x7fff;
}

/* Gives a switch its LID. */
static void set_lid(unsigned hops, uint16_t lid)
{
	uint8_t data[UR_SMP_DATA_BYTES];
	const uint8_t *r = ask(hops, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO, 0, NULL);
	struct ur_port_info info;

	cr_assert(r);
	memcpy(data, r + UR_SMP_DATA, sizeof(data));
	ur_get_port_info(data, &info);
	info.lid = lid;
	info.sm_lid = 1;
	info.state = UR_PORT_NOP;
	info.phys_state = UR_PHYS_NOP;
	ur_put_port_info(data, &info);
	r = ask(hops, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 0, data);
	cr_assert(r && status_of(r) == 0, "status %x", status_of(r));
}

static void set_ports(unsigned hops, const uint8_t ports[4])
{
	uint8_t data[UR_SMP_DATA_BYTES];
	const uint8_t *r;

	memset(data, 0xff, sizeof(data));
	memcpy(data, ports, 4);
	r = ask(hops, UR_MAD_METHOD_SET, UR_SMP_LFT, 0, data);
	cr_assert(r && status_of(r) == 0);
}

/* SWITCH-AGENT-01 */
Test(switch_agent, directed_routes_reach_this_switch_and_the_next)
{
	struct ur_node_info info;
	const uint8_t *r;

	start();
	run();
	for (unsigned hops = 1; hops <= 2; hops++) {
		r = ask(hops, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, NULL);
		cr_assert(r, "%u", hops);
		ur_get_node_info(r + UR_SMP_DATA, &info);
		cr_assert_eq(info.node_type, UR_NODE_SWITCH);
		cr_assert_eq(info.num_ports, PORTS - 1);
		cr_assert_eq(info.node_guid, 0x100 + hops - 1);
		cr_assert_eq(info.local_port, hops == 1 ? 1 : 3);
		r = ask(hops, UR_MAD_METHOD_GET, UR_SMP_NODE_DESC, 0, NULL);
		cr_assert_eq(r[UR_SMP_DATA + 7], '0' + hops - 1);
	}
	stop();
}

/* SWITCH-AGENT-01 */
Test(switch_agent, reads_and_writes_the_forwarding_table)
{
	const uint8_t *r;

	start();
	set_lid(1, 2);
	set_lid(2, 3);
	/* LIDs 1, 2, 3: the manager, the switches. */
	set_ports(1, (const uint8_t[]){255, 1, 0, 2});
	set_ports(2, (const uint8_t[]){255, 3, 3, 0});
	cr_assert_eq(ur_switch_lft(sw[0], 3), 2);
	cr_assert_eq(ur_switch_lft(sw[1], 1), 3);
	cr_assert_eq(ur_switch_agent_lid(agent[1]), 3);
	for (uint16_t lid = 2; lid <= 3; lid++) {
		struct ur_node_info info;

		r = ask_lid(lid, UR_MAD_CLASS_SMP_LID, UR_SMI_QPN, UR_MAD_METHOD_GET,
			    UR_SMP_NODE_INFO, 0, NULL, 0);
		cr_assert(r, "LID %u", lid);
		ur_get_node_info(r + UR_SMP_DATA, &info);
		cr_assert_eq(info.node_guid, 0x100u + lid - 2);
	}
	r = ask(2, UR_MAD_METHOD_GET, UR_SMP_LFT, 0, NULL);
	cr_assert(r && r[UR_SMP_DATA + 1] == 3 && r[UR_SMP_DATA + 4] == 255);
	cr_assert_null(ask_lid(9, UR_MAD_CLASS_SMP_LID, UR_SMI_QPN, UR_MAD_METHOD_GET,
			       UR_SMP_NODE_INFO, 0, NULL, 0),
		       "a LID without a port");
	stop();
}

/* SWITCH-AGENT-01 */
Test(switch_agent, reads_the_ports_counters)
{
	struct ur_switch_counters c;
	uint8_t frame[64] = {2, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 2},
		body[64] = {0}; /* invalid source */
	const uint8_t *r;

	start();
	set_lid(1, 2);
	set_ports(1, (const uint8_t[]){255, 1, 0, 2});
	for (unsigned i = 0; i < 50; i++)
		arrive(frame, sizeof(frame));
	run();
	body[1] = 1; /* PortSelect */
	r = ask_lid(2, UR_MAD_CLASS_PERF, UR_GSI_QPN, UR_MAD_METHOD_GET, UR_PERF_PORT_COUNTERS_EXT,
		    0, body, UR_GMP_DATA);
	cr_assert(r && status_of(r) == 0);
	ur_switch_counters(sw[0], 1, &c);
	/* The answer was sent after it was written. */
	cr_assert_eq(ur_load64(r + UR_GMP_DATA + 32), c.rx_packets, "%llu",
		     (unsigned long long)ur_load64(r + UR_GMP_DATA + 32));
	cr_assert_geq(c.rx_packets, 53);
	stop();
}

/* SWITCH-AGENT-01 */
Test(switch_agent, writes_the_lanes_of_a_port)
{
	uint8_t data[UR_SMP_DATA_BYTES] = {0};
	const uint8_t *r;

	start();
	data[0] = 3; /* VL 3, weight 7 */
	data[1] = 7;
	r = ask(1, UR_MAD_METHOD_SET, UR_SMP_VL_ARB, 3 << 16 | 2, data);
	cr_assert(r && status_of(r) == 0, "%x", r ? status_of(r) : 0);
	cr_assert_eq(ur_switch_port(sw[0], 2)->vl.high[0].vl, 3);
	cr_assert_eq(ur_switch_port(sw[0], 2)->vl.high[0].weight, 7);
	cr_assert_eq(ur_switch_port(sw[0], 1)->vl.high_cnt, 0);
	for (unsigned i = 0; i < 8; i++)
		data[i] = 0x45; /* SLs: VL 4 and 5 in turn */
	r = ask(1, UR_MAD_METHOD_SET, UR_SMP_SL2VL, 2, data);
	cr_assert(r && status_of(r) == 0);
	cr_assert_eq(ur_switch_port(sw[0], 2)->vl.sl2vl[0], 4);
	cr_assert_eq(ur_switch_port(sw[0], 2)->vl.sl2vl[15], 5);
	stop();
}

/* SWITCH-AGENT-01 */
Test(switch_agent, disables_a_port_and_sees_links)
{
	struct ur_port_info info;
	uint8_t data[UR_SMP_DATA_BYTES];
	const uint8_t *r;

	start();
	ur_switch_set_link(sw[0], 3, false, now_ns);
	run();
	r = ask(1, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO, 3, NULL);
	ur_get_port_info(r + UR_SMP_DATA, &info);
	cr_assert_eq(info.state, UR_PORT_DOWN);
	r = ask(1, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO, 2, NULL);
	memcpy(data, r + UR_SMP_DATA, sizeof(data));
	ur_get_port_info(data, &info);
	cr_assert_eq(info.state, UR_PORT_INIT);
	info.state = UR_PORT_DOWN;
	info.phys_state = UR_PHYS_DISABLED;
	ur_put_port_info(data, &info);
	r = ask(1, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 2, data);
	cr_assert(r && status_of(r) == 0, "%x", r ? status_of(r) : 0);
	cr_assert_not(ur_switch_link(sw[0], 2));
	cr_assert_null(ask(2, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, NULL));
	info.phys_state = UR_PHYS_POLLING;
	ur_put_port_info(data, &info);
	r = ask(1, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 2, data);
	cr_assert(ur_switch_link(sw[0], 2));
	cr_assert(ask(2, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, NULL));
	stop();
}

/* SWITCH-AGENT-01: a write without the key changes nothing. */
Test(switch_agent, asks_for_the_key)
{
	uint8_t data[UR_SMP_DATA_BYTES];

	config = (struct ur_nma_config){.m_key = 0x1234, .protect = 1};
	start();
	memset(data, 2, sizeof(data));
	ask(1, UR_MAD_METHOD_SET, UR_SMP_LFT, 0, data);
	cr_assert_eq(ur_switch_lft(sw[0], 5), UR_SWITCH_NO_PORT);
	cr_assert(ask(1, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, NULL), "reads are open");
	stop();
}

/* SWITCH-AGENT-01: what is not a MAD of the right queue pair, key, hop limit and ICRC is rejected. */
Test(switch_agent, rejects_what_is_not_a_management_packet)
{
	struct ur_switch_agent_counters c;
	struct ur_switch_counters port;
	uint8_t mad[UR_MAD_BYTES] = {0}, frame[UR_SWITCH_MAD_FRAME];
	struct ur_nma_stats stats;
	struct ur_path path;
	uint64_t before;
	unsigned len;

	start();
	run();
	ur_switch_agent_counters(agent[0], &c, &stats);
	before = c.rejected;
	ur_mad_hop_path(&path, manager_mac);
	head(mad, UR_MAD_CLASS_SMP_DR, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0);
	mad[UR_SMP_HOP_POINTER] = mad[UR_SMP_HOP_COUNT] = 1;
	ur_store16(mad + UR_SMP_DR_SLID, UR_LID_PERMISSIVE);
	ur_store16(mad + UR_SMP_DR_DLID, UR_LID_PERMISSIVE);
	/* An SMP to QP1, a hop limit of 254, a wrong ICRC, a short payload. */
	len = ur_mad_frame(frame, &path, ur_qpn(1), ur_qpn(1), ur_psn(1), mad);
	arrive(frame, len);
	len = ur_mad_frame(frame, &path, ur_qpn(0), ur_qpn(0), ur_psn(1), mad);
	frame[14 + 7] = 254;
	arrive(frame, len);
	frame[14 + 7] = 255;
	frame[len - 1] ^= 1;
	arrive(frame, len);
	frame[len - 1] ^= 1;
	arrive(frame, len - 100);
	run();
	ur_switch_agent_counters(agent[0], &c, &stats);
	cr_assert_eq(c.rejected, before + 3);
	ur_switch_counters(sw[0], 1, &port);
	cr_assert_eq(port.lane[0].drops[UR_SWITCH_DROP_RESERVED], 1, "too short for a MAD");
	cr_assert_null(response());
	arrive(frame, len);
	run();
	cr_assert(response(), "the same without these faults is answered");
	stop();
}

static uint64_t read_port(enum ur_register_id id, uint8_t port)
{
	struct ur_registers r = {.count = 1, .address0 = ur_register_address(id, port)};
	uint8_t data[UR_SMP_DATA_BYTES] = {0};
	const uint8_t *answer;

	ur_put_registers(data, &r);
	answer = ask(1, UR_MAD_METHOD_GET, UR_SMP_REGISTERS, 0, data);
	cr_assert(answer && status_of(answer) == 0);
	ur_get_registers(answer + UR_SMP_DATA, &r);
	return r.value0;
}

/* SWITCH-AGENT-01: what the device of a port says is in the port's counters, and no other port's. */
Test(switch_agent, counts_what_a_device_has_counted)
{
	const struct ur_switch_device_counters c = {
		.device_damaged = 3, .device_overruns = 4, .device_unsent = 5};

	start();
	ur_switch_agent_set_device(agent[0], 3, &c);
	cr_assert_eq(read_port(UR_PORT_SYMBOL_ERRORS, 3), 3);
	cr_assert_eq(read_port(UR_PORT_OVERRUNS, 3), 4);
	cr_assert_eq(read_port(UR_PORT_TX_DISCARDS, 3), 5);
	cr_assert_eq(read_port(UR_PORT_SYMBOL_ERRORS, 2), 0);
	cr_assert_eq(read_port(UR_PORT_OVERRUNS, 0), 0);
	ur_switch_set_link(sw[0], 3, false, now_ns);
	run();
	ur_switch_set_link(sw[0], 3, true, now_ns);
	run();
	cr_assert_eq(read_port(UR_PORT_LINK_DOWNED, 3), 1);
	cr_assert_eq(read_port(UR_PORT_LINK_RECOVERED, 3), 1);
	stop();
}

/* A frame of data from port 2 to port 1, which knows its destination. */
static void send_data(unsigned number)
{
	struct ur_switch_frame f = {.data = calloc(1, 1000), .len = 1000};

	memcpy(f.data, data_mac[0], 6);
	memcpy(f.data + 6, data_mac[1], 6);
	ur_store16(f.data + 12, 0x88b5);
	ur_store32(f.data + 14, number);
	f.handle = f.data;
	if (!ur_switch_input(sw[0], 2, &f, now_ns))
		free(f.data);
}

/*
 * SWITCH-MGMT-01: a flood at one port does not keep the agent from answering at another, nor data from flowing between
 * others.
 */
Test(switch_agent, answers_during_a_flood)
{
	uint8_t mad[UR_MAD_BYTES] = {0}, frame[UR_SWITCH_MAD_FRAME] = {0};
	const struct ur_switch_frame introduction = {.data = frame, .len = 100};
	struct ur_path path;
	unsigned len, answers = 0;

	start();
	/* Port 1 is where the destination of the data is. */
	memcpy(frame, data_mac[1], 6);
	memcpy(frame + 6, data_mac[0], 6);
	ur_store16(frame + 12, 0x88b5);
	ur_switch_input(sw[0], 1, &introduction, now_ns); /* flooded: nothing is to be freed */
	ur_switch_set_link(sw[1], 2, false, now_ns);	  /* it ends there */
	run();
	head(mad, UR_MAD_CLASS_SMP_DR, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0);
	mad[UR_SMP_HOP_POINTER] = mad[UR_SMP_HOP_COUNT] = 1;
	ur_mad_hop_path(&path, manager_mac);
	len = ur_mad_frame(frame, &path, ur_qpn(0), ur_qpn(0), ur_psn(1), mad);
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 100; k++) {
			struct ur_switch_frame f = {.data = malloc(len), .len = len};

			ur_store64(frame + 14 + 40 + 8 + 12 + 8 + 8, 1000000 + i * 100 + k);
			memcpy(f.data, frame, len);
			f.handle = f.data;
			ur_icrc_append(f.data + 14, len - 14 - 4, true);
			if (!ur_switch_input(sw[0], 3, &f, now_ns))
				free(f.data);
		}
		for (unsigned k = 0; k < 20; k++)
			send_data(i * 20 + k);
		answers += ask(1, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, NULL) != NULL;
		now_ns += 100000;
	}
	cr_assert_eq(answers, 100);
	cr_assert_eq(data_cnt, 2000, "%u frames of data of 2000", data_cnt);
	stop();
}

/* SWITCH-AGENT-01: what changes is counted, and a LID can be given back after a restart. */
Test(switch_agent, has_its_lid_again_after_a_restart)
{
	const uint8_t *r;
	uint64_t before;

	config = (struct ur_nma_config){.m_key = 0x77, .protect = 1};
	start();
	before = ur_switch_agent_changes(agent[0]);
	cr_assert(ur_switch_agent_set_lid(agent[0], 9, now_ns));
	cr_assert_eq(ur_switch_agent_lid(agent[0]), 9);
	cr_assert_gt(ur_switch_agent_changes(agent[0]), before);
	ur_switch_set_lft(sw[0], 1, 1);
	r = ask_lid(9, UR_MAD_CLASS_SMP_LID, UR_SMI_QPN, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0,
		    NULL, 0);
	cr_assert(r);
	cr_assert_not(ur_switch_agent_set_lid(agent[0], 0xc000, now_ns), "no unicast LID");
	cr_assert_eq(ur_switch_agent_lid(agent[0]), 9);
	stop();
}

/* SWITCH-AGENT-01: the way of an answer is the forwarding table, whatever the request made of it. */
Test(switch_agent, an_answer_takes_one_way_only)
{
	uint8_t mad[UR_MAD_BYTES] = {0}, frame[UR_SWITCH_MAD_FRAME];
	struct ur_switch_counters c;
	struct ur_path path;

	start();
	set_lid(1, 2);
	set_ports(1, (const uint8_t[]){255, 1, 0, 2});
	/* To a queue pair that is not management's. */
	head(mad, UR_MAD_CLASS_PERF, UR_MAD_METHOD_GET, UR_CLASS_PORT_INFO, 0);
	ur_mad_lid_path(&path, 1, 2);
	arrive(frame,
	       ur_mad_frame(frame, &path, ur_qpn(UR_GSI_QPN), ur_qpn(0x777), ur_psn(1), mad));
	run();
	ur_switch_counters(sw[0], 3, &c);
	cr_assert_eq(c.tx_packets, 0, "not flooded");
	cr_assert_eq(inbox_cnt, 1);
	inbox_cnt = 0;
	/* From and to LIDs that no port can have. */
	for (unsigned i = 0; i < 3; i++) {
		static const uint16_t lid[] = {0, 0xc000, 0xffff};

		ur_mad_lid_path(&path, lid[i], 2);
		head(mad, UR_MAD_CLASS_PERF, UR_MAD_METHOD_GET, UR_CLASS_PORT_INFO, 0);
		send_mad(&path, UR_GSI_QPN, mad);
		cr_assert_null(response());
		/* A directed route that goes on by LID. */
		memset(mad, 0, sizeof(mad));
		head(mad, UR_MAD_CLASS_SMP_DR, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0);
		mad[UR_SMP_HOP_POINTER] = mad[UR_SMP_HOP_COUNT] = mad[UR_SMP_INITIAL + 1] = 1;
		ur_store16(mad + UR_SMP_DR_SLID, UR_LID_PERMISSIVE);
		ur_store16(mad + UR_SMP_DR_DLID, lid[i]);
		ur_mad_hop_path(&path, manager_mac);
		send_mad(&path, UR_SMI_QPN, mad);
		response();
	}
	ur_switch_counters(sw[0], 3, &c);
	cr_assert_eq(c.tx_packets, 0, "not flooded");
	stop();
}

/* SWITCH-ROUTE-01: what the agent says is what the switch does. */
Test(switch_agent, it_says_by_which_port_a_flow_goes)
{
	struct ur_route route = {.addr_low = UINT64_C(0xffff0a000002)};
	uint8_t data[UR_SMP_DATA_BYTES];
	static const uint8_t bytes[64];
	struct ur_gid addr;
	const uint8_t *r;
	bool seen[PORTS] = {false};

	start();
	ur_store64(addr.b, 0);
	ur_store64(addr.b + 8, route.addr_low);
	memset(data, 0, sizeof(data));
	ur_put_route(data, &route);
	r = ask(1, UR_MAD_METHOD_GET, UR_SMP_ROUTE, 0, data);
	cr_assert(r && !status_of(r));
	ur_get_route(r + UR_SMP_DATA, &route);
	cr_assert(!route.known && route.port == UR_SWITCH_NO_PORT && !route.ports);
	cr_assert(ur_switch_set_route(sw[0], &addr, 8, 2));
	cr_assert(ur_switch_set_route(sw[1], &addr, 8, 0)); /* which drops it: it has no port */
	for (uint16_t lid = 8; lid < 12; lid++)
		ur_switch_set_lft(sw[0], lid, lid == 11 ? UR_SWITCH_NO_PORT : 1 + lid % 3);
	for (uint16_t s = 0; s < 64; s++) {
		struct ur_packet p = frame_packet(UR_RC_SEND_ONLY, false, bytes, sizeof(bytes));
		struct ur_switch_counters c[PORTS], after[PORTS];
		struct frame made;

		if (s == 32) /* the other port is all that is left */
			ur_switch_set_link(sw[0], 2, false, now_ns);
		route.sport = s;
		ur_put_route(data, &route);
		r = ask(1, UR_MAD_METHOD_GET, UR_SMP_ROUTE, 0, data);
		cr_assert(r && !status_of(r));
		ur_get_route(r + UR_SMP_DATA, &route);
		cr_assert(route.known && route.sport == s && route.lid == 8 && route.lmc == 2);
		cr_assert_eq(route.all, 1 << 1 | 1 << 2 | 1 << 3);
		cr_assert_eq(route.ports, s < 32 ? route.all : 1 << 1 | 1 << 3);
		p.sport = s;
		frame_make(&made, &p);
		for (uint8_t k = 1; k < PORTS; k++)
			ur_switch_counters(sw[0], k, &c[k]);
		arrive(made.b, (uint32_t)made.len);
		run();
		for (uint8_t k = 1; k < PORTS; k++) {
			ur_switch_counters(sw[0], k, &after[k]);
			cr_assert_eq(after[k].tx_packets - c[k].tx_packets,
				     k == route.port && k != 1, "source port %u: port %u, not %u",
				     s, k, route.port);
		}
		seen[route.port] = true;
	}
	cr_assert(seen[2] && seen[3]);
	r = ask(1, UR_MAD_METHOD_SET, UR_SMP_ROUTE, 0, data);
	cr_assert(r && status_of(r));
	stop();
}
