/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dpdk/eal.h"
#include "dpdk/iface_lock.h"
#include "dpdk/eal_args.h"
#include "dpdk/eal_ring.h"
#include "dpdk/fanout.h"
#include "dpdk/hugepages.h"
#include "dpdk/memif_socket.h"
#include "dpdk/packet_filter.h"
#include "dpdk/xdp_prog.h"
#include "thread/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>

#define ROCE_FILTER	   "udp dst port 4791"
#define IFACE_LOCK_WAIT_MS 1000

static struct {
	pthread_mutex_t lock;
	bool started, ended, hugepages, pci;
	pid_t pid;		   /* that started it */
	bool show_log;		   /* [eal] extra has --log-level: the user wants to read it */
	bool taken[RTE_MAX_LCORE]; /* worker lcores that belong to a port */
	unsigned next;		   /* number of the next virtual device */
	char prefix[UR_CONFIG_TEXT + 16];
	char dir[512];	  /* the EAL's runtime directory */
	char reason[256]; /* DPDK's first complaint since the step began, for the error sentence */
} eal = {.lock = PTHREAD_MUTEX_INITIALIZER};

static FILE *log_stream(void)
{
	static FILE *stream;
	/* DPDK writes whole lines; the first of several is the reason, the others follow from it */
	static cookie_io_functions_t io = {.write = ur_eal_log_write};

	if (stream == NULL) {
		stream = fopencookie(NULL, "w", io);
		if (stream != NULL)
			setvbuf(stream, NULL, _IOLBF, 0);
	}
	return stream;
}

ssize_t ur_eal_log_write(void *cookie, const char *buf, size_t len)
{
	const char *nl = memchr(buf, '\n', len);
	size_t n = nl != NULL ? (size_t)(nl - buf) : len;

	if (eal.reason[0] == '\0') {
		n = n < sizeof(eal.reason) ? n : sizeof(eal.reason) - 1;
		memcpy(eal.reason, buf, n);
		eal.reason[n] = '\0';
	}
	if (eal.show_log)
		fwrite(buf, 1, len, stderr);
	return (ssize_t)len;
}

/* Writes the message, followed by DPDK's own reason. */
__attribute__((format(printf, 5, 6))) static int fail(int rc, const struct ur_config *cfg,
						      char *err, size_t cap, const char *fmt, ...)
{
	char where[2 * UR_CONFIG_TEXT], what[512];
	va_list ap;

	ur_config_where(cfg, "port", "driver", where, sizeof(where));
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (eal.reason[0] != '\0')
		snprintf(err, cap, "%s%s (%s)", where, what, eal.reason);
	else
		snprintf(err, cap, "%s%s", where, what);
	return rc;
}

/*
 * rte_eal_init() prints pages of usage on stdout for a wrong option, and repeats its log on
 * stderr. Our log stream has the relevant lines, so both are closed meanwhile.
 */
static int quiet_init(int argc, char **argv)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int out, rest, rc;

	if (null < 0 || eal.show_log) {
		if (null >= 0)
			close(null);
		return rte_eal_init(argc, argv);
	}
	fflush(stdout);
	fflush(stderr);
	out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	rest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (out >= 0)
		dup2(null, STDOUT_FILENO);
	if (rest >= 0)
		dup2(null, STDERR_FILENO);
	rc = rte_eal_init(argc, argv);
	fflush(stdout);
	fflush(stderr);
	if (out >= 0) {
		dup2(out, STDOUT_FILENO);
		close(out);
	}
	if (rest >= 0) {
		dup2(rest, STDERR_FILENO);
		close(rest);
	}
	close(null);
	return rc;
}

/*
 * EDGE-FORK-01. Telemetry removes its socket by atexit(), also in a child made by fork(), whose
 * parent still serves it: there it gets a second name before and its own one back after.
 */
struct socket_names {
	char own[sizeof(eal.dir) + 32], kept[sizeof(eal.dir) + 64];
};

static void name_socket(struct socket_names *n)
{
	snprintf(n->own, sizeof(n->own), "%s/dpdk_telemetry.v2", eal.dir);
	snprintf(n->kept, sizeof(n->kept), "%s.%d", n->own, (int)getpid());
}

static void before_telemetry_ends(void)
{
	struct socket_names n;

	name_socket(&n);
	if (getpid() != eal.pid)
		(void)!link(n.own, n.kept);
}

static void after_telemetry_ended(void)
{
	struct socket_names n;

	name_socket(&n);
	if (getpid() != eal.pid)
		rename(n.kept, n.own);
	else
		rmdir(eal.dir); /* not empty when another process has the same prefix */
}

