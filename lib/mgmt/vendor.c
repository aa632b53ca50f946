/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"
#include "mgmt/registers.h"

/* Requests for registers and for the E2PROM, in both of their envelopes (wire/vendor.h). */

#define READ_NS	 UINT64_C(150000) /* a byte of the E2PROM, source: the Tianhe-2 paper */
#define WRITE_NS UINT64_C(3000000)

/*
 * MGMT-KEY-04: writes need the key, also where SMPs would not. MGMT-KEY-01 for reads: the envelope makes no
 * difference.
 */
static bool is_allowed(struct ur_nma *nma, const struct nma_call *call)
{
	uint64_t key = ur_load64(call->mad + (nma_is_smp(call->mad) ? UR_SMP_MKEY : UR_VENDOR_KEY));

	if (nma->m_key && key == nma->m_key)
		return true;
	if (call->set ? !nma->m_key && nma->attr.config.open : !nma->m_key || nma->protect < 2)
		return true;
	nma->stats.bad_key++;
	ur_nma_fault(nma, UR_FAULT_BAD_KEY, call->from->port, 0, 0, call->now_ns);
	return false;
}

/* MGMT-REG-01: both or none. */
static enum ur_vendor_error check_registers(struct ur_nma *nma, const struct nma_call *call,
					    struct ur_registers *r)
{
	const uint16_t address[UR_REGISTERS_MAX] = {r->address0, r->address1};
	const uint64_t value[UR_REGISTERS_MAX] = {r->value0, r->value1};

	if (r->count < 1 || r->count > UR_REGISTERS_MAX)
		return UR_VENDOR_ERROR_COUNT;
	if (!is_allowed(nma, call))
		return UR_VENDOR_ERROR_KEY;
	for (r->entry = 0; r->entry < r->count; r->entry++) {
		enum ur_register_id id;
		uint8_t port;
		enum ur_vendor_error error =
			call->set ? nma_reg_check(nma, address[r->entry], value[r->entry])
				  : nma_reg_find(nma, address[r->entry], &id, &port);

		if (error)
			return error;
	}
	r->entry = 0;
	return UR_VENDOR_ERROR_NONE;
}

enum ur_mad_status nma_registers(struct ur_nma *nma, struct nma_call *call)
{
	struct ur_registers r;

	ur_get_registers(call->data, &r);
	r.entry = 0;
	r.error = (uint8_t)check_registers(nma, call, &r);
	if (!r.error && call->set) {
		nma_reg_write(nma, r.address0, r.value0, call->from, call->mad, call->now_ns);
		if (r.count > 1)
			nma_reg_write(nma, r.address1, r.value1, call->from, call->mad,
				      call->now_ns);
	} else if (!r.error) {
		r.value0 = nma_reg_read(nma, r.address0, call->now_ns);
		r.value1 = r.count > 1 ? nma_reg_read(nma, r.address1, call->now_ns) : 0;
	}
	ur_put_registers(call->data, &r);
	return r.error ? UR_MAD_STATUS_VALUE : UR_MAD_STATUS_OK;
}

/* ---- E2PROM: one request at a time, because it is slow ---- */

uint8_t *nma_eeprom_body(uint8_t *mad)
{
	uint16_t attr_id = ur_load16(mad + 16);

	if (nma_is_smp(mad) && attr_id == UR_SMP_EEPROM)
		return mad + UR_SMP_DATA;
	return mad[1] == UR_MAD_CLASS_VENDOR && attr_id == UR_VENDOR_EEPROM ? mad + UR_VENDOR_BODY
									    : NULL;
}

static uint64_t time_of(struct nma_request *r)
{
	struct ur_eeprom e;

	ur_get_eeprom(nma_eeprom_body(r->mad), &e);
	return e.count * (r->mad[3] == UR_MAD_METHOD_SET ? WRITE_NS : READ_NS);
}

enum ur_mad_status nma_eeprom(struct ur_nma *nma, struct nma_call *call, uint64_t *wait_ns)
{
	const struct ur_nma_ops *ops = nma->attr.ops;
	struct ur_eeprom e;

	*wait_ns = 0;
	ur_get_eeprom(call->data, &e);
	e.entry = 0;
	e.error = UR_VENDOR_ERROR_NONE;
	if (!ops->eeprom_load || (call->set && !ops->eeprom_store))
		e.error = UR_VENDOR_ERROR_ABSENT;
	else if (e.count < 1 || e.count > UR_EEPROM_MAX)
		e.error = UR_VENDOR_ERROR_COUNT;
	else if (!is_allowed(nma, call))
		e.error = UR_VENDOR_ERROR_KEY;
	else
		*wait_ns = e.count * (call->set ? WRITE_NS : READ_NS);
	ur_put_eeprom(call->data, &e);
	return e.error ? UR_MAD_STATUS_VALUE : UR_MAD_STATUS_OK;
}

