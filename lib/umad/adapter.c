/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibumad: which adapters there are, and what they and their ports are. The kernel's library reads
 * /sys/class/infiniband; this one asks uroce-hca.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "umad/client.h"

int umad_init(void)
{
	return 0;
}

int umad_done(void)
{
	return 0;
}

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	return ur_umad_list(cas, max);
}

static int fill_port(umad_port_t *port, const struct ur_umad_ca *ca)
{
	const struct ur_umad_port *p = &ca->port;

	*port = (umad_port_t){
		.portnum = (int)p->number,
		.base_lid = p->base_lid,
		.lmc = p->lmc,
		.sm_lid = p->sm_lid,
		.sm_sl = p->sm_sl,
		.state = p->state,
		.phys_state = p->phys_state,
		.rate = p->rate_gbps,
		.capmask = htobe32(p->cap_mask),
		.gid_prefix = htobe64(p->gid_prefix),
		.port_guid = htobe64(p->guid),
		.pkeys_size = p->pkeys_cnt,
		/* Tools leave out a port whose link layer is another. */
		.link_layer = "InfiniBand",
	};
	snprintf(port->ca_name, sizeof(port->ca_name), "%s", ca->name);
	port->pkeys = calloc(p->pkeys_cnt + 1, sizeof(*port->pkeys));
	if (port->pkeys == NULL)
		return -ENOMEM;
	memcpy(port->pkeys, p->pkeys, p->pkeys_cnt * sizeof(*port->pkeys));
	return 0;
}

int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	struct ur_umad_ca ca;
	int rc = ur_umad_resolve(ca_name, portnum, &ca);

	return rc < 0 ? rc : fill_port(port, &ca);
}

int umad_release_port(umad_port_t *port)
{
	if (port == NULL)
		return -ENODEV;
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
	return 0;
}

int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	struct ur_umad_ca from;
	umad_port_t *port;
	int rc = ur_umad_resolve(ca_name, 0, &from);

	if (rc < 0)
		return rc;
	*ca = (umad_ca_t){
		.node_type = from.node_type,
		.numports = (int)from.port.number,
		.node_guid = htobe64(from.node_guid),
		.system_guid = htobe64(from.system_guid),
	};
	snprintf(ca->ca_name, sizeof(ca->ca_name), "%s", from.name);
	snprintf(ca->fw_ver, sizeof(ca->fw_ver), "%s", from.fw_version);
	snprintf(ca->hw_ver, sizeof(ca->hw_ver), "%s", from.hw_version);
	snprintf(ca->ca_type, sizeof(ca->ca_type), "%s", from.type);
	port = calloc(1, sizeof(*port));
	if (port == NULL)
		return -ENOMEM;
	rc = fill_port(port, &from);
	if (rc < 0) {
		free(port);
		return rc;
	}
	ca->ports[from.port.number] = port;
	return 0;
}

int umad_release_ca(umad_ca_t *ca)
{
	if (ca == NULL)
		return -ENODEV;
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (ca->ports[i] == NULL)
			continue;
		umad_release_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}

int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	struct ur_umad_ca ca;
	int rc = ur_umad_resolve(ca_name, 0, &ca);

	if (rc < 0)
		return rc;
	if (portguids == NULL)
		return 0;
	/* By number of the port: an adapter has no port 0. */
	if (max < (int)ca.port.number + 1)
		return -ENOMEM;
	memset(portguids, 0, (ca.port.number + 1) * sizeof(*portguids));
	portguids[ca.port.number] = htobe64(ca.port.guid);
	return (int)ca.port.number + 1;
}

int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	struct ur_umad_ca ca;
	int rc = ur_umad_resolve(ca_name, portnum, &ca), n;

	if (rc < 0)
		return rc;
	n = snprintf(path, (size_t)max, "%s/%s" UR_UMAD_ISSM_SUFFIX, ur_umad_dir(), ca.name);
	return n < 0 || n >= max ? -ENAMETOOLONG : 0;
}

struct umad_device_node *umad_get_ca_device_list(void)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	struct umad_device_node *head = NULL;
	int cnt = ur_umad_list(names, UMAD_MAX_DEVICES);

	if (cnt == 0)
		ur_umad_explain_absence();
	while (cnt-- > 0) {
		size_t bytes = strlen(names[cnt]) + 1;
		struct umad_device_node *node = calloc(1, sizeof(*node) + bytes);

		if (node == NULL) {
			umad_free_ca_device_list(head);
			errno = ENOMEM;
			return NULL;
		}
		node->ca_name = memcpy(node + 1, names[cnt], bytes);
		node->next = head;
		head = node;
	}
	errno = 0;
	return head;
}

void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head != NULL) {
		struct umad_device_node *next = head->next;

		free(head);
		head = next;
	}
}

/* Insertion into a sorted list: there are at most UMAD_MAX_DEVICES. */
int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	struct umad_device_node *sorted = NULL, *node = *head, *next;
	size_t cnt = 0;

	for (const struct umad_device_node *n = node; n != NULL; n = n->next)
		cnt++;
	if (size != 0 && size != cnt)
		return EINVAL;
	for (; node != NULL; node = next) {
		struct umad_device_node **at = &sorted;

		next = node->next;
		while (*at != NULL && strcmp((*at)->ca_name, node->ca_name) <= 0)
			at = &(*at)->next;
		node->next = *at;
		*at = node;
	}
	*head = sorted;
	return 0;
}
