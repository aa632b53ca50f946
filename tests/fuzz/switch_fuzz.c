/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "fuzz.h"
#include "switch/agent.h"
#include "wire/bytes.h"
#include "wire/credit.h"
#include "wire/icrc.h"

/*
 * The bytes are a sequence of frames for the ports of a switch with an agent: port and flags, length in units of
 * four bytes, frame. Management packets may get a right ICRC, to reach the agent, and so may others, to be a status of
 * a receive pool. A frame may become a message about link credits that the switch believes. Whatever arrives, the
 * switch's invariants hold, every reference comes back, and a changed frame is not longer than by a tag.
 */
enum { PORT = 3, MEND = 4, SEND = 8, LINK = 16, TIME = 32, ICRC = 64, CREDIT = 128 };

#define PORTS	   4
#define FRAMES_MAX 64
#define FRAME_MAX  1024
#define MAD_END	   (UR_SWITCH_MAD_FRAME - UR_ICRC_BYTES)

static _Alignas(64) uint8_t switch_memory[2 << 20], agent_memory[4 << 20];
static uint8_t frame[FRAMES_MAX + 256][FRAME_MAX];
static int refs[FRAMES_MAX + 256];

struct story {
	const uint8_t *p, *end;
	struct ur_switch *sw;
	struct ur_switch_agent *agent;
	uint64_t now_ns;
	unsigned used; /* frames */
};

static void start(struct story *s)
{
	struct ur_switch_agent_attr a = {.guid = 1, .seed = 2};
	struct ur_switch_port_attr port;
	struct ur_switch_attr attr;

	ur_switch_attr_default(&attr);
	attr.hold = true;
	attr.limits = (struct ur_switch_limits){PORTS, 64, 256, 16, 4};
	FUZZ_CHECK(ur_switch_size(&attr) <= sizeof(switch_memory));
	FUZZ_CHECK(ur_switch_agent_size(PORTS) <= sizeof(agent_memory));
	s->sw = ur_switch_init(switch_memory, &attr);
	ur_switch_port_attr_default(&port);
	port.ecn_min_bytes = port.ecn_max_bytes = 0; /* mark all that can be marked */
	for (uint8_t p = 1; p < PORTS; p++) {
		port.trunk = p != 2;
		port.vid = p;
		port.credit_frames = p != 2 ? UR_CREDIT_LANES * UR_CREDIT_MIN : 0;
		port.credit_session = p;
		port.credit_life_ns = 1000000000;
		ur_switch_set_port(s->sw, p, &port, 0);
		ur_switch_set_link(s->sw, p, true, 0);
	}
	ur_switch_set_lft(s->sw, 1, 1);
	ur_switch_set_lft(s->sw, 2, 0);
	s->agent = ur_switch_agent_init(agent_memory, s->sw, &a, 0);
	memset(refs, 0, sizeof(refs));
}

static int *refs_of(const struct ur_switch_frame *f)
{
	return &refs[(size_t)(f->data - frame[0]) / FRAME_MAX];
}

/* Takes references back; those of port 0 go to the agent. */
static void take_back(struct story *s, const struct ur_switch_tx *tx, unsigned n, bool to_agent)
{
	for (unsigned i = 0; i < n; i++) {
		FUZZ_CHECK(tx[i].skip <= tx[i].frame.len);
		FUZZ_CHECK(tx[i].head_len <= UR_SWITCH_HEAD_MAX);
		FUZZ_CHECK(tx[i].head_len <= tx[i].skip + UR_VLAN_BYTES);
		FUZZ_CHECK((*refs_of(&tx[i].frame))-- > 0);
		if (to_agent)
			ur_switch_agent_input(s->agent, &tx[i].frame, tx[i].in_port, s->now_ns);
	}
}

