/* SPDX-License-Identifier: BSD-3-Clause */
#include "nma_fabric.h"

#include "mgmt/registers.h"
#include "wire/perf.h"

/*
 * MGMT-KEY-05: MADs without the key write nothing. UROCE_HOSTILE_MADS says how many; the long check sends ten
 * million.
 */
#define KEY	UINT64_C(0x5a17c0dedeadbeef)
#define DEFAULT 1000000

static uint64_t rng;

static uint64_t random64(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static unsigned below(unsigned n)
{
	return (unsigned)(random64() % n);
}

static const uint8_t route[] = {1};

/* Every attribute of node 1 that can be set, with the key: a picture of its state. */
static void take_picture(struct fabric *f, struct mad *picture, unsigned cap)
{
	static const struct {
		uint16_t attr;
		uint32_t mod;
	} asked[] = {
		{UR_SMP_PORT_INFO, 0},	      {UR_SMP_PORT_INFO, 1},	    {UR_SMP_PORT_INFO, 2},
		{UR_SMP_SWITCH_INFO, 0},      {UR_SMP_PKEY_TABLE, 0},	    {UR_SMP_SL2VL, 0x0102},
		{UR_SMP_VL_ARB, 1 << 16 | 1}, {UR_SMP_VL_ARB, 3 << 16 | 1}, {UR_SMP_LFT, 0},
	};
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++, n++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_GET, asked[i].attr, asked[i].mod, route, 1);

		ur_store64(m.b + UR_SMP_MKEY, KEY);
		cr_assert(ask(f, 0, &m, 0, &picture[n]) && !status_of(&picture[n]));
		memset(picture[n].b, 0, UR_SMP_DATA);  /* TransactionID */
		if (asked[i].attr == UR_SMP_PORT_INFO) /* counts of what was refused */
			memset(picture[n].b + UR_SMP_DATA + 44, 0, 2);
	}
	for (unsigned id = 0; id < UR_REGISTER_CNT; id++) {
		struct mad m = new_dr(f, UR_MAD_METHOD_GET, UR_SMP_REGISTERS, 0, route, 1);
		struct ur_registers r = {
			.count = 1, .address0 = ur_register_address((enum ur_register_id)id, 1)};

		if (ur_registers[id].access != UR_REG_RW)
			continue;
		cr_assert(n < cap);
		ur_put_registers(m.b + UR_SMP_DATA, &r);
		ur_store64(m.b + UR_SMP_MKEY, KEY);
		cr_assert(ask(f, 0, &m, 0, &picture[n]) && !status_of(&picture[n]));
		memset(picture[n++].b, 0, UR_SMP_DATA);
	}
}

/* A request that would have an effect if it had the key, as far as a stranger can make one. */
static struct mad hostile(struct fabric *f)
{
	static const uint8_t classes[] = {UR_MAD_CLASS_SMP_DR, UR_MAD_CLASS_SMP_LID,
					  UR_MAD_CLASS_VENDOR, UR_MAD_CLASS_PERF,
					  UR_MAD_CLASS_SA,     UR_MAD_CLASS_CM};
	static const uint16_t attrs[] = {UR_SMP_PORT_INFO,  UR_SMP_SWITCH_INFO, UR_SMP_GUID_INFO,
					 UR_SMP_PKEY_TABLE, UR_SMP_SL2VL,	UR_SMP_VL_ARB,
					 UR_SMP_LFT,	    UR_SMP_REGISTERS,	UR_SMP_EEPROM,
					 UR_SMP_NOTICE,	    UR_SMP_SM_INFO};
	struct mad m = new_mad(f, classes[below(8) % 6], UR_MAD_METHOD_SET, attrs[below(11)],
			       below(3) | below(5) << 16);
	unsigned body = m.b[1] == UR_MAD_CLASS_VENDOR ? UR_VENDOR_BODY : UR_SMP_DATA;

