/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dpdk/preflight.h"
#include "dpdk/eal.h"
#include "dpdk/eal_args.h"
#include "dpdk/memif_socket.h"
#include "edge/mtu.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <rte_config.h>
#include <rte_version.h>

/* X(name, bit in CapEff) */
#define CAPS(X)                                                                                    \
	X(NET_ADMIN, 12)                                                                           \
	X(NET_RAW, 13)                                                                             \
	X(SYS_ADMIN, 21)

enum {
#define X(name, bit) CAP_##name = bit,
	CAPS(X)
#undef X
};

#define VENDOR_MELLANOX 0x15b3 /* its drivers work beside the kernel's, without vfio */

struct flight {
	const char *root;
	const struct ur_config *cfg;
	ur_preflight_fn report;
	void *arg;
	int fatal_cnt;
};

__attribute__((format(printf, 4, 5))) static void say(struct flight *f, bool fatal,
						      const char *command, const char *fmt, ...)
{
	char what[512];
	const struct ur_preflight_item item = {fatal, what, command};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	f->fatal_cnt += fatal;
	f->report(f->arg, &item);
}

__attribute__((format(printf, 3, 4))) static const char *text(char *buf, size_t cap,
							      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, cap, fmt, ap);
	va_end(ap);
	return buf;
}

/* The first number in a file below the root, in C notation; `otherwise` when there is none. */
__attribute__((format(printf, 3, 4))) static long number(const struct flight *f, long otherwise,
							 const char *fmt, ...)
{
	char path[512];
	size_t n = strlcpy(path, f->root, sizeof(path));
	long value;
	FILE *file;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path + n, sizeof(path) - n, fmt, ap);
	va_end(ap);
	file = fopen(path, "r");
	if (file == NULL)
		return otherwise;
	if (fscanf(file, "%li", &value) != 1)
		value = otherwise;
	fclose(file);
	return value;
}

/* Whether a module parameter of type bool is set: the file says Y or N. */
static bool parameter(const struct flight *f, const char *name)
{
	char path[512];
	FILE *file;
	int c;

	snprintf(path, sizeof(path), "%s%s", f->root, name);
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	c = fgetc(file);
	fclose(file);
	return c == 'Y';
}

__attribute__((format(printf, 2, 3))) static bool exists(const struct flight *f, const char *fmt,
							 ...)
{
	char path[512];
	size_t n = strlcpy(path, f->root, sizeof(path));
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path + n, sizeof(path) - n, fmt, ap);
	va_end(ap);
	return access(path, F_OK) == 0;
}

/* Entries of a directory whose name starts with `prefix`. */
static unsigned count_entries(const struct flight *f, const char *dir, const char *prefix)
{
	char path[512];
	struct dirent *entry;
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s%s", f->root, dir);
	d = opendir(path);
	if (d == NULL)
		return 0;
	while ((entry = readdir(d)) != NULL)
		n += entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	closedir(d);
	return n;
}

static uint64_t capabilities(const struct flight *f)
{
	char path[512], line[256];
	unsigned long long caps = UINT64_MAX; /* unknown: leave it to the kernel */
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/status", f->root);
	file = fopen(path, "r");
	if (file == NULL)
		return caps;
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	fclose(file);
	return caps;
}

