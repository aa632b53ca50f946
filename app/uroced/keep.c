/* SPDX-License-Identifier: BSD-3-Clause */
#include "keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#define LINE_BYTES 64

const char *keep_read(const char *file, struct lease_table *t, uint64_t now_ns)
{
	char line[LINE_BYTES], address[INET_ADDRSTRLEN], secret[UR_LEASE_SECRET_BYTES];
	const char *wrong = NULL;
	struct in_addr in;
	unsigned uid;
	FILE *f = fopen(file, "re");

	if (!f)
		return errno == ENOENT ? NULL : strerror(errno);
	/* Addresses of another range are forgotten. */
	while (!wrong && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%15s %u %23s", address, &uid, secret) != 3 ||
		    inet_pton(AF_INET, address, &in) != 1)
			wrong = "it is not a file of leases";
		else
			lease_restore(t, ntohl(in.s_addr), uid, secret, now_ns);
	}
	fclose(f);
	return wrong;
}

char *keep_text(const struct lease_table *t, size_t *len)
{
	char *text = malloc(LEASE_ADDRESSES_MAX * LINE_BYTES), address[INET_ADDRSTRLEN];

	*len = 0;
	for (unsigned i = 0; text && i <= t->attr.last - t->attr.first; i++) {
		const struct lease *l = &t->lease[i];
		struct in_addr in = {htonl(lease_own(t, i))};

		if (l->state == LEASE_FREE)
			continue;
		inet_ntop(AF_INET, &in, address, sizeof(address));
		*len += (size_t)snprintf(text + *len, LINE_BYTES, "%s %u %s\n", address, l->uid,
					 l->secret);
	}
	return text;
}