/* rte_eal_init() pins the calling thread as its main lcore, which is the application's thread. */
static int init_aside(int argc, char **argv)
{
	cpu_set_t cpus;
	bool known = pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus) == 0;
	sigset_t old;
	int rc;

	ur_signals_block(&old);
	rc = quiet_init(argc, argv);
	ur_signals_restore(&old);
	if (known)
		pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	return rc;
}

static int start(const struct ur_config *cfg, char *err, size_t cap)
{
	struct ur_eal_args args;
	int rc;

	if (eal.ended)
		return fail(-EALREADY, cfg, err, cap, "DPDK cannot be started again in a process");
	rc = ur_eal_args(cfg, &args, err, cap);
	if (rc < 0)
		return rc;
	eal.show_log = strstr(cfg->eal.extra, "--log-level") != NULL;
	if (log_stream() != NULL)
		rte_openlog_stream(log_stream());
	strlcpy(eal.prefix, strchr(args.argv[1], '=') + 1, sizeof(eal.prefix));
	/* rte_eal_init() reorders the pointers and may keep the texts */
	static char kept[sizeof(args.buf)];
	char *argv[RTE_DIM(args.argv)];

	memcpy(kept, args.buf, sizeof(kept));
	for (int i = 0; i < args.argc; i++)
		argv[i] = kept + (args.argv[i] - args.buf);
	argv[args.argc] = NULL;
	if (eal.dir[0] == '\0')
		atexit(after_telemetry_ended); /* runs after the handlers that the EAL adds now */
	rc = init_aside(args.argc, argv);
	atexit(before_telemetry_ends);
	eal.pid = getpid();
	strlcpy(eal.dir, rte_eal_get_runtime_dir(), sizeof(eal.dir));
	/* Without telemetry it is empty: a process that is killed leaves nothing. */
	rmdir(eal.dir);
	if (rc < 0) {
		rc = rte_errno != 0 ? -rte_errno : -EIO;
		eal.prefix[0] = '\0';
		return fail(rc, cfg, err, cap, "DPDK does not start%s%s: %s",
			    cfg->eal.extra[0] != '\0' ? " with [eal] extra = " : "", cfg->eal.extra,
			    rte_strerror(-rc));
	}
	eal.started = true;
	ur_fanout_start();
	eal.hugepages = args.hugepages;
	eal.pci = cfg->port.driver == UR_DRIVER_PCI;
	return 0;
}

/* EDGE-HUGE-01 */
static int start_alone(const struct ur_config *cfg, char *err, size_t cap)
{
	int lock = cfg->eal.hugepages == UR_TRISTATE_NO ? -1 : ur_hugepages_lock();
	int rc = start(cfg, err, cap);

	if (lock >= 0)
		close(lock);
	return rc;
}

/* Worker lcores for the port; with mode = auto the port goes inline when too few are left. */
static int take_lcores(const struct ur_config *cfg, struct ur_eal_port *p, char *err, size_t cap)
{
	unsigned lcore, n = 0;
	char where[2 * UR_CONFIG_TEXT];

	p->dedicated = ur_eal_wants_dedicated(cfg);
	if (!p->dedicated)
		return 0;
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		if (n < p->queue_cnt && !eal.taken[lcore])
			p->lcore[n++] = lcore;
	}
	if (n < p->queue_cnt) {
		if (cfg->worker.mode == UR_WORKER_MODE_AUTO) {
			p->dedicated = false;
			return 0;
		}
		ur_config_where(cfg, "worker", "count", where, sizeof(where));
		snprintf(err, cap,
			 "%s%u workers are needed and %u lcores of this process are free; more are "
			 "given by [eal] lcores of its first endpoint, or mode = inline",
			 where, p->queue_cnt, n);
		return -EBUSY;
	}
	for (unsigned i = 0; i < n; i++)
		eal.taken[p->lcore[i]] = true;
	return 0;
}

static void give_lcores(const struct ur_eal_port *p)
{
	for (unsigned i = 0; p->dedicated && i < p->queue_cnt; i++)
		eal.taken[p->lcore[i]] = false;
}

static int add_ring(const struct ur_config *cfg, struct ur_eal_port *p, char *err, size_t cap)
{
	unsigned slots = cfg->port.framecnt != 0 ? cfg->port.framecnt : UR_EAL_RING_SLOTS;
	int rc = ur_eal_ring_add(cfg->port.device, p->queue_cnt, slots, &p->id, p->device,
				 sizeof(p->device));

	if (rc == -EBUSY)
		return fail(rc, cfg, err, cap, "the ring \"%s\" already has both ends",
			    cfg->port.device);
	if (rc == -EINVAL)
		return fail(rc, cfg, err, cap,
			    "the ends of the ring \"%s\" must have the same [worker] count",
			    cfg->port.device);
	if (rc != 0)
		return fail(rc, cfg, err, cap, "the ring \"%s\" cannot be created: %s",
			    cfg->port.device, rte_strerror(-rc));
	return 0;
}