static void check_rights(struct flight *f)
{
	static const char *const name[64] = {
#define X(cap, bit) [bit] = "CAP_" #cap,
		CAPS(X)
#undef X
	};
	uint64_t have = capabilities(f), need = 0;

	switch ((enum ur_driver)f->cfg->port.driver) {
	case UR_DRIVER_AF_PACKET:
		need = 1ull << CAP_NET_RAW;
		if (f->cfg->port.promiscuous)
			need |= 1ull << CAP_NET_ADMIN;
		break;
	case UR_DRIVER_AF_XDP:
		need = 1ull << CAP_NET_RAW | 1ull << CAP_NET_ADMIN | 1ull << CAP_SYS_ADMIN;
		break;
	case UR_DRIVER_TAP:
		need = 1ull << CAP_NET_ADMIN;
		break;
	case UR_DRIVER_PCI:
		need = 1ull << CAP_SYS_ADMIN;
		break;
	case UR_DRIVER_MEMIF:
	case UR_DRIVER_RING:
	case UR_DRIVER_PCAP:
		break;
	}
	for (unsigned i = 0; i < 64; i++)
		if ((need & ~have) >> i & 1)
			say(f, true,
			    ur_config_shares(f->cfg) && i == CAP_NET_RAW
				    ? "sudo COMMAND; in a container --cap-add NET_RAW"
				    : "sudo COMMAND",
			    "driver %s needs %s and this process lacks it",
			    ur_driver_name(f->cfg->port.driver), name[i]);
}

/*
 * Debian names the package of net_af_packet librte-net-af-packet23. It has
 * librte_net_af_packet.so.23; the name without the number is in the development package.
 */
static void check_pmd(struct flight *f)
{
#ifdef RTE_EAL_PMD_PATH
	const char *driver = ur_driver_name(f->cfg->port.driver);
	char package[64], command[128];

	if (RTE_EAL_PMD_PATH[0] == '\0' || !exists(f, "%s", RTE_EAL_PMD_PATH) ||
	    f->cfg->port.driver == UR_DRIVER_PCI ||
	    exists(f, "%s/librte_net_%s.so.%u", RTE_EAL_PMD_PATH, driver, RTE_VER_YEAR + 1) ||
	    exists(f, "%s/librte_net_%s.so", RTE_EAL_PMD_PATH, driver))
		return;
	strlcpy(package, driver, sizeof(package));
	for (char *p = package; *p != '\0'; p++)
		if (*p == '_')
			*p = '-';
	text(command, sizeof(command), "apt-get install librte-net-%s%u", package,
	     RTE_VER_YEAR + 1);
	say(f, true, command, "DPDK's driver net_%s is not installed", driver);
#endif
}

static bool hugetlbfs_mounted(const struct flight *f)
{
	char path[512], line[1024];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/mounts", f->root);
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), file) != NULL)
		found = strstr(line, " hugetlbfs ") != NULL;
	fclose(file);
	return found;
}

static void check_memory(struct flight *f)
{
	uint64_t free_mb = ur_eal_free_hugepages_mb();
	uint32_t want_mb = f->cfg->eal.memory_mb;
	bool needed = f->cfg->eal.hugepages == UR_TRISTATE_YES || f->cfg->port.zero_copy;
	char command[64];

	if (free_mb >= want_mb && f->cfg->eal.hugepages != UR_TRISTATE_NO &&
	    !f->cfg->eal.in_memory && !hugetlbfs_mounted(f))
		say(f, true, "mount -t hugetlbfs nodev /dev/hugepages",
		    "[eal] in_memory = no keeps hugepages in files, and no hugetlbfs is mounted");
	if (f->cfg->eal.hugepages == UR_TRISTATE_NO || free_mb >= want_mb)
		return;
	text(command, sizeof(command), "sysctl vm.nr_hugepages=%llu",
	     (unsigned long long)ur_eal_nr_hugepages_for(want_mb));
	say(f, needed, command, "%llu MiB of hugepages are free and %u are needed; %s",
	    (unsigned long long)free_mb, want_mb,
	    needed ? "this configuration cannot run without them"
		   : "ordinary pages will be used, which is slower");
}

static void check_cpus(struct flight *f)
{
	cpu_set_t set;
	int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;

	if (ur_eal_wants_dedicated(f->cfg) && cpus != 0 &&
	    (uint32_t)cpus < f->cfg->worker.count + 1)
		say(f, false, "",
		    "%u dedicated workers and their caller share %d CPUs; set [worker] "
		    "mode = inline or a smaller count",
		    f->cfg->worker.count, cpus);
}

