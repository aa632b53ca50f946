/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

static uint64_t bytes_of(const struct sim_port *port, uint64_t ns)
{
	return ns * (port->attr.bits_per_s / 1000000) / 8000;
}

bool sim_port_pass(struct sim_port *port, unsigned len, uint64_t now_ns, uint64_t *at_ns, bool *ecn)
{
	const struct sim_port_attr *a = &port->attr;
	uint64_t wait_ns = port->busy_until_ns > now_ns ? port->busy_until_ns - now_ns : 0;
	uint64_t queued = bytes_of(port, wait_ns);

	if (a->queue_bytes && queued + len > a->queue_bytes) {
		port->dropped++;
		return false;
	}
	*ecn = a->ecn_bytes && queued > a->ecn_bytes;
	port->marked += *ecn;
	port->frames++;
	port->bytes += len;
	port->wait_ns += wait_ns;
	if (wait_ns > port->wait_max_ns)
		port->wait_max_ns = wait_ns;
	port->busy_until_ns = now_ns + wait_ns + (uint64_t)len * 8 * 1000000000u / a->bits_per_s;
	*at_ns = port->busy_until_ns;
	return true;
}
