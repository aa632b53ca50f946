/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* gettid */
#endif
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "dpdk/eal.h"
#include "dpdk/memif_socket.h"

static char err[2048];
static struct ur_config cfg;

static void set(const char *arg)
{
	cr_assert_eq(ur_config_set_arg(&cfg, arg, err, sizeof(err)), 0, "%s", err);
}

static void base(void)
{
	ur_config_init(&cfg);
	set("address.ipv4=10.77.0.1/24");
	set("eal.hugepages=no");
	set("eal.memory_mb=64");
	set("worker.mode=inline");
}

static bool has_arg(const struct ur_eal_args *args, const char *want)
{
	for (int i = 0; i < args->argc; i++)
		if (strcmp(args->argv[i], want) == 0)
			return true;
	return false;
}

Test(eal, without_hugepages_nothing_is_shared_by_files, .init = base)
{
	struct ur_eal_args args;

	set("eal.file_prefix=name");
	cr_assert_gt(ur_eal_args(&cfg, &args, err, sizeof(err)), 0, "%s", err);
	cr_expect(has_arg(&args, "--no-huge"));
	cr_expect(has_arg(&args, "--no-shconf"));
	cr_expect_not(has_arg(&args, "--in-memory"), "the EAL refuses it with --no-huge");
	cr_expect(has_arg(&args, "--no-pci"));
	cr_expect(has_arg(&args, "--file-prefix=name"));
	cr_expect(has_arg(&args, "--log-level=error"));
	cr_expect_null(args.argv[args.argc]);
}

Test(eal, extra_options_are_split_and_may_raise_the_log_level, .init = base)
{
	struct ur_eal_args args;

	set("eal.extra= --log-level=8  --no-telemetry ");
	cr_assert_gt(ur_eal_args(&cfg, &args, err, sizeof(err)), 0);
	cr_expect_str_eq(args.argv[args.argc - 2], "--log-level=8");
	cr_expect_str_eq(args.argv[args.argc - 1], "--no-telemetry");
	cr_expect_not(has_arg(&args, "--log-level=error"));
}

Test(eal, too_many_extra_options_are_an_error, .init = base)
{
	static struct ur_eal_args args;
	char text[256] = "";

	for (int i = 0; i < 80; i++)
		strcat(text, "-v ");
	cr_assert_eq(ur_config_set(&cfg, "eal.extra", text, err, sizeof(err)), 0);
	cr_expect_eq(ur_eal_args(&cfg, &args, err, sizeof(err)), -E2BIG);
	cr_expect_str_eq(err, "--set: [eal] extra: the EAL's arguments are too long");
}

Test(eal, a_pci_device_is_allowed_and_pci_is_on, .init = base)
{
	struct ur_eal_args args;

	set("port.driver=pci");
	set("port.device=0000:03:00.0");
	set("port.args=a=1");
	cr_assert_gt(ur_eal_args(&cfg, &args, err, sizeof(err)), 0);
	cr_expect(has_arg(&args, "-a"));
	cr_expect(has_arg(&args, "0000:03:00.0,a=1"));
	cr_expect_not(has_arg(&args, "--no-pci"));
}

Test(eal, dedicated_workers_get_an_lcore_each, .init = base)
{
	struct ur_eal_args args;

	set("worker.mode=dedicated");
	set("worker.count=2");
	set("worker.lcores=0-1");
	cr_assert_gt(ur_eal_args(&cfg, &args, err, sizeof(err)), 0);
	for (int i = 0; i < args.argc; i++)
		if (strncmp(args.argv[i], "--lcores=", 9) == 0)
			cr_expect_not_null(strstr(args.argv[i], "),1@0,2@1"), "%s", args.argv[i]);
}

Test(eal, zero_copy_without_hugepages_says_how_to_get_them, .init = base)
{
	struct ur_eal_args args;

	set("eal.hugepages=auto");
	set("eal.memory_mb=1048576");
	set("port.driver=memif");
	set("port.role=client");
	set("port.device=/run/m.sock");
	set("port.zero_copy=yes");
	cr_expect_eq(ur_eal_args(&cfg, &args, err, sizeof(err)), -ENOMEM);
	cr_expect_not_null(strstr(err, "`sysctl vm.nr_hugepages="), "%s", err);
}

static const char *devargs(void)
{
	static char buf[512];

	cr_assert_eq(ur_eal_devargs(&cfg, 3, buf, sizeof(buf), err, sizeof(err)), 0, "%s", err);
	return buf;
}

Test(devargs, af_packet_blocks_hold_whole_slots, .init = base)
{
	set("port.device=lo");
	set("port.mtu=4200");
	cr_expect_str_eq(devargs(), "net_af_packet3,iface=lo,qpairs=1,framesz=4608,blocksz=36864,"
				    "framecnt=64");
	set("port.mtu=1500");
	set("worker.count=2");
	set("port.args=qdisc_bypass=0");
	cr_expect_str_eq(devargs(), "net_af_packet3,iface=lo,qpairs=2,framesz=2048,blocksz=4096,"
				    "framecnt=64,qdisc_bypass=0");
}