static void send_all(struct story *s)
{
	struct ur_switch_tx tx[8];
	unsigned n;

	for (uint8_t p = 0; p < PORTS; p++) {
		static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
		uint8_t message[UR_CREDIT_BYTES];

		if (ur_switch_wants_message(s->sw, p, s->now_ns))
			ur_switch_message(s->sw, p, message, mac, s->now_ns);
		while ((n = ur_switch_output(s->sw, p, tx, 8, s->now_ns)) > 0)
			take_back(s, tx, n, p == 0);
	}
	while ((n = ur_switch_reap(s->sw, tx, 8)) > 0)
		take_back(s, tx, n, false);
}

static void serve_agent(struct story *s)
{
	ur_switch_agent_expire(s->agent, s->now_ns);
	for (unsigned i = 0; i < 64 && ur_switch_agent_wants_output(s->agent); i++) {
		struct ur_switch_frame f = {.data = frame[FRAMES_MAX]};

		while (*refs_of(&f)) {
			f.data += FRAME_MAX;
			FUZZ_CHECK(f.data < frame[FRAMES_MAX + 255]);
		}
		if (ur_switch_agent_output(s->agent, &f, s->now_ns)) {
			FUZZ_CHECK(f.len <= UR_SWITCH_MAD_FRAME);
			*refs_of(&f) = 1;
		}
	}
}

/* The beginning of a message that names the session that the port has at first. */
static void make_message(uint8_t *f, uint8_t port)
{
	static const uint8_t head[20] = {1, 0x80, 0xc2, 0,    0, 0x0e, 2,    0, 0, 0,
					 0, 1,	  0x88, 0xb7, 2, 0x75, 0x72, 0, 1, 1};

	memcpy(f, head, sizeof(head));
	ur_store32(f + 26, port);
}

static void one_frame(struct story *s)
{
	uint8_t flags = *s->p++;
	struct ur_switch_frame f = {.data = frame[s->used]};
	size_t left, want = s->p < s->end ? *s->p++ * (size_t)4 : 0;

	left = (size_t)(s->end - s->p);
	f.len = (uint32_t)(want < left ? want : left);
	memcpy(f.data, s->p, f.len);
	s->p += f.len;
	if (flags & MEND && f.len >= MAD_END) {
		f.len = UR_SWITCH_MAD_FRAME;
		ur_icrc_append(f.data + UR_ETH_BYTES, MAD_END - UR_ETH_BYTES, true);
	}
	if (flags & ICRC && f.len > UR_ETH_BYTES + UR_IPV6_BYTES + UR_ICRC_BYTES)
		ur_icrc_append(f.data + UR_ETH_BYTES, f.len - UR_ETH_BYTES - UR_ICRC_BYTES,
			       f.data[UR_ETH_BYTES] >> 4 == 6);
	if (flags & CREDIT && f.len >= 30)
		make_message(f.data, flags & PORT);
	if (flags & TIME)
		s->now_ns += UINT64_C(100000000);
	if (flags & LINK && flags & PORT)
		ur_switch_set_link(s->sw, flags & PORT, !ur_switch_link(s->sw, flags & PORT),
				   s->now_ns);
	refs[s->used] = (int)ur_switch_input(s->sw, flags & PORT, &f, s->now_ns);
	FUZZ_CHECK(refs[s->used] <= PORTS);
	s->used++;
	if (flags & SEND) {
		send_all(s);
		serve_agent(s);
	}
	ur_switch_validate(s->sw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct story s = {.p = data, .end = data + size, .now_ns = 1};

	start(&s);
	while (s.p < s.end && s.used < FRAMES_MAX)
		one_frame(&s);
	for (unsigned i = 0; i < 4; i++) {
		send_all(&s);
		serve_agent(&s);
	}
	for (uint8_t p = 1; p < PORTS; p++)
		ur_switch_set_link(s.sw, p, false, s.now_ns);
	send_all(&s);
	ur_switch_validate(s.sw);
	for (unsigned i = 0; i < FRAMES_MAX + 256; i++)
		FUZZ_CHECK(refs[i] == 0);
	return 0;
}