/* The MTU that the configuration requires; 0: any. */
static uint32_t wanted_mtu(const struct ur_config *cfg)
{
	uint32_t path_mtu = cfg->transport.path_mtu;

	if (cfg->port.mtu != 0)
		return cfg->port.mtu;
	return path_mtu != 0 ? path_mtu + UR_ROCE_OVERHEAD_BYTES : 0;
}

static void check_mtu(struct flight *f, const char *dev)
{
	uint32_t mtu = (uint32_t)number(f, 0, "/sys/class/net/%s/mtu", dev);
	uint32_t want = wanted_mtu(f->cfg);
	bool xdp = f->cfg->port.driver == UR_DRIVER_AF_XDP;
	char command[128];

	if (mtu == 0)
		return;
	if (want == 0 && ur_mtu_payload(mtu) == 0)
		want = 256 + UR_ROCE_OVERHEAD_BYTES;
	if (mtu < want) {
		text(command, sizeof(command), "ip link set dev %s mtu %u", dev, want);
		say(f, true, command, "the MTU of %s is %u and %u is needed", dev, mtu, want);
	} else if (xdp && mtu > UR_AF_XDP_MTU_MAX) {
		text(command, sizeof(command), "ip link set dev %s mtu %u", dev,
		     2048 + UR_ROCE_OVERHEAD_BYTES);
		say(f, true, command, "the MTU of %s is %u and af_xdp supports at most %u", dev,
		    mtu, UR_AF_XDP_MTU_MAX);
	}
}

static void check_queues(struct flight *f, const char *dev)
{
	char dir[UR_CONFIG_TEXT + 32], command[128];
	unsigned queues;

	snprintf(dir, sizeof(dir), "/sys/class/net/%s/queues", dev);
	queues = count_entries(f, dir, "rx-");
	if (queues == 0)
		return;
	text(command, sizeof(command), "ethtool -L %s combined %u", dev, f->cfg->worker.count);
	if (queues < f->cfg->worker.count)
		say(f, true, command, "%s has %u receive queues and [worker] count is %u", dev,
		    queues, f->cfg->worker.count);
	else if (queues > f->cfg->worker.count)
		say(f, ur_config_shares(f->cfg), command,
		    "%s has %u receive queues and af_xdp takes %u; packets on the others are not "
		    "seen",
		    dev, queues, f->cfg->worker.count);
}

