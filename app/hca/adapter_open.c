/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening an adapter, and what it tells programs about itself. */
#include "adapter_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "wire/bytes.h"
#include "wire/smp.h"

#define PORT	 1
#define LANE_MAX 12

/* As uroce-switch: "LI" with the local bit, and two letters. */
#define VENDOR_ID 0x024c49
#define DEVICE_ID 0x4841

int adapter_open(struct adapter *a, const struct adapter_config *config, uint64_t now)
{
	static const struct ur_nma_limits limits = {
		.ports = 1, .requests = 1024, .passing = 4096, .remembered = 256, .notices = 64};
	struct mux_ops *ops = calloc(1, sizeof(*ops));
	struct ur_nma_attr attr = {
		.limits = limits,
		.type = UR_NODE_CA,
		.vendor_id = VENDOR_ID,
		.device_id = DEVICE_ID,
		.ops = &adapter_nma_ops,
		.ctx = a,
	};
	uint64_t seed;

	memset(a, 0, sizeof(*a));
	a->now = now;
	a->memory = aligned_alloc(64, (ur_nma_size(&limits) + 63) / 64 * 64);
	if (ops == NULL || a->memory == NULL) {
		fprintf(stderr, "uroce-hca: out of memory\n");
		free(ops);
		free(a->memory);
		return -1;
	}
	strlcpy(a->name, config->name, sizeof(a->name));
	if (link_open(&a->link, config->link, config->mac) < 0) {
		free(ops);
		free(a->memory);
		return -1;
	}
	ops->send = adapter_send_local;
	ops->deliver = config->deliver;
	arc4random_buf(&seed, sizeof(seed));
	mux_init(&a->mux, ops, a, seed);
	attr.port_guid = attr.node_guid = ur_mac_guid(a->link.mac);
	arc4random_buf(&attr.seed, sizeof(attr.seed));
	strlcpy(attr.description, config->description, sizeof(attr.description));
	a->nma = ur_nma_init(a->memory, &attr, now);
	return 0;
}

void adapter_close(struct adapter *a)
{
	mux_fini(&a->mux);
	free((void *)(uintptr_t)a->mux.ops);
	link_close(&a->link);
	free(a->memory);
}

/* Gb/s as sysfs has it, rounded down: 2.5 is 2. */
static uint32_t rate_gbps(const struct ur_port_info *p)
{
	static const struct {
		uint8_t code;
		uint32_t
			tenths; /* of a lane: Gb/s and the coding's overhead, as the field counts */
	} extended[] = {{1, 140}, {2, 250}, {4, 500}, {8, 1000}},
	  plain[] = {{1, 25}, {2, 50}, {4, 100}};
	static const struct {
		uint8_t code, lanes;
	} widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, LANE_MAX}, {16, 2}};
	uint32_t lanes = 1, tenths = 0;

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (p->width_active == widths[i].code)
			lanes = widths[i].lanes;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (p->speed_active == plain[i].code)
			tenths = plain[i].tenths;
	for (size_t i = 0; i < sizeof(extended) / sizeof(extended[0]); i++)
		if (p->speed_ext_active == extended[i].code)
			tenths = extended[i].tenths;
	return lanes * tenths / 10;
}

void adapter_describe(void *adapter, struct ur_umad_ca *ca)
{
	struct adapter *a = adapter;
	uint8_t data[UR_SMP_DATA_BYTES] = {0};
	struct ur_node_info node;
	struct ur_port_info port;

	/* Not by MADs: they would need the key, which a subnet manager may have set. */
	(void)ur_nma_query(a->nma, UR_SMP_NODE_INFO, 0, data);
	ur_get_node_info(data, &node);
	(void)ur_nma_query(a->nma, UR_SMP_PORT_INFO, PORT, data);
	ur_get_port_info(data, &port);
	(void)ur_nma_query(a->nma, UR_SMP_PKEY_TABLE, 0, data);
	*ca = (struct ur_umad_ca){
		.node_type = node.node_type,
		.node_guid = node.node_guid,
		.system_guid = node.system_guid,
		.port = {.number = PORT,
			 .base_lid = port.lid,
			 .lmc = port.lmc,
			 .sm_lid = port.sm_lid,
			 .sm_sl = port.sm_sl,
			 .state = port.state,
			 .phys_state = port.phys_state,
			 .rate_gbps = rate_gbps(&port),
			 .cap_mask = port.capability_mask,
			 .pkeys_cnt = node.partition_cap < UR_UMAD_PKEYS ? node.partition_cap
									 : UR_UMAD_PKEYS,
			 .gid_prefix = port.gid_prefix,
			 .guid = node.port_guid},
	};
	for (unsigned i = 0; i < UR_UMAD_PKEYS; i++)
		ca->port.pkeys[i] = ur_load16(data + 2 * i);
	strlcpy(ca->name, a->name, sizeof(ca->name));
	strlcpy(ca->type, "uroce", sizeof(ca->type));
	strlcpy(ca->fw_version, UROCE_VERSION, sizeof(ca->fw_version));
	snprintf(ca->hw_version, sizeof(ca->hw_version), "%x", node.revision);
}