	if (m.b[1] == UR_MAD_CLASS_SMP_DR) {
		m.b[UR_SMP_HOP_POINTER] = m.b[UR_SMP_HOP_COUNT] = 1;
		memset(m.b + UR_SMP_DR_SLID, 0xff, 4);
	} else if (m.b[1] == UR_MAD_CLASS_VENDOR) {
		ur_store24(m.b + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
		ur_store16(m.b + 16, (uint16_t)(UR_VENDOR_REGISTERS + below(2)));
	}
	for (unsigned i = 0; i < 32; i += 8)
		ur_store64(m.b + body + i, random64() & random64());
	m.b[body] = (uint8_t)below(8);
	ur_store16(m.b + body + 4,
		   ur_register_address((enum ur_register_id)below(UR_REGISTER_CNT), 1));
	if (below(4) == 0)
		m.b[3] = (uint8_t)random64();
	for (unsigned i = below(4); i; i--)
		m.b[below(UR_MAD_BYTES)] ^= (uint8_t)(1u << below(8));
	/* Near misses of the key: one bit is wrong. */
	if (below(2))
		ur_store64(m.b + (m.b[1] == UR_MAD_CLASS_VENDOR ? UR_VENDOR_KEY : UR_SMP_MKEY),
			   KEY ^ UINT64_C(1) << below(64));
	return m;
}

Test(nma_hostile, strangers_without_the_key_write_nothing, .timeout = 3600)
{
	const char *text = getenv("UROCE_HOSTILE_MADS");
	unsigned long cnt = text ? strtoul(text, NULL, 10) : DEFAULT, executed;
	struct fabric *f = fabric_new();
	struct ur_nma_attr attr = fabric_attr(true, 1);
	static struct mad before[64], after[64];
	struct ur_nma *nma;
	struct ur_nma_out out;
	struct ur_port_info info = {.m_key = KEY, .m_key_protect = 1, .lid = 2, .sm_lid = 1};
	struct mad m, r;

	rng = (uint64_t)cnt * 2 + 1;
	fabric_add(f, false, NULL);
	fabric_add(f, true, &attr);
	fabric_join(f, 0, 1, 1, 1);
	m = new_dr(f, UR_MAD_METHOD_SET, UR_SMP_PORT_INFO, 0, route, 1);
	ur_put_port_info(m.b + UR_SMP_DATA, &info);
	cr_assert(ask(f, 0, &m, 0, &r) && !status_of(&r));
	nma = f->node[1].nma;
	fabric_run(f);
	take_picture(f, before, 64);
	f->node[1].writes = 0;
	executed = (unsigned long)ur_nma_stats(nma)->executed;
	for (unsigned long i = 0; i < cnt; i++) {
		struct ur_nma_from from = {
			.way = (enum ur_mad_way)below(3), .port = 1, .slid = 9, .dlid = 2};

		m = hostile(f);
		from.qpn = m.b[1] != UR_MAD_CLASS_SMP_DR && m.b[1] != UR_MAD_CLASS_SMP_LID;
		if (m.b[1] == UR_MAD_CLASS_SMP_DR)
			from.way = UR_MAD_HOP;
		/* A flipped bit can make a near miss the key: then it is not hostile. */
		if (ur_load64(m.b + UR_SMP_MKEY) == KEY || ur_load64(m.b + UR_VENDOR_KEY) == KEY)
			continue;
		f->now += 1000;
		ur_nma_input(nma, m.b, &from, f->now);
		while (ur_nma_output(nma, &out, f->now))
			;
		if (ur_nma_next_deadline(nma) <= f->now)
			ur_nma_expire(nma, f->now);
		cr_assert(f->node[1].writes == 0, "request %lu wrote", i);
	}
	cr_assert(ur_nma_stats(nma)->bad_key > cnt / 4);
	cr_assert(ur_nma_stats(nma)->executed - executed > cnt / 8,
		  "most got no further than the door");
	f->now += UINT64_C(60000000000); /* what is pending ends */
	while (ur_nma_output(nma, &out, f->now))
		f->now += UINT64_C(1000000000);
	take_picture(f, after, 64);
	cr_assert(f->node[1].writes == 0);
	for (unsigned i = 0; i < 64; i++)
		cr_assert_arr_eq(before[i].b, after[i].b, UR_MAD_BYTES, "picture %u changed", i);
	fabric_free(f);
}