/* Two requesters that cannot be told apart count as one. */
static bool is_same_requester(const struct nma_request *a, const struct nma_request *b)
{
	const struct ur_nma_from *f = &a->from, *g = &b->from;
	struct ur_gid at, of;

	if (f->way != g->way || f->port != g->port || f->slid != g->slid || f->sqpn != g->sqpn ||
	    a->mad[1] != b->mad[1])
		return false;
	if (a->mad[1] == UR_MAD_CLASS_SMP_DR) /* where it came from */
		return memcmp(a->mad + UR_SMP_RETURN, b->mad + UR_SMP_RETURN,
			      UR_SMP_HOPS_MAX + 1) == 0;
	if (f->way != UR_MAD_IP)
		return true;
	at = ur_path_destination(&f->path);
	of = ur_path_destination(&g->path);
	return ur_gid_eq(&at, &of);
}

/* MGMT-EEPROM-02: each requester has one request, so that none is refused because another one always is first. */
bool nma_eeprom_take(struct ur_nma *nma, const struct nma_request *r, uint64_t now_ns)
{
	if (nma->eeprom_cnt == NMA_EEPROM_REQUESTS)
		return false;
	for (unsigned i = 0; i < nma->eeprom_cnt; i++)
		if (is_same_requester(r, &nma->eeprom[i]))
			return false;
	nma->eeprom[nma->eeprom_cnt++] = *r;
	if (nma->eeprom_cnt == 1)
		nma->eeprom_due_ns = now_ns + time_of(nma->eeprom);
	return true;
}

void nma_eeprom_next(struct ur_nma *nma, uint64_t now_ns)
{
	memmove(nma->eeprom, nma->eeprom + 1, --nma->eeprom_cnt * sizeof(*nma->eeprom));
	if (nma->eeprom_cnt)
		nma->eeprom_due_ns = now_ns + time_of(nma->eeprom);
}

static void finish(struct ur_nma *nma, uint8_t *body, bool set)
{
	const struct ur_nma_ops *ops = nma->attr.ops;
	struct ur_eeprom e;

	ur_get_eeprom(body, &e);
	for (unsigned i = 0; i < e.count; i++)
		if (set)
			ops->eeprom_store(nma->attr.ctx, e.address[i], e.value[i]);
		else
			e.value[i] = ops->eeprom_load(nma->attr.ctx, e.address[i]);
	ur_put_eeprom(body, &e);
}

struct nma_request *nma_eeprom_done(struct ur_nma *nma, uint64_t now_ns)
{
	struct nma_request *r = nma->eeprom;

	if (!nma->eeprom_cnt || now_ns < nma->eeprom_due_ns)
		return NULL;
	finish(nma, nma_eeprom_body(r->mad), r->mad[3] == UR_MAD_METHOD_SET);
	return r;
}

/*
 * Values of registers at power-up: from address 0 the letters URN1, then records of an address (16 bits) and a
 * value (64 bits). The address 0xffff, which an erased chip has, ends the list. A record that does not fit a
 * register is passed over.
 */
#define RECORD_BYTES 10

void nma_eeprom_defaults(struct ur_nma *nma, uint64_t now_ns)
{
	static const char magic[4] = {'U', 'R', 'N', '1'};
	const struct ur_nma_ops *ops = nma->attr.ops;

	if (!ops->eeprom_load)
		return;
	for (unsigned i = 0; i < sizeof(magic); i++)
		if (ops->eeprom_load(nma->attr.ctx, (uint16_t)i) != (uint8_t)magic[i])
			return;
	for (unsigned at = sizeof(magic); at + RECORD_BYTES <= UR_EEPROM_BYTES;
	     at += RECORD_BYTES) {
		uint8_t record[RECORD_BYTES];

		for (unsigned i = 0; i < RECORD_BYTES; i++)
			record[i] = ops->eeprom_load(nma->attr.ctx, (uint16_t)(at + i));
		if (ur_load16(record) == UINT16_MAX)
			return;
		nma_reg_write(nma, ur_load16(record), ur_load64(record + 2), NULL, NULL, now_ns);
	}
}

enum ur_mad_status nma_vendor(struct ur_nma *nma, struct nma_call *call)
{
	struct ur_class_port_info info = {.base_version = UR_MAD_BASE_VERSION,
					  .class_version = UR_VENDOR_VERSION,
					  .resp_time = 16};

	switch (call->attr_id) {
	case UR_VENDOR_REGISTERS:
		return nma_registers(nma, call);
	case UR_VENDOR_BIST:
		/* The body goes back as it is, to the neighbour only. */
		return call->from->way == UR_MAD_HOP && !call->set ? UR_MAD_STATUS_OK
								   : UR_MAD_STATUS_ATTRIBUTE;
	case UR_VENDOR_CLASS_PORT_INFO:
		if (call->set)
			return UR_MAD_STATUS_ATTRIBUTE;
		memset(call->data, 0, UR_VENDOR_BODY_BYTES);
		ur_put_class_port_info(call->data, &info);
		return UR_MAD_STATUS_OK;
	default:
		return UR_MAD_STATUS_ATTRIBUTE;
	}
}