static int create(const struct ur_config *cfg, const char *name, const char *devargs)
{
	const char *args = devargs + strcspn(devargs, ",");
	int rc;

	if (cfg->port.driver == UR_DRIVER_PCI)
		return rte_dev_probe(devargs);
	/* Of DPDK 24.11, rte_dev_probe() takes at most 127 bytes. */
	rc = rte_vdev_init(name, *args == ',' ? args + 1 : args);
	return rc > 0 ? -ENOTSUP : rc; /* it has no driver of this name */
}

/* Drivers may start threads of their own. */
static int probe(const struct ur_config *cfg, const char *name, const char *devargs)
{
	sigset_t old;
	int rc;

	ur_signals_block(&old);
	if (cfg->port.driver == UR_DRIVER_MEMIF)
		ur_memif_permit_directory();
	if (cfg->port.driver == UR_DRIVER_AF_PACKET)
		ur_fanout_begin(cfg->worker.count);
	rc = create(cfg, name, devargs);
	ur_fanout_end();
	ur_signals_restore(&old);
	return rc;
}

/* SHARED-FILTER-01: the sockets that the driver has made get only RoCEv2. */
static int filter(const struct ur_config *cfg, const struct ur_packet_sockets *before, char *err,
		  size_t cap)
{
	int rc = ur_packet_filter(if_nametoindex(cfg->port.device), before, ROCE_FILTER);

	if (rc > 0)
		return 0;
	return fail(rc ? rc : -ENOENT, cfg, err, cap,
		    "the packet sockets of %s cannot be given a filter: %s", cfg->port.device,
		    strerror(rc ? -rc : ENOENT));
}

/* SHARED-XDP-01: the driver's own program would take everything from the kernel. */
static int name_program(const struct ur_config *cfg, struct ur_eal_port *p, char *devargs,
			size_t devargs_cap, char *err, size_t cap)
{
	unsigned ifindex = if_nametoindex(cfg->port.device);
	char path[64];

	if (!ur_config_shares(cfg) || cfg->port.driver != UR_DRIVER_AF_XDP)
		return 0;
	if (ur_xdp_prog_is_foreign(ifindex))
		return fail(
			-EEXIST, cfg, err, cap,
			"the interface %s has another program's XDP program, as `ip link show dev "
			"%s` shows; allowed: af_packet",
			cfg->port.device, cfg->port.device);
	ur_xdp_prog_reap(ifindex);
	p->xdp_prog = ur_xdp_prog_open(path, sizeof(path));
	if (p->xdp_prog == -ENOTSUP)
		return fail(-ENOTSUP, cfg, err, cap,
			    "this build has no XDP program to share an interface with: it was made "
			    "without clang; allowed: af_packet");
	if (p->xdp_prog < 0)
		return fail(p->xdp_prog, cfg, err, cap, "no memory for the XDP program: %s",
			    strerror(-p->xdp_prog));
	strlcat(devargs, ",xdp_prog=", devargs_cap);
	strlcat(devargs, path, devargs_cap);
	return 0;
}

static int add_device(const struct ur_config *cfg, struct ur_eal_port *p, char *err, size_t cap)
{
	bool filtered = ur_config_shares(cfg) && cfg->port.driver == UR_DRIVER_AF_PACKET;
	struct ur_packet_sockets before;
	char devargs[1024];
	int rc = ur_eal_devargs(cfg, eal.next, devargs, sizeof(devargs), err, cap);

	if (rc == 0)
		rc = name_program(cfg, p, devargs, sizeof(devargs), err, cap);
	if (rc != 0)
		return rc;
	if (cfg->port.driver == UR_DRIVER_PCI && !eal.pci)
		return fail(
			-EPERM, cfg, err, cap,
			"the first endpoint of this process did not use pci, so no later one can");
	if (cfg->port.role == UR_MEMIF_ROLE_SERVER &&
	    ur_memif_socket(cfg->port.device) == UR_MEMIF_SOCKET_STALE)
		unlink(cfg->port.device);
	strlcpy(p->device, devargs, RTE_MIN(sizeof(p->device), strcspn(devargs, ",") + 1));
	if (cfg->port.driver == UR_DRIVER_PCI &&
	    rte_eth_dev_get_port_by_name(p->device, &p->id) == 0)
		return 0; /* the EAL probed it when it started */
	if (filtered)
		ur_packet_sockets_find(if_nametoindex(cfg->port.device), &before);
	rc = probe(cfg, p->device, devargs);
	if (rc < 0)
		return fail(rc, cfg, err, cap, "DPDK cannot use \"%s\": %s", devargs,
			    rte_strerror(-rc));
	eal.next++;
	rc = rte_eth_dev_get_port_by_name(p->device, &p->id);
	if (rc < 0)
		return fail(rc, cfg, err, cap, "DPDK has no port for \"%s\"", p->device);
	rc = filtered ? filter(cfg, &before, err, cap) : 0;
	if (rc < 0)
		rte_eal_hotplug_remove("vdev", p->device);
	return rc;
}

