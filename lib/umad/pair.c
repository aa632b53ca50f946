/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibumad: what releases of rdma-core after 44 have added. An adapter there may be two devices, one for SMPs and one for
 * GMPs; here it is one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "umad/client.h"

/* umad_ca_pair of newer headers. */
struct pair {
	char smi_name[UMAD_CA_NAME_LEN];
	uint32_t smi_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_port;
};

/* Newer headers declare the functions with their own types. */
int open_smi_port(const char *ca_name, int portnum) __asm__("umad_open_smi_port");
int get_pairs(struct pair *pairs, size_t max) __asm__("umad_get_smi_gsi_pairs");
int get_pair(const char *ca_name, uint8_t portnum, struct pair *pair,
	     unsigned enforce_smi) __asm__("umad_get_smi_gsi_pair_by_ca_name");

int open_smi_port(const char *ca_name, int portnum)
{
	return umad_open_port(ca_name, portnum);
}

int get_pair(const char *ca_name, uint8_t portnum, struct pair *pair, unsigned enforce_smi)
{
	struct ur_umad_ca ca;
	int rc = ur_umad_resolve(ca_name, portnum, &ca);

	(void)enforce_smi;
	if (rc < 0)
		return rc;
	*pair = (struct pair){.smi_port = ca.port.number, .gsi_port = ca.port.number};
	snprintf(pair->smi_name, sizeof(pair->smi_name), "%s", ca.name);
	snprintf(pair->gsi_name, sizeof(pair->gsi_name), "%s", ca.name);
	return 0;
}

int get_pairs(struct pair *pairs, size_t max)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int cnt = ur_umad_list(names, UMAD_MAX_DEVICES), n = 0;

	for (int i = 0; i < cnt && (size_t)n < max; i++)
		if (get_pair(names[i], 0, &pairs[n], 0) == 0)
			n++;
	return n;
}
