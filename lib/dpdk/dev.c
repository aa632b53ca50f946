/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/dev.h"

#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bsd/string.h>

#include "dpdk/preflight.h"
#include "dpdk/xdp_prog.h"

struct first {
	char *text;
	size_t cap;
};

static void keep_first(void *arg, const struct ur_preflight_item *item)
{
	struct first *f = arg;

	if (item->fatal && f->text[0] == '\0')
		strlcpy(f->text, item->what, f->cap);
}

static bool kernel_has_af_xdp(void)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool ur_dev_suits_af_xdp(const struct ur_config *cfg, char *why, size_t cap)
{
	struct ur_config xdp = *cfg;
	struct first f = {why, cap};

	xdp.port.driver = UR_DRIVER_AF_XDP;
	why[0] = '\0';
	if (ur_config_check(&xdp, why, cap) != 0 || ur_preflight(&xdp, keep_first, &f) != 0)
		return false;
	if (!ur_xdp_prog_exists())
		strlcpy(why, "this build lacks the XDP program", cap);
	else if (!kernel_has_af_xdp())
		strlcpy(why, "this kernel has no AF_XDP", cap);
	else if (ur_xdp_prog_is_foreign(if_nametoindex(cfg->port.device)))
		strlcpy(why, "another program's XDP program is on the interface", cap);
	return why[0] == '\0';
}