static int refuse(const struct ur_config *cfg, const struct ur_iface_holder *holder, char *err,
		  size_t cap)
{
	const char *name = holder->name[0] != '\0' ? holder->name : "another program";
	char where[2 * UR_CONFIG_TEXT];
	char who[128] = "a process that `ss -xap | grep uroce/interface` names";

	ur_config_where(cfg, "port", ur_config_shares(cfg) ? "dev" : "device", where,
			sizeof(where));
	if (holder->pid == getpid())
		strlcpy(who, "another endpoint of this process", sizeof(who));
	else if (holder->pid != 0)
		snprintf(who, sizeof(who), "%s (process %d)", name, (int)holder->pid);
	snprintf(err, cap,
		 "%sthe interface %s is in use by %s, and each would take the other's packets; end "
		 "that one, or name another interface",
		 where, cfg->port.device, who);
	return -EBUSY;
}

/* EDGE-LOCK-01. A missing interface is reported later, with a better message. */
static int lock_interface(const struct ur_config *cfg, struct ur_eal_port *p, char *err, size_t cap)
{
	struct ur_iface_holder holder;

	p->iface_lock = -1;
	if (cfg->port.driver != UR_DRIVER_AF_PACKET && cfg->port.driver != UR_DRIVER_AF_XDP)
		return 0;
	p->iface_lock = ur_iface_lock(cfg->port.device, IFACE_LOCK_WAIT_MS, &holder);
	if (p->iface_lock >= 0 || p->iface_lock == -ENODEV)
		return 0;
	if (p->iface_lock == -EBUSY)
		return refuse(cfg, &holder, err, cap);
	return fail(p->iface_lock, cfg, err, cap, "the interface %s cannot be locked: %s",
		    cfg->port.device, strerror(-p->iface_lock));
}

static void unlock_interface(struct ur_eal_port *p)
{
	if (p->iface_lock >= 0)
		close(p->iface_lock);
	if (p->xdp_prog >= 0)
		close(p->xdp_prog);
	p->iface_lock = p->xdp_prog = -1;
}

int ur_eal_init(const struct ur_config *cfg, struct ur_eal_port *out, char *err, size_t err_cap)
{
	struct ur_eal_port p = {.queue_cnt = (uint16_t)cfg->worker.count,
				.driver = cfg->port.driver,
				.iface_lock = -1,
				.xdp_prog = -1};
	int rc = ur_config_check(cfg, err, err_cap);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&eal.lock);
	eal.reason[0] = '\0';
	rc = lock_interface(cfg, &p, err, err_cap);
	if (rc == 0 && !eal.started)
		rc = start_alone(cfg, err, err_cap);
	if (rc == 0)
		rc = take_lcores(cfg, &p, err, err_cap);
	if (rc == 0) {
		rc = cfg->port.driver == UR_DRIVER_RING ? add_ring(cfg, &p, err, err_cap)
							: add_device(cfg, &p, err, err_cap);
		if (rc != 0)
			give_lcores(&p);
	}
	pthread_mutex_unlock(&eal.lock);
	if (rc == 0)
		*out = p;
	else
		unlock_interface(&p);
	return rc;
}

void ur_eal_release(struct ur_eal_port *p)
{
	pthread_mutex_lock(&eal.lock);
	if (eal.started && p->device[0] != '\0') {
		if (p->driver == UR_DRIVER_RING)
			ur_eal_ring_remove(p->device);
		else
			rte_eal_hotplug_remove(p->driver == UR_DRIVER_PCI ? "pci" : "vdev",
					       p->device);
		give_lcores(p);
		unlock_interface(p);
		p->device[0] = '\0';
	}
	pthread_mutex_unlock(&eal.lock);
}

void ur_eal_cleanup(void)
{
	pthread_mutex_lock(&eal.lock);
	if (eal.started) {
		rte_eal_cleanup();
		eal.started = false;
		eal.ended = true;
		eal.prefix[0] = '\0';
	}
	pthread_mutex_unlock(&eal.lock);
}

void ur_eal_cpus(cpu_set_t *cpus)
{
	*cpus = rte_lcore_cpuset(rte_get_main_lcore());
}

const char *ur_eal_prefix(void)
{
	return eal.prefix;
}

bool ur_eal_hugepages(void)
{
	return eal.hugepages && eal.started;
}