Test(devargs, a_missing_interface_is_named, .init = base)
{
	char buf[256];

	set("port.driver=af_xdp");
	set("port.device=no-such-if");
	cr_expect_eq(ur_eal_devargs(&cfg, 0, buf, sizeof(buf), err, sizeof(err)), -ENODEV);
	cr_expect_str_eq(err,
			 "--set: [port] device: there is no interface \"no-such-if\"; `ip link` "
			 "lists them");
}

Test(devargs, af_xdp_does_not_busy_poll, .init = base)
{
	set("port.driver=af_xdp");
	set("port.device=lo");
	cr_expect_str_eq(devargs(),
			 "net_af_xdp3,iface=lo,start_queue=0,queue_count=1,busy_budget=0");
}

Test(devargs, memif_slots_follow_the_mtu, .init = base)
{
	set("port.driver=memif");
	set("port.role=server");
	set("port.device=/run/m.sock");
	set("port.mtu=4200");
	cr_expect_str_eq(devargs(), "net_memif3,role=server,socket=/run/m.sock,socket-abstract=no,"
				    "rsize=8,bsize=4224,zero-copy=no");
	set("port.framecnt=2048");
	set("port.framesz=8192");
	set("address.mac=02:00:00:00:00:0a");
	cr_expect_str_eq(devargs(), "net_memif3,role=server,socket=/run/m.sock,socket-abstract=no,"
				    "rsize=11,bsize=8192,zero-copy=no,mac=02:00:00:00:00:0a");
}

Test(devargs, either_pcap_file_may_be_missing, .init = base)
{
	set("port.driver=pcap");
	set("port.device=a.pcap,b.pcap");
	cr_expect_str_eq(devargs(), "net_pcap3,rx_pcap=a.pcap,tx_pcap=b.pcap");
	set("port.device=a.pcap,");
	cr_expect_str_eq(devargs(), "net_pcap3,rx_pcap=a.pcap");
	set("port.device=,b.pcap");
	cr_expect_str_eq(devargs(), "net_pcap3,tx_pcap=b.pcap");
}

Test(memif_socket, is_distinguished_from_a_stale_one)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "eal_test.sock"};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	unlink(addr.sun_path);
	cr_expect_eq(ur_memif_socket(addr.sun_path), UR_MEMIF_SOCKET_NONE);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_expect_eq(ur_memif_socket(addr.sun_path), UR_MEMIF_SOCKET_LIVE);
	close(fd);
	cr_expect_eq(ur_memif_socket(addr.sun_path), UR_MEMIF_SOCKET_STALE);
	unlink(addr.sun_path);
	cr_expect_eq(ur_memif_socket("/dev/null"), UR_MEMIF_SOCKET_OTHER);
}

