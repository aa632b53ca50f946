/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dpdk/eal.h"
#include "edge/config_value.h"
#include "dpdk/eal_args.h"
#include "dpdk/hugepages.h"
#include "edge/mtu.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <rte_common.h>

#define AF_PACKET_FRAMECNT 64 /* small rings stay in cache and are faster than large ones */
#define MEMIF_FRAMECNT	   256
#define CREDIT_FRAMECNT	   1024
#define TAP_SLOTS	   500 /* txqueuelen of a tap is 1000 */
#define SLOT_ALIGN	   512 /* keeps the block of an af_packet ring at 8 slots or fewer */

__attribute__((format(printf, 4, 5))) static int fail(int rc, char *err, size_t cap,
						      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, cap, fmt, ap);
	va_end(ap);
	return rc;
}

/* CPUs this thread may run on, in ascending order. */
static unsigned allowed_cpus(unsigned *cpu, unsigned cap)
{
	cpu_set_t set;
	unsigned n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 0;
	for (unsigned i = 0; i < CPU_SETSIZE && n < cap; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	return n;
}

bool ur_eal_wants_dedicated(const struct ur_config *cfg)
{
	unsigned cpu[3];

	if (cfg->worker.mode == UR_WORKER_MODE_AUTO)
		return allowed_cpus(cpu, 3) > 2;
	return cfg->worker.mode == UR_WORKER_MODE_DEDICATED;
}

static bool contains(const unsigned *list, unsigned cnt, unsigned value)
{
	for (unsigned i = 0; i < cnt; i++)
		if (list[i] == value)
			return true;
	return false;
}

/*
 * "0@(0,1)": the main lcore floats over all CPUs no worker has, or over all of them when the
 * workers have every one; lcores 1 and up are the workers, several on one CPU if there are few.
 */
static int lcore_map(const struct ur_config *cfg, char *buf, size_t cap)
{
	unsigned cpu[256], taken[UR_WORKERS_MAX];
	unsigned cpus = allowed_cpus(cpu, RTE_DIM(cpu));
	unsigned workers = ur_eal_wants_dedicated(cfg) ? cfg->worker.count : 0;
	char item[32];
	bool any = false;

	if (cpus == 0)
		return -ESRCH;
	if (cfg->worker.lcores[0] != '\0')
		ur_config_cpus(cfg->worker.lcores, taken, UR_WORKERS_MAX);
	else
		for (unsigned i = 0; i < workers; i++)
			taken[i] = cpu[(i + 1) % cpus];
	strlcpy(buf, "0@(", cap);
	for (unsigned pass = 0; pass < 2 && !any; pass++) {
		for (unsigned i = 0; i < cpus; i++) {
			if (pass == 0 && contains(taken, workers, cpu[i]))
				continue;
			snprintf(item, sizeof(item), "%s%u", any ? "," : "", cpu[i]);
			strlcat(buf, item, cap);
			any = true;
		}
	}
	strlcat(buf, ")", cap);
	for (unsigned i = 0; i < workers; i++) {
		snprintf(item, sizeof(item), ",%u@%u", i + 1, taken[i]);
		strlcat(buf, item, cap);
	}
	return strlen(buf) + 1 < cap ? 0 : -ENAMETOOLONG;
}

__attribute__((format(printf, 2, 3))) static void add(struct ur_eal_args *a, const char *fmt, ...)
{
	char *at = a->buf;
	size_t room;
	va_list ap;
	int n;

	/* one slot stays NULL; the caller looks at argc once, at the end */
	if (a->argc < 0 || a->argc + 1 >= (int)RTE_DIM(a->argv)) {
		a->argc = -1;
		return;
	}
	if (a->argc != 0)
		at = a->argv[a->argc - 1] + strlen(a->argv[a->argc - 1]) + 1;
	room = (size_t)(a->buf + sizeof(a->buf) - at);
	va_start(ap, fmt);
	n = vsnprintf(at, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room) {
		a->argc = -1;
		return;
	}
	a->argv[a->argc++] = at;
	a->argv[a->argc] = NULL;
}

static int choose_memory(const struct ur_config *cfg, struct ur_eal_args *a, char *err, size_t cap)
{
	uint64_t free_mb = cfg->eal.hugepages == UR_TRISTATE_NO ? 0 : ur_eal_free_hugepages_mb();
	char where[2 * UR_CONFIG_TEXT];

	/* A cgroup may forbid what /sys shows as free. */
	a->hugepages = free_mb >= cfg->eal.memory_mb && ur_hugepages_map(cfg->eal.memory_mb);
	if (!a->hugepages && cfg->eal.hugepages == UR_TRISTATE_YES) {
		ur_config_where(cfg, "eal", "hugepages", where, sizeof(where));
		return fail(-ENOMEM, err, cap,
			    "%s%llu MiB of hugepages are free and memory_mb = %u; "
			    "`sysctl vm.nr_hugepages=%llu` fixes it, or hugepages = auto",
			    where, (unsigned long long)free_mb, cfg->eal.memory_mb,
			    (unsigned long long)ur_eal_nr_hugepages_for(cfg->eal.memory_mb));
	}
	if (!a->hugepages && cfg->port.zero_copy) {
		ur_config_where(cfg, "port", "zero_copy", where, sizeof(where));
		return fail(-ENOMEM, err, cap,
			    "%sneeds hugepages and %llu MiB of %u are free; "
			    "`sysctl vm.nr_hugepages=%llu` fixes it, or zero_copy = no",
			    where, (unsigned long long)free_mb, cfg->eal.memory_mb,
			    (unsigned long long)ur_eal_nr_hugepages_for(cfg->eal.memory_mb));
	}
	/* --in-memory is --no-shconf plus hugepages in memfds, and the EAL refuses it without them
	 */
	if (!a->hugepages)
		add(a, "--no-huge");
	if (cfg->eal.in_memory)
		add(a, a->hugepages ? "--in-memory" : "--no-shconf");
	if (a->hugepages && (cfg->port.zero_copy || cfg->port.driver == UR_DRIVER_MEMIF))
		add(a, "--single-file-segments");
	add(a, "-m");
	add(a, "%u", cfg->eal.memory_mb);
	return 0;
}

int ur_eal_args(const struct ur_config *cfg, struct ur_eal_args *a, char *err, size_t err_cap)
{
	char map[1024], extra[UR_CONFIG_TEXT], where[2 * UR_CONFIG_TEXT];
	char *rest = extra, *word;
	int rc;

	memset(a, 0, sizeof(*a));
	add(a, "uroce");
	if (cfg->eal.file_prefix[0] != '\0')
		add(a, "--file-prefix=%s", cfg->eal.file_prefix);
	else
		add(a, "--file-prefix=uroce-%d", (int)getpid());
	rc = choose_memory(cfg, a, err, err_cap);
	if (rc != 0)
		return rc;
	if (cfg->port.driver != UR_DRIVER_PCI) {
		add(a, "--no-pci");
	} else {
		add(a, "-a");
		add(a, "%s%s%s", cfg->port.device, cfg->port.args[0] != '\0' ? "," : "",
		    cfg->port.args);
	}
	if (cfg->eal.lcores[0] != '\0')
		strlcpy(map, cfg->eal.lcores, sizeof(map));
	else if (lcore_map(cfg, map, sizeof(map)) != 0)
		return fail(-ENAMETOOLONG, err, err_cap,
			    "the CPUs of this machine do not fit an lcore map; set [eal] lcores");
	add(a, "--lcores=%s", map);
	if (strstr(cfg->eal.extra, "--log-level") == NULL)
		add(a, "--log-level=error");
	strlcpy(extra, cfg->eal.extra, sizeof(extra));
	while ((word = strsep(&rest, " \t")) != NULL)
		if (*word != '\0')
			add(a, "%s", word);
	if (a->argc < 0) {
		ur_config_where(cfg, "eal", "extra", where, sizeof(where));
		return fail(-E2BIG, err, err_cap, "%sthe EAL's arguments are too long", where);
	}
	return a->argc;
}

static int kernel_mtu(const char *interface, uint32_t *mtu)
{
	char path[UR_CONFIG_TEXT + 32];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", interface);
	f = fopen(path, "r");
	if (f == NULL)
		return -ENODEV;
	n = fscanf(f, "%u", mtu);
	fclose(f);
	return n == 1 ? 0 : -ENODEV;
}

/* Slots of a ring; with credits there is to be a buffer for some frames of each lane. */
static uint32_t slots_of(const struct ur_config *cfg, uint32_t usual)
{
	if (cfg->port.framecnt)
		return cfg->port.framecnt;
	return cfg->port.credits ? CREDIT_FRAMECNT : usual;
}

uint32_t ur_eal_rx_slots(const struct ur_config *cfg, uint16_t rx_desc)
{
	switch (cfg->port.driver) {
	case UR_DRIVER_AF_PACKET:
		return slots_of(cfg, AF_PACKET_FRAMECNT);
	case UR_DRIVER_MEMIF:
		return slots_of(cfg, MEMIF_FRAMECNT);
	case UR_DRIVER_RING:
		return slots_of(cfg, UR_EAL_RING_SLOTS);
	case UR_DRIVER_TAP:
		return TAP_SLOTS;
	default:
		return rx_desc;
	}
}

static int af_packet_args(const struct ur_config *cfg, uint32_t link_mtu, unsigned n, char *buf,
			  size_t cap)
{
	uint32_t framesz = cfg->port.framesz, mtu = cfg->port.mtu;
	uint32_t framecnt = slots_of(cfg, AF_PACKET_FRAMECNT);
	uint32_t page = (uint32_t)getpagesize(), blocksz;

	if (mtu == 0)
		mtu = link_mtu;
	if (framesz == 0)
		framesz = RTE_ALIGN_CEIL(RTE_MIN(mtu, 9600u) + UR_AF_PACKET_ROOM_BYTES, SLOT_ALIGN);
	/* slots must follow one another without a gap: a block is the least common multiple */
	for (blocksz = framesz; blocksz % page != 0;)
		blocksz += framesz;
	framecnt = RTE_MAX(framecnt, blocksz / framesz);
	return snprintf(buf, cap,
			"net_af_packet%u,iface=%s,qpairs=%u,framesz=%u,blocksz=%u,framecnt=%u", n,
			cfg->port.device, cfg->worker.count, framesz, blocksz, framecnt);
}

static int memif_args(const struct ur_config *cfg, unsigned n, char *buf, size_t cap)
{
	static const uint8_t automatic[6];
	uint32_t mtu = cfg->port.mtu != 0 ? cfg->port.mtu : UR_VIRTUAL_MTU;
	uint32_t framecnt = slots_of(cfg, MEMIF_FRAMECNT);
	uint32_t framesz = cfg->port.framesz != 0
				   ? RTE_MIN(cfg->port.framesz, 65535u)
				   : RTE_ALIGN_CEIL(mtu + UR_FRAME_OVERHEAD_BYTES, 64u);
	const uint8_t *m = cfg->address.mac;
	char mac[32] = "";

	/* the driver cannot change its address later */
	if (memcmp(m, automatic, 6) != 0)
		snprintf(mac, sizeof(mac), ",mac=%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2],
			 m[3], m[4], m[5]);
	return snprintf(buf, cap,
			"net_memif%u,role=%s,socket=%s,socket-abstract=no,rsize=%u,bsize=%u,"
			"zero-copy=%s%s",
			n, cfg->port.role == UR_MEMIF_ROLE_SERVER ? "server" : "client",
			cfg->port.device, __builtin_ctz(framecnt), framesz,
			cfg->port.zero_copy ? "yes" : "no", mac);
}

static int pcap_args(const struct ur_config *cfg, unsigned n, char *buf, size_t cap)
{
	const char *device = cfg->port.device, *comma = strchr(device, ',');
	int in = comma != NULL ? (int)(comma - device) : 0;

	return snprintf(buf, cap, "net_pcap%u%s%.*s%s%s", n, in != 0 ? ",rx_pcap=" : "", in, device,
			comma != NULL && comma[1] != '\0' ? ",tx_pcap=" : "",
			comma != NULL ? comma + 1 : "");
}

int ur_eal_devargs(const struct ur_config *cfg, unsigned n, char *buf, size_t cap, char *err,
		   size_t err_cap)
{
	const char *device = cfg->port.device;
	bool kernel =
		cfg->port.driver == UR_DRIVER_AF_PACKET || cfg->port.driver == UR_DRIVER_AF_XDP;
	char where[2 * UR_CONFIG_TEXT];
	uint32_t mtu = 0;
	int len = 0;

	if (kernel && kernel_mtu(device, &mtu) != 0) {
		ur_config_where(cfg, "port", "device", where, sizeof(where));
		return fail(-ENODEV, err, err_cap,
			    "%sthere is no interface \"%s\"; `ip link` lists them", where, device);
	}
	switch ((enum ur_driver)cfg->port.driver) {
	case UR_DRIVER_AF_PACKET:
		len = af_packet_args(cfg, mtu, n, buf, cap);
		break;
	case UR_DRIVER_AF_XDP:
		len = snprintf(buf, cap,
			       "net_af_xdp%u,iface=%s,start_queue=0,queue_count=%u,busy_budget=0",
			       n, device, cfg->worker.count);
		break;
	case UR_DRIVER_MEMIF:
		len = memif_args(cfg, n, buf, cap);
		break;
	case UR_DRIVER_TAP:
		len = snprintf(buf, cap, "net_tap%u,iface=%s", n, device);
		break;
	case UR_DRIVER_PCAP:
		len = pcap_args(cfg, n, buf, cap);
		break;
	case UR_DRIVER_PCI:
		len = snprintf(buf, cap, "%s", device);
		break;
	case UR_DRIVER_RING:
		return fail(-EINVAL, err, err_cap, "driver ring has no device arguments");
	}
	if (len >= 0 && (size_t)len < cap && cfg->port.args[0] != '\0')
		len += snprintf(buf + len, cap - (size_t)len, ",%s", cfg->port.args);
	if (len >= 0 && (size_t)len >= cap)
		return fail(-ENAMETOOLONG, err, err_cap, "the arguments of the port are too long");
	return len < 0 ? len : 0;
}
