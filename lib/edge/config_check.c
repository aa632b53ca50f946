/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/config.h"
#include "edge/config_value.h"
#include "edge/mtu.h"

#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>
#include <sys/un.h>

#include <pcap/pcap.h>

#define RING_NAME_MAX 16

struct check {
	const struct ur_config *cfg;
	char *err;
	size_t cap;
};

/* Writes the message about one key. Always false, so that a rule can return it. */
__attribute__((format(printf, 4, 5))) static bool wrong(const struct check *c, const char *section,
							const char *key, const char *fmt, ...)
{
	char where[2 * UR_CONFIG_TEXT];
	char what[512];
	va_list ap;

	ur_config_where(c->cfg, section, key, where, sizeof(where));
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(c->err, c->cap, "%s%s", where, what);
	return false;
}

static bool interface_name(const char *name)
{
	if (strlen(name) >= IFNAMSIZ || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	for (; *name != '\0'; name++)
		if (*name == '/' || *name == ',' || *name == ':' || isspace((unsigned char)*name))
			return false;
	return true;
}

static bool pci_address(const char *text)
{
	static const char *const pattern[] = {"xxxx:xx:xx.o", "xx:xx.o"};

	for (size_t i = 0; i < 2; i++) {
		const char *p = pattern[i], *t = text;

		while (*p != '\0' && (*p == 'x'	  ? isxdigit((unsigned char)*t)
				      : *p == 'o' ? *t >= '0' && *t <= '7'
						  : *t == *p)) {
			p++;
			t++;
		}
		if (*p == '\0' && *t == '\0')
			return true;
	}
	return false;
}

static bool ring_name(const char *name)
{
	if (strlen(name) > RING_NAME_MAX)
		return false;
	for (; *name != '\0'; name++)
		if (!isalnum((unsigned char)*name) && *name != '_' && *name != '-')
			return false;
	return true;
}

static bool pcap_files(const char *text)
{
	const char *comma = strchr(text, ',');

	return comma != NULL && strchr(comma + 1, ',') == NULL && strlen(text) > 1;
}

static bool check_device(const struct check *c)
{
	const char *dev = c->cfg->port.dev;
	const char *device = c->cfg->port.device[0] != '\0' ? c->cfg->port.device : dev;
	const char *driver = ur_driver_name(c->cfg->port.driver);
	static const char *const device_kind[] = {
		[UR_DRIVER_AF_PACKET] = "the name of an interface",
		[UR_DRIVER_AF_XDP] = "the name of an interface",
		[UR_DRIVER_MEMIF] = "the path of a socket",
		[UR_DRIVER_TAP] = "the name of an interface",
		[UR_DRIVER_RING] = "the name of a ring",
		[UR_DRIVER_PCAP] = "IN.pcap,OUT.pcap",
		[UR_DRIVER_PCI] = "a PCI address",
	};

	if (dev[0] != '\0' && strcmp(device, dev) != 0)
		return wrong(c, "port", "dev",
			     "\"%s\" and device \"%s\" exclude each other; allowed: one of them",
			     dev, device);
	if (device[0] == '\0' && c->cfg->file[0] == '\0')
		return wrong(c, "port", "dev",
			     "no interface is named; allowed: the name of a kernel interface to "
			     "share, or a configuration file, of which pmd-config/ has one for "
			     "each way to a network");
	if (device[0] == '\0')
		return wrong(c, "port", "device", "is missing; allowed with driver %s: %s", driver,
			     device_kind[c->cfg->port.driver]);
	switch ((enum ur_driver)c->cfg->port.driver) {
	case UR_DRIVER_AF_PACKET:
	case UR_DRIVER_AF_XDP:
	case UR_DRIVER_TAP:
		return interface_name(device) ||
		       wrong(c, "port", dev[0] != '\0' ? "dev" : "device",
			     "\"%s\" is not the name of an interface; allowed: 1 to 15 characters "
			     "without '/', ',', ':' and blanks",
			     device);
	case UR_DRIVER_PCI:
		return pci_address(device) || wrong(c, "port", "device",
						    "\"%s\" is not a PCI address; allowed: an "
						    "address such as 0000:03:00.0",
						    device);
	case UR_DRIVER_MEMIF:
		return (strlen(device) < sizeof(((struct sockaddr_un *)0)->sun_path) &&
			strchr(device, ',') == NULL) ||
		       wrong(c, "port", "device",
			     "\"%s\" is not the path of a socket; allowed: at most 107 characters "
			     "without ','",
			     device);
	case UR_DRIVER_RING:
		return ring_name(device) || wrong(c, "port", "device",
						  "\"%s\" is not the name of a ring; allowed: at "
						  "most %d letters, digits, "
						  "'_' and '-'",
						  device, RING_NAME_MAX);
	case UR_DRIVER_PCAP:
		return pcap_files(device) || wrong(c, "port", "device",
						   "\"%s\" is not a pair of files; allowed: "
						   "IN.pcap,OUT.pcap, one of them may "
						   "be empty",
						   device);
	}
	return true;
}

static bool check_driver(const struct check *c)
{
	const struct ur_config *cfg = c->cfg;
	bool memif = cfg->port.driver == UR_DRIVER_MEMIF;

	if (memif && cfg->port.role == UR_MEMIF_ROLE_NONE)
		return wrong(c, "port", "role",
			     "is missing; allowed with driver memif: server, client");
	if (!memif && cfg->port.role != UR_MEMIF_ROLE_NONE)
		return wrong(c, "port", "role", "has no meaning with driver %s; allowed: none",
			     ur_driver_name(cfg->port.driver));
	if (cfg->port.zero_copy && cfg->port.role != UR_MEMIF_ROLE_CLIENT)
		return wrong(
			c, "port", "zero_copy",
			"\"yes\" is not possible here; allowed only with driver memif and role "
			"client");
	if (cfg->port.zero_copy && cfg->eal.hugepages == UR_TRISTATE_NO)
		return wrong(c, "port", "zero_copy",
			     "\"yes\" is not possible with [eal] hugepages = no; allowed: no");
	if (cfg->port.evict == UR_TRISTATE_YES && !cfg->port.zero_copy)
		return wrong(c, "port", "evict",
			     "\"yes\" has no meaning without zero_copy; allowed: auto, no");
	if (cfg->port.driver == UR_DRIVER_PCAP && cfg->worker.count > 1)
		return wrong(c, "worker", "count", "\"%u\" is too many for driver pcap; allowed: 1",
			     cfg->worker.count);
	return true;
}

/* CREDIT-SESSION-01: counters of a link need its order, and all of its packets. */
static bool check_credits(const struct check *c)
{
	if (!c->cfg->port.credits)
		return true;
	if (c->cfg->worker.count != 1)
		return wrong(c, "port", "credits",
			     "\"yes\" needs [worker] count = 1, but it is %u; allowed: no",
			     c->cfg->worker.count);
	if (c->cfg->port.dev[0])
		return wrong(c, "port", "credits",
			     "\"yes\" needs a port of its own, not one that is shared with the "
			     "kernel; allowed: no");
	return true;
}

static bool check_rings(const struct check *c)
{
	uint32_t framesz = c->cfg->port.framesz, mtu = c->cfg->port.mtu;
	uint32_t framecnt = c->cfg->port.framecnt, ring = c->cfg->capture.ring;

	if ((framecnt & (framecnt - 1)) != 0)
		return wrong(c, "port", "framecnt",
			     "\"%u\" is not a power of two; allowed: 0, 2, 4, 8 to 32768",
			     framecnt);
	if (framesz != 0 && (framesz < 256 || framesz % 16 != 0))
		return wrong(
			c, "port", "framesz",
			"\"%u\" is not a multiple of 16; allowed: 0, 256 to 65536 in steps of 16",
			framesz);
	if (framesz != 0 && mtu != 0 && framesz < mtu + UR_AF_PACKET_ROOM_BYTES)
		return wrong(c, "port", "framesz",
			     "\"%u\" is too small for mtu = %u; allowed: 0, %u or more", framesz,
			     mtu, (mtu + UR_AF_PACKET_ROOM_BYTES + 15) / 16 * 16);
	if ((ring & (ring - 1)) != 0)
		return wrong(c, "capture", "ring",
			     "\"%u\" is not a power of two; allowed: 64, 128, 256 to 1048576",
			     ring);
	return true;
}

static bool check_mtu(const struct check *c)
{
	uint32_t mtu = c->cfg->port.mtu, path_mtu = c->cfg->transport.path_mtu;
	bool xdp = c->cfg->port.driver == UR_DRIVER_AF_XDP;

	if (xdp && mtu > UR_AF_XDP_MTU_MAX)
		return wrong(c, "port", "mtu",
			     "\"%u\" is too large for driver af_xdp; allowed: 0, %u to %u", mtu,
			     256 + UR_ROCE_OVERHEAD_BYTES, UR_AF_XDP_MTU_MAX);
	if (xdp && path_mtu > 2048)
		return wrong(c, "transport", "path_mtu",
			     "\"%u\" is too large for driver af_xdp; allowed: auto, 256, 512, "
			     "1024, 2048",
			     path_mtu);
	if (mtu == 0)
		return true;
	if (ur_mtu_payload(mtu) == 0)
		return wrong(c, "port", "mtu",
			     "\"%u\" is too small for RoCE; allowed: 0, %u to 9600", mtu,
			     256 + UR_ROCE_OVERHEAD_BYTES);
	if (path_mtu > ur_mtu_payload(mtu))
		return wrong(c, "transport", "path_mtu",
			     "\"%u\" does not fit [port] mtu = %u; allowed: auto, at most %u, or "
			     "an mtu of "
			     "%u",
			     path_mtu, mtu, ur_mtu_payload(mtu), path_mtu + UR_ROCE_OVERHEAD_BYTES);
	return true;
}

/* Whether the first `len` bits are equal; IPv4 lengths count from bit 96. */
static bool same_net(const struct ur_gid *a, const struct ur_gid *b, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		if (((a->b[i / 8] ^ b->b[i / 8]) << i % 8 & 0x80) != 0)
			return false;
	return true;
}

static bool is_set(const struct ur_gid *g)
{
	static const struct ur_gid zero;

	return !ur_gid_eq(g, &zero);
}

/* The first key of [address] that is set; NULL: none. */
static const char *address_key(const struct ur_config *cfg)
{
	static const uint8_t no_mac[6];
	const struct {
		const char *key;
		bool set;
	} key[] = {
		{"mac", memcmp(cfg->address.mac, no_mac, 6) != 0},
		{"ipv4", cfg->address.ipv4.len != 0},
		{"ipv6", cfg->address.ipv6.len != 0},
		{"link_local", !cfg->address.link_local},
		{"gateway4", is_set(&cfg->address.gateway4)},
		{"gateway6", is_set(&cfg->address.gateway6)},
		{"vlan", cfg->address.vlan != 0},
		{"neighbor", cfg->address.neighbors.cnt != 0},
	};

	for (unsigned i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		if (key[i].set)
			return key[i].key;
	return NULL;
}

/* A shared interface has the kernel's addresses, and a VLAN is an interface of its own. */
static bool check_shared(const struct check *c)
{
	const struct ur_config *cfg = c->cfg;
	const char *key = address_key(cfg);

	if (cfg->port.driver != UR_DRIVER_AF_PACKET && cfg->port.driver != UR_DRIVER_AF_XDP)
		return wrong(c, "port", "driver",
			     "\"%s\" cannot share an interface with the kernel; allowed with dev: "
			     "af_packet, af_xdp",
			     ur_driver_name(cfg->port.driver));
	return !key || wrong(c, "address", key,
			     "is up to the kernel with [port] dev = %s; allowed: the "
			     "default (`ip` sets it, and a VLAN has an interface of its own)",
			     cfg->port.dev);
}

bool ur_config_leases(const struct ur_config *cfg)
{
	static const char name[] = "uroced";
	const char *rest = cfg->port.dev + sizeof(name) - 1;

	return strncmp(cfg->port.dev, name, sizeof(name) - 1) == 0 &&
	       (*rest == '\0' || *rest == ':' || *rest == '@');
}

/* A gateway is for other networks, and so is not the lease's: it may be set. */
static bool check_lease(const struct check *c)
{
	static const char *const taken[] = {"driver", "device", "role", "zero_copy"};
	struct ur_config without = *c->cfg;
	const char *key;

	without.address.gateway4 = (struct ur_gid){{0}};
	without.address.neighbors.cnt = 0;
	key = address_key(&without);
	for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (ur_config_is_given(c->cfg, "port", taken[i]))
			return wrong(
				c, "port", taken[i],
				"comes with the lease of [port] dev = %s; allowed: not to set it",
				c->cfg->port.dev);
	if (key)
		return wrong(c, "address", key,
			     "comes with the lease of [port] dev = %s; allowed: the default "
			     "(dev = uroced@ADDRESS asks for an IPv4 address)",
			     c->cfg->port.dev);
	return c->cfg->worker.count == 1 ||
	       wrong(c, "worker", "count", "\"%u\" is too many for a port of uroced; allowed: 1",
		     c->cfg->worker.count);
}

int ur_config_check_lease(const struct ur_config *cfg, char *err, size_t err_cap)
{
	struct check c = {cfg, err, err_cap};

	return check_lease(&c) ? 0 : -EINVAL;
}

static bool check_address(const struct check *c)
{
	const struct ur_config_net *v4 = &c->cfg->address.ipv4, *v6 = &c->cfg->address.ipv6;
	const struct ur_gid *gw4 = &c->cfg->address.gateway4, *gw6 = &c->cfg->address.gateway6;

	if (c->cfg->bare)
		return true;
	if (ur_config_shares(c->cfg))
		return check_shared(c);
	if (v4->len == 0 && v6->len == 0)
		return wrong(
			c, "address", "ipv4",
			"is missing, and so is ipv6; allowed: at least one of them, such as ipv4 = "
			"10.77.0.1/24");
	if (is_set(gw4) && (v4->len == 0 || !same_net(gw4, &v4->addr, 96 + v4->len)))
		return wrong(c, "address", "gateway4",
			     "is not in the network of ipv4; allowed: an address of that network");
	if (is_set(gw4) && ur_gid_eq(gw4, &v4->addr))
		return wrong(c, "address", "gateway4",
			     "is the endpoint's own address; allowed: another one of that network");
	if (is_set(gw6) && (v6->len == 0 || !same_net(gw6, &v6->addr, v6->len)) &&
	    !(gw6->b[0] == 0xfe && (gw6->b[1] & 0xc0) == 0x80))
		return wrong(
			c, "address", "gateway6",
			"is not in the network of ipv6; allowed: an address of that network or a "
			"link-local one");
	return true;
}

static bool check_worker(const struct check *c)
{
	const char *lcores = c->cfg->worker.lcores;
	uint32_t count = c->cfg->worker.count;
	unsigned cpu[UR_WORKERS_MAX];
	int n;

	/* Some bits of a QPN are the index of its worker. */
	if (count & (count - 1))
		return wrong(c, "worker", "count",
			     "\"%u\" is not a power of two; allowed: 1, 2, 4, 8", count);

	if (lcores[0] == '\0')
		return true;
	if (c->cfg->worker.mode == UR_WORKER_MODE_INLINE)
		return wrong(c, "worker", "lcores",
			     "\"%s\" has no meaning with mode = inline; allowed: auto", lcores);
	n = ur_config_cpus(lcores, cpu, UR_WORKERS_MAX);
	if (n < (int)count)
		return wrong(c, "worker", "lcores",
			     "\"%s\" is too short for count = %u; allowed: auto, or a CPU for each "
			     "worker",
			     lcores, count);
	return true;
}

static bool check_transport(const struct check *c)
{
	int mode = c->cfg->transport.mode;

	return c->cfg->transport.spray == 0 || mode == UR_TRANSPORT_MODE_AUTO ||
	       mode == UR_TRANSPORT_MODE_EXTENDED ||
	       wrong(c, "transport", "spray",
		     "mode = %s needs packets in order, from one source port; allowed: "
		     "off, or mode = auto or extended",
		     mode == UR_TRANSPORT_MODE_GBN ? "gbn" : "reorder");
}

/* Bit v: VL v has a weight in the table. */
static uint16_t weighty(const struct ur_config_lanes *t)
{
	uint16_t lanes = 0;

	for (unsigned i = 0; i < t->cnt; i++)
		if (t->entry[i].weight)
			lanes |= (uint16_t)(1u << t->entry[i].vl);
	return lanes;
}

static bool check_qos(const struct check *c)
{
	uint16_t served = weighty(&c->cfg->qos.vl_high) | weighty(&c->cfg->qos.vl_low);
	uint16_t mapped = 0;

	for (unsigned sl = 0; sl < 16; sl++)
		mapped |= (uint16_t)(1u << c->cfg->qos.sl2vl[sl]);
	if (served == 0)
		return wrong(c, "qos", "vl_low",
			     "no VL has a weight above 0, here or in vl_high; allowed: a lane with "
			     "weight in one of them, such as 0:64");
	if ((mapped & served) == 0)
		return wrong(c, "qos", "sl2vl",
			     "no service level has a VL with a weight above 0; allowed: at least "
			     "one VL of vl_high or vl_low");
	return true;
}

static bool check_pacing(const struct check *c)
{
	double link = c->cfg->pacing.link_gbps;

	if (c->cfg->pacing.init1 <= c->cfg->pacing.init0)
		return wrong(c, "pacing", "init1", "%u does not exceed init0; allowed: %u to 255",
			     c->cfg->pacing.init1, c->cfg->pacing.init0 + 1);
	return link == 0 || link >= UR_RATE_GBPS_MIN ||
	       wrong(c, "pacing", "link_gbps", "%g is too slow; allowed: 0, or %g to 1000", link,
		     UR_RATE_GBPS_MIN);
}

static bool check_rate(const struct check *c)
{
	double rate = c->cfg->port.rate_gbps;

	return rate == 0 || rate >= UR_RATE_GBPS_MIN ||
	       wrong(c, "port", "rate_gbps", "\"%g\" is too slow; allowed: 0, %g to 1000", rate,
		     UR_RATE_GBPS_MIN);
}

static bool check_forwarding(const struct check *c)
{
	uint32_t min = c->cfg->forwarding.ecn_min_kb, max = c->cfg->forwarding.ecn_max_kb;

	return max == 0 || min <= max ||
	       wrong(c, "forwarding", "ecn_min_kb", "\"%u\" exceeds ecn_max_kb; allowed: 0 to %u",
		     min, max);
}

static bool check_impair(const struct check *c)
{
	const struct ur_config_impair_dir *dir[] = {&c->cfg->impair.rx, &c->cfg->impair.tx};
	static const char *const key[] = {"rx_rate_gbps", "tx_rate_gbps"};

	for (int i = 0; i < 2; i++)
		if (dir[i]->rate_gbps != 0 && dir[i]->rate_gbps < UR_RATE_GBPS_MIN)
			return wrong(c, "impair", key[i],
				     "\"%g\" is too slow; allowed: 0, %g to 1000",
				     dir[i]->rate_gbps, UR_RATE_GBPS_MIN);
	return true;
}

static bool check_eal(const struct check *c)
{
	const char *prefix = c->cfg->eal.file_prefix;

	if (strchr(prefix, '/') != NULL || strchr(prefix, ' ') != NULL || strlen(prefix) > 64)
		return wrong(
			c, "eal", "file_prefix",
			"\"%s\" is not a name; allowed: auto, or at most 64 characters without '/' "
			"and blanks",
			prefix);
	for (const char *p = c->cfg->eal.lcores; *p != '\0'; p++)
		if (!isdigit((unsigned char)*p) && strchr(",-()@", *p) == NULL)
			return wrong(
				c, "eal", "lcores",
				"\"%s\" is not an lcore map; allowed: auto, or lcores@cpus such as "
				"0@0,1@1",
				c->cfg->eal.lcores);
	return true;
}

static bool check_filter(const struct check *c)
{
	const char *filter = c->cfg->capture.filter;
	struct bpf_program program;
	pcap_t *pcap;
	bool ok;

	if (filter[0] == '\0')
		return true;
	pcap = pcap_open_dead(DLT_EN10MB, (int)c->cfg->capture.snaplen);
	if (pcap == NULL)
		return true;
	ok = pcap_compile(pcap, &program, filter, 1, PCAP_NETMASK_UNKNOWN) == 0;
	if (ok)
		pcap_freecode(&program);
	else
		wrong(c, "capture", "filter",
		      "\"%s\" is not a pcap filter (%s); allowed: see pcap-filter(7)", filter,
		      pcap_geterr(pcap));
	pcap_close(pcap);
	return ok;
}

int ur_config_check(const struct ur_config *cfg, char *err, size_t err_cap)
{
	const struct check c = {cfg, err, err_cap};
	bool ok = check_device(&c) && check_driver(&c) && check_rings(&c) && check_credits(&c) &&
		  check_mtu(&c) && check_address(&c) && check_worker(&c) && check_transport(&c) &&
		  check_rate(&c) && check_qos(&c) && check_pacing(&c) && check_impair(&c) &&
		  check_forwarding(&c) && check_eal(&c) && check_filter(&c);

	return ok ? 0 : -EINVAL;
}