/* One end of the ring, started with one queue pair. */
static void start_end(struct ur_eal_port *port, struct rte_mempool *pool)
{
	static const struct rte_eth_conf conf;

	cr_assert_eq(ur_eal_init(&cfg, port, err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(rte_eth_dev_configure(port->id, 1, 1, &conf), 0);
	cr_assert_eq(rte_eth_rx_queue_setup(port->id, 0, 64, 0, NULL, pool), 0);
	cr_assert_eq(rte_eth_tx_queue_setup(port->id, 0, 64, 0, NULL), 0);
	cr_assert_eq(rte_eth_dev_start(port->id), 0);
}

static void stop_end(struct ur_eal_port *port)
{
	cr_expect_eq(rte_eth_dev_stop(port->id), 0);
	cr_expect_eq(rte_eth_dev_close(port->id), 0);
	ur_eal_release(port);
}

static void expect_passes(const struct ur_eal_port *from, const struct ur_eal_port *to,
			  struct rte_mempool *pool)
{
	struct rte_mbuf *sent = rte_pktmbuf_alloc(pool), *got[4];

	cr_assert_not_null(sent);
	rte_pktmbuf_append(sent, 60);
	cr_assert_eq(rte_eth_tx_burst(from->id, 0, &sent, 1), 1);
	cr_expect_eq(rte_eth_rx_burst(from->id, 0, got, 4), 0, "the sender hears itself");
	cr_assert_eq(rte_eth_rx_burst(to->id, 0, got, 4), 1);
	cr_expect_eq(got[0], sent);
	rte_pktmbuf_free(got[0]);
}

Test(eal, a_ring_joins_two_endpoints_of_one_process, .init = base, .timeout = 60)
{
	struct ur_eal_port first, a, b, c;
	struct rte_mempool *pool;
	char dir[256];

	set("port.driver=ring");
	set("port.device=other");
	cr_assert_eq(ur_eal_init(&cfg, &first, err, sizeof(err)), 0, "%s", err);
	cr_expect_not(first.dedicated);
	cr_expect_not(ur_eal_hugepages());
	pool = rte_pktmbuf_pool_create("pool", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       (int)rte_socket_id());
	cr_assert_not_null(pool);
	set("port.device=link");
	for (int round = 0; round < 2; round++) {
		start_end(&a, pool);
		start_end(&b, pool);
		cr_expect_eq(ur_eal_init(&cfg, &c, err, sizeof(err)), -EBUSY);
		cr_expect_not_null(strstr(err, "the ring \"link\" already has both ends"));
		expect_passes(&a, &b, pool);
		expect_passes(&b, &a, pool);
		stop_end(&a);
		stop_end(&b);
	}
	ur_eal_release(&first);
	cr_expect_eq(rte_eth_dev_count_avail(), 0);
	cr_expect_eq(rte_mempool_in_use_count(pool), 0);

	snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
	cr_expect_not_null(strstr(dir, ur_eal_prefix()));
	ur_eal_cleanup();
	cr_expect_str_empty(ur_eal_prefix());
	cr_expect_eq(ur_eal_init(&cfg, &a, err, sizeof(err)), -EALREADY);
}

Test(eal, the_ends_of_a_ring_need_the_same_queues, .init = base, .timeout = 60)
{
	struct ur_eal_port a, b;

	set("port.driver=ring");
	set("port.device=link");
	cr_assert_eq(ur_eal_init(&cfg, &a, err, sizeof(err)), 0, "%s", err);
	set("worker.count=2");
	cr_expect_eq(ur_eal_init(&cfg, &b, err, sizeof(err)), -EINVAL);
	cr_expect_not_null(strstr(err, "the same [worker] count"), "%s", err);
	ur_eal_release(&a);
	ur_eal_cleanup();
}

Test(eal, workers_beyond_the_lcores_are_refused, .init = base, .timeout = 60)
{
	struct ur_eal_port a, b;

	set("port.driver=ring");
	set("port.device=link");
	set("worker.mode=dedicated");
	cr_assert_eq(ur_eal_init(&cfg, &a, err, sizeof(err)), 0, "%s", err);
	cr_expect(a.dedicated);
	cr_expect_neq(a.lcore[0], rte_get_main_lcore());
	cr_expect_eq(ur_eal_init(&cfg, &b, err, sizeof(err)), -EBUSY);
	cr_expect_not_null(strstr(err, "[worker] count: 1 workers are needed and 0 lcores"), "%s",
			   err);
	set("worker.mode=auto");
	set("port.device=link2");
	cr_expect_eq(ur_eal_init(&cfg, &b, err, sizeof(err)), 0, "%s", err);
	cr_expect_not(b.dedicated, "auto works inline when no lcore is left");
	ur_eal_release(&b);
	ur_eal_release(&a);
	ur_eal_cleanup();
}

static cpu_set_t cpus_of(int tid)
{
	cpu_set_t cpus;

	cr_assert_eq(sched_getaffinity(tid, sizeof(cpus), &cpus), 0);
	return cpus;
}

/* The signals that a thread of this process blocks. */
static unsigned long long mask_of(const char *tid)
{
	unsigned long long mask = 0;
	char path[128], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s", path);
	while (fgets(line, sizeof(line), f) && sscanf(line, "SigBlk: %llx", &mask) != 1)
		;
	fclose(f);
	return mask;
}

/* Checks all threads except this one; returns their number. */
static unsigned expect_deaf_threads(void)
{
	/* All but SIGKILL, SIGSTOP and the two signals that the C library reserves. */
	unsigned long long want = ~(1ull << 8 | 1ull << 18 | 3ull << 31);
	DIR *d = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned n = 0;

	cr_assert_not_null(d);
	while ((entry = readdir(d)) != NULL) {
		if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid())
			continue;
		n++;
		cr_expect_eq(mask_of(entry->d_name) & want, want, "a thread takes signals: %llx",
			     mask_of(entry->d_name));
	}
	closedir(d);
	return n;
}

/* EDGE-THREAD-01 */
Test(eal, the_caller_keeps_its_cpus_and_all_signals, .init = base, .timeout = 60)
{
	cpu_set_t before = cpus_of(0), after;
	char self[32];
	unsigned long long mask;
	struct ur_eal_port a;

	snprintf(self, sizeof(self), "%d", gettid());
	mask = mask_of(self);
	set("port.driver=ring");
	set("port.device=link");
	set("worker.mode=dedicated");
	set("eal.lcores=0@0,1@0");
	cr_assert_eq(ur_eal_init(&cfg, &a, err, sizeof(err)), 0, "%s", err);
	after = cpus_of(0);
	cr_expect(CPU_EQUAL(&before, &after), "%d CPUs of %d are left", CPU_COUNT(&after),
		  CPU_COUNT(&before));
	cr_expect_eq(mask_of(self), mask);
	cr_expect_geq(expect_deaf_threads(), 2u, "a worker and the interrupt thread");
	ur_eal_release(&a);
	ur_eal_cleanup();
}

Test(eal, a_wrong_extra_option_is_one_sentence, .init = base, .timeout = 60)
{
	struct ur_eal_port a;

	set("port.driver=ring");
	set("port.device=link");
	set("eal.extra=--no-such-option");
	cr_expect_lt(ur_eal_init(&cfg, &a, err, sizeof(err)), 0);
	cr_expect_not_null(strstr(err, "DPDK does not start with [eal] extra = --no-such-option"));
	cr_expect_null(strchr(err, '\n'));
}
