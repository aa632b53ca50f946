/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool device_open(struct device *dev, const char *config, const char *const *set)
{
	struct uroce_open_attr attr = {.config = config, .set = set};
	struct ibv_port_attr port;
	char err[512] = "";

	dev->ctx = uroce_open(&attr, err, sizeof(err));
	if (dev->ctx == NULL) {
		fprintf(stderr, "interop: %s\n", err);
		return false;
	}
	memset(&port, 0, sizeof(port));
	if (uroce_query_port(dev->ctx, 1, &port) != 0)
		return false;
	dev->gid_cnt = (unsigned)port.gid_tbl_len;
	return true;
}

bool device_close(struct device *dev)
{
	int rc = uroce_close(dev->ctx);

	if (rc != 0)
		fprintf(stderr, "interop: cannot close the endpoint: %s\n", strerror(rc));
	return rc == 0;
}

unsigned device_progress(struct device *dev)
{
	return uroce_progress(dev->ctx);
}

void device_losses(struct device *dev, char *text, size_t bytes)
{
	static struct uroce_counters before;
	struct uroce_counters c;

	text[0] = '\0';
	if (uroce_query_counters(dev->ctx, &c) != 0)
		return;
	if (c.impaired_lost != before.impaired_lost)
		snprintf(text, bytes, "; lost %llu, sent again %llu, timeouts %llu, probes %llu",
			 (unsigned long long)(c.impaired_lost - before.impaired_lost),
			 (unsigned long long)(c.retransmitted_packets -
					      before.retransmitted_packets),
			 (unsigned long long)(c.local_ack_timeout_err + c.rto -
					      before.local_ack_timeout_err - before.rto),
			 (unsigned long long)(c.probes_sent - before.probes_sent));
	before = c;
}