static unsigned prefix_bits(const struct sockaddr *mask)
{
	const uint8_t *p = NULL;
	unsigned bits = 0, bytes = 0;

	if (mask && mask->sa_family == AF_INET) {
		p = (const uint8_t *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr;
		bytes = 4;
	} else if (mask && mask->sa_family == AF_INET6) {
		p = (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr;
		bytes = 16;
	}
	for (unsigned i = 0; i < bytes; i++)
		bits += (unsigned)__builtin_popcount(p[i]);
	return bits;
}

/* With af_packet the kernel sees every packet too, and answers those for an address of its own. */
static void check_kernel_addresses(struct flight *f, const char *dev)
{
	const struct ur_config *cfg = f->cfg;
	struct ifaddrs *list, *i;
	char command[128], name[INET6_ADDRSTRLEN];

	if (f->root[0] != '\0' || getifaddrs(&list) != 0)
		return;
	for (i = list; i != NULL; i = i->ifa_next) {
		bool v4 = i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET;
		bool v6 = i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET6;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		bool ours = false;

		if (strcmp(i->ifa_name, dev) != 0 || (!v4 && !v6))
			continue;
		if (v4) {
			memcpy(&in, i->ifa_addr, sizeof(in));
			ours = cfg->address.ipv4.len != 0 &&
			       memcmp(&in.sin_addr, &cfg->address.ipv4.addr.b[12], 4) == 0;
			inet_ntop(AF_INET, &in.sin_addr, name, sizeof(name));
		} else {
			memcpy(&in6, i->ifa_addr, sizeof(in6));
			ours = cfg->address.ipv6.len != 0 &&
			       memcmp(&in6.sin6_addr, &cfg->address.ipv6.addr, 16) == 0;
			/* every interface that is up has a link-local one; it is only in the way
			 * when the endpoint takes the same MAC and so the same address */
			if (!ours && IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) &&
			    !cfg->address.link_local)
				continue;
			inet_ntop(AF_INET6, &in6.sin6_addr, name, sizeof(name));
		}
		text(command, sizeof(command), "ip addr del %s/%u dev %s", name,
		     prefix_bits(i->ifa_netmask), dev);
		say(f, ours, command, "the kernel has the address %s on %s%s", name, dev,
		    ours ? ", which is the endpoint's own" : " and may answer for the endpoint");
	}
	freeifaddrs(list);
}

static void check_interface(struct flight *f)
{
	const char *dev = f->cfg->port.device;
	char command[128];
	long flags;

	if (!exists(f, "/sys/class/net/%s", dev)) {
		text(command, sizeof(command), "ip link add %s type veth peer name %s-peer", dev,
		     dev);
		say(f, true,
		    strlen(dev) < IFNAMSIZ - 5 && !ur_config_shares(f->cfg) ? command : "ip link",
		    "there is no interface %s in this network namespace", dev);
		return;
	}
	flags = number(f, IFF_UP, "/sys/class/net/%s/flags", dev);
	text(command, sizeof(command), "ip link set dev %s up", dev);
	if ((flags & IFF_UP) == 0)
		say(f, true, command, "the interface %s is down", dev);
	else if (number(f, 1, "/sys/class/net/%s/carrier", dev) == 0)
		say(f, false, "", "the interface %s has no carrier: the other end is down", dev);
	check_mtu(f, dev);
	if (f->cfg->port.driver == UR_DRIVER_AF_XDP)
		check_queues(f, dev);
	else if (!ur_config_shares(f->cfg))
		check_kernel_addresses(f, dev);
}

static void check_tap(struct flight *f)
{
	if (!exists(f, "/dev/net/tun"))
		say(f, true, "modprobe tun", "/dev/net/tun is missing, so no tap can be created");
}

static void check_memif(struct flight *f)
{
	const char *path = f->cfg->port.device;
	enum ur_memif_socket state = ur_memif_socket(path);
	char command[UR_CONFIG_TEXT + 16], dir[UR_CONFIG_TEXT];

	strlcpy(dir, path, sizeof(dir));
	dirname(dir);
	if (access(dir, F_OK) != 0) {
		text(command, sizeof(command), "mkdir -p %s", dir);
		say(f, true, command, "the directory %s of the memif socket is missing", dir);
	} else if (f->cfg->port.role == UR_MEMIF_ROLE_SERVER && access(dir, W_OK) != 0) {
		strlcpy(command, path, sizeof(command));
		say(f, true, "",
		    "the directory %s of the memif socket is not writable; choose another on both "
		    "sides, such as --set port.device=/tmp/%s",
		    dir, basename(command));
	} else if (state == UR_MEMIF_SOCKET_OTHER) {
		text(command, sizeof(command), "rm %s", path);
		say(f, true, command, "%s is in the way: it is not a socket that can be used",
		    path);
	} else if (f->cfg->port.role == UR_MEMIF_ROLE_SERVER) {
		if (state == UR_MEMIF_SOCKET_LIVE)
			say(f, true, "",
			    "another memif server listens at %s; stop it or choose another "
			    "[port] device",
			    path);
	} else if (state != UR_MEMIF_SOCKET_LIVE && !f->cfg->leased) {
		say(f, true, "", "no memif server listens at %s; start the server first", path);
	}
}

static void check_pcap(struct flight *f)
{
	char in[UR_CONFIG_TEXT];

	strlcpy(in, f->cfg->port.device, sizeof(in));
	in[strcspn(in, ",")] = '\0';
	if (in[0] != '\0' && access(in, R_OK) != 0) {
		say(f, true, "",
		    "the file %s cannot be read: %s; name it in [port] device = IN,OUT", in,
		    strerror(errno));
	}
}

static void check_pci(struct flight *f)
{
	const char *device = f->cfg->port.device;
	char address[32], command[128], path[512], driver[256];
	bool iommu;
	ssize_t n;

	/* "03:00.0" is short for "0000:03:00.0" */
	strlcpy(address, strlen(device) < 12 ? "0000:" : "", sizeof(address));
	strlcat(address, device, sizeof(address));
	for (char *p = address; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	if (!exists(f, "/sys/bus/pci/devices/%s", address)) {
		say(f, true, "dpdk-devbind.py --status-dev net", "there is no PCI device %s",
		    address);
		return;
	}
	if (number(f, 0, "/sys/bus/pci/devices/%s/vendor", address) == VENDOR_MELLANOX)
		return;
	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/driver", f->root, address);
	n = readlink(path, driver, sizeof(driver) - 1);
	driver[n > 0 ? n : 0] = '\0';
	strlcpy(path, n > 0 ? basename(driver) : "no driver", sizeof(path));
	text(command, sizeof(command), "modprobe vfio-pci && dpdk-devbind.py -b vfio-pci %s",
	     address);
	if (strcmp(path, "vfio-pci") != 0 && strcmp(path, "igb_uio") != 0 &&
	    strcmp(path, "uio_pci_generic") != 0)
		say(f, true, command, "%s is bound to %s and not to vfio-pci", address, path);
	iommu = count_entries(f, "/sys/kernel/iommu_groups", "") != 0;
	if (!iommu && !parameter(f, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode") &&
	    strncmp(path, "uio", 3) != 0 && strcmp(path, "igb_uio") != 0)
		say(f, true,
		    "modprobe vfio && echo 1 > "
		    "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
		    "this machine has no IOMMU (or it is off), so vfio-pci needs its unsafe mode");
	if (!iommu && ur_eal_free_hugepages_mb() < f->cfg->eal.memory_mb) {
		text(command, sizeof(command), "sysctl vm.nr_hugepages=%llu",
		     (unsigned long long)ur_eal_nr_hugepages_for(f->cfg->eal.memory_mb));
		say(f, true, command, "without an IOMMU a PCI device needs hugepages");
	}
}

int ur_preflight_at(const char *root, const struct ur_config *cfg, ur_preflight_fn report,
		    void *arg)
{
	struct flight f = {root, cfg, report, arg, 0};

	check_pmd(&f);
	check_rights(&f);
	check_memory(&f);
	check_cpus(&f);
	switch ((enum ur_driver)cfg->port.driver) {
	case UR_DRIVER_AF_PACKET:
	case UR_DRIVER_AF_XDP:
		check_interface(&f);
		break;
	case UR_DRIVER_TAP:
		check_tap(&f);
		break;
	case UR_DRIVER_MEMIF:
		check_memif(&f);
		break;
	case UR_DRIVER_PCAP:
		check_pcap(&f);
		break;
	case UR_DRIVER_PCI:
		check_pci(&f);
		break;
	case UR_DRIVER_RING:
		break;
	}
	return f.fatal_cnt;
}

int ur_preflight(const struct ur_config *cfg, ur_preflight_fn report, void *arg)
{
	return ur_preflight_at("", cfg, report, arg);
}

void ur_preflight_print(void *file, const struct ur_preflight_item *item)
{
	fprintf(file, "%s: %s\n", item->fatal ? "error" : "warning", item->what);
	if (item->command[0] != '\0')
		fprintf(file, "  fix: %s\n", item->command);
}
