/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dpdk/preflight.h"

/* A simulated machine: a directory with the files of /sys and /proc that a test needs. */
static char root[64], err[1024];
static struct ur_config cfg;
static char found[4096]; /* "what | command" lines of the findings */

static void collect(void *arg, const struct ur_preflight_item *item)
{
	strncat(found, item->fatal ? "E " : "W ", sizeof(found) - strlen(found) - 1);
	strncat(found, item->what, sizeof(found) - strlen(found) - 1);
	strncat(found, " | ", sizeof(found) - strlen(found) - 1);
	strncat(found, item->command, sizeof(found) - strlen(found) - 1);
	strncat(found, "\n", sizeof(found) - strlen(found) - 1);
}

static void make_dirs(const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
}

static void file(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	make_dirs(path);
	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "w");
	cr_assert_not_null(f, "%s", full);
	fputs(text, f);
	fclose(f);
}

static void set(const char *arg)
{
	cr_assert_eq(ur_config_set_arg(&cfg, arg, err, sizeof(err)), 0, "%s", err);
}

static void make_machine(void)
{
	strcpy(root, "preflight_test.XXXXXX");
	cr_assert_not_null(mkdtemp(root));
	found[0] = '\0';
	ur_config_init(&cfg);
	set("port.device=veth9");
	set("address.ipv4=10.77.0.1/24");
	set("eal.hugepages=no");
	set("worker.mode=inline");
	file("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
	file("/sys/class/net/veth9/flags", "0x1003\n");
	file("/sys/class/net/veth9/mtu", "1500\n");
	file("/sys/class/net/veth9/carrier", "1\n");
	file("/sys/class/net/veth9/queues/rx-0/x", "");
}

static void remove_machine(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", root);
	cr_expect_eq(system(command), 0);
}

TestSuite(preflight, .init = make_machine, .fini = remove_machine);

static void expect_found(int fatal, const char *want)
{
	int n = ur_preflight_at(root, &cfg, collect, NULL);

	cr_expect_eq(n, fatal, "%d fatal: %s", n, found);
	cr_expect_str_eq(found, want);
}

Test(preflight, a_good_interface_has_no_findings)
{
	expect_found(0, "");
}

Test(preflight, missing_rights_are_named)
{
	file("/proc/self/status", "CapEff:\t0000000000000000\n");
	expect_found(
		1,
		"E driver af_packet needs CAP_NET_RAW and this process lacks it | sudo COMMAND\n");
}

Test(preflight, an_interface_that_is_missing)
{
	set("port.device=veth8");
	expect_found(
		1,
		"E there is no interface veth8 in this network namespace | ip link add veth8 type "
		"veth peer name veth8-peer\n");
}

Test(preflight, an_interface_that_is_down)
{
	file("/sys/class/net/veth9/flags", "0x1002\n");
	expect_found(1, "E the interface veth9 is down | ip link set dev veth9 up\n");
}

Test(preflight, no_carrier_is_only_a_warning)
{
	file("/sys/class/net/veth9/carrier", "0\n");
	expect_found(0, "W the interface veth9 has no carrier: the other end is down | \n");
}

Test(preflight, a_path_mtu_needs_its_mtu)
{
	set("transport.path_mtu=4096");
	expect_found(
		1,
		"E the MTU of veth9 is 1500 and 4196 is needed | ip link set dev veth9 mtu 4196\n");
}

Test(preflight, an_mtu_too_small_for_any_path_mtu)
{
	file("/sys/class/net/veth9/mtu", "68\n");
	expect_found(
		1, "E the MTU of veth9 is 68 and 356 is needed | ip link set dev veth9 mtu 356\n");
}

Test(preflight, an_mtu_too_large_for_af_xdp)
{
	set("port.driver=af_xdp");
	file("/sys/class/net/veth9/mtu", "9000\n");
	expect_found(
		1,
		"E the MTU of veth9 is 9000 and af_xdp supports at most 3072 | ip link set dev veth9 "
		"mtu 2148\n");
}

Test(preflight, af_xdp_needs_a_queue_for_each_worker)
{
	set("port.driver=af_xdp");
	set("worker.count=2");
	expect_found(
		1,
		"E veth9 has 1 receive queues and [worker] count is 2 | ethtool -L veth9 combined "
		"2\n");
}

Test(preflight, af_xdp_warns_of_queues_it_does_not_see)
{
	set("port.driver=af_xdp");
	file("/sys/class/net/veth9/queues/rx-1/x", "");
	expect_found(
		0, "W veth9 has 2 receive queues and af_xdp takes 1; packets on the others are not "
		   "seen | ethtool -L veth9 combined 1\n");
}

Test(preflight, a_tap_needs_its_device_file)
{
	set("port.driver=tap");
	expect_found(1, "E /dev/net/tun is missing, so no tap can be created | modprobe tun\n");
}

Test(preflight, a_missing_driver_names_its_package)
{
	file("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/x", "");
	ur_preflight_at(root, &cfg, collect, NULL);
	/* only if DPDK's drivers are in that directory */
	if (access("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0", F_OK) != 0)
		cr_skip_test();
	cr_expect_str_eq(found, "E DPDK's driver net_af_packet is not installed | apt-get install "
				"librte-net-af-packet23\n");
}

/*
 * The driver's own package contains only this file; librte_net_af_packet.so is in the development
 * package.
 */
Test(preflight, a_driver_without_the_development_package_is_there)
{
	file("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_af_packet.so.23", "");
	expect_found(0, "");
}

Test(preflight, a_memif_client_needs_its_server)
{
	set("port.driver=memif");
	set("port.role=client");
	set("port.device=./preflight_test.sock");
	expect_found(
		1,
		"E no memif server listens at ./preflight_test.sock; start the server first | \n");
}

Test(preflight, a_memif_socket_needs_its_directory)
{
	set("port.driver=memif");
	set("port.role=server");
	set("port.device=./no/such/m.sock");
	expect_found(1, "E the directory ./no/such of the memif socket is missing | mkdir "
			"-p ./no/such\n");
}

Test(preflight, a_file_in_the_place_of_a_memif_socket)
{
	set("port.driver=memif");
	set("port.role=server");
	file("/m.sock", "");
	snprintf(cfg.port.device, sizeof(cfg.port.device), "%s/m.sock", root);
	cr_expect_eq(ur_preflight_at(root, &cfg, collect, NULL), 1);
	cr_expect_not_null(
		strstr(found, "m.sock is in the way: it is not a socket that can be used"));
}

Test(preflight, a_capture_that_cannot_be_read)
{
	set("port.driver=pcap");
	set("port.device=no-such.pcap,");
	expect_found(1, "E the file no-such.pcap cannot be read: No such file or directory; "
			"name it in [port] device = IN,OUT | \n");
}

/* A PCI device bound to `driver`, on a machine with an IOMMU. */
static void pci_device(const char *vendor, const char *driver)
{
	char link[512];

	set("port.driver=pci");
	set("port.device=03:00.0");
	file("/sys/bus/pci/devices/0000:03:00.0/vendor", vendor);
	file("/sys/kernel/iommu_groups/0/x", "");
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/0000:03:00.0/driver", root);
	cr_assert_eq(symlink(driver, link), 0);
}

Test(preflight, a_pci_device_of_the_kernel_must_be_bound)
{
	pci_device("0x8086\n", "../../bus/pci/drivers/i40e");
	expect_found(1,
		     "E 0000:03:00.0 is bound to i40e and not to vfio-pci | modprobe vfio-pci && "
		     "dpdk-devbind.py -b vfio-pci 0000:03:00.0\n");
}

Test(preflight, a_bound_pci_device_is_good)
{
	pci_device("0x8086\n", "../../bus/pci/drivers/vfio-pci");
	expect_found(0, "");
}

Test(preflight, a_mellanox_device_stays_with_the_kernel)
{
	pci_device("0x15b3\n", "../../bus/pci/drivers/mlx5_core");
	expect_found(0, "");
}

Test(preflight, without_an_iommu_vfio_needs_its_unsafe_mode)
{
	char path[512];

	pci_device("0x8086\n", "../../bus/pci/drivers/vfio-pci");
	snprintf(path, sizeof(path), "%s/sys/kernel/iommu_groups/0/x", root);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	ur_preflight_at(root, &cfg, collect, NULL);
	cr_expect_not_null(strstr(found, "no IOMMU"), "%s", found);
	found[0] = '\0';
	file("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
	ur_preflight_at(root, &cfg, collect, NULL);
	cr_expect_null(strstr(found, "no IOMMU (or it is off)"), "%s", found);
}

Test(preflight, a_pci_device_that_is_not_there)
{
	set("port.driver=pci");
	set("port.device=0000:04:00.0");
	expect_found(1,
		     "E there is no PCI device 0000:04:00.0 | dpdk-devbind.py --status-dev net\n");
}

Test(preflight, an_address_of_the_kernel_is_in_the_way)
{
	set("port.device=lo");
	set("address.ipv4=127.0.0.1/8");
	ur_preflight(&cfg, collect, NULL);
	cr_expect_not_null(strstr(found,
				  "E the kernel has the address 127.0.0.1 on lo, which is the "
				  "endpoint's own | ip addr del 127.0.0.1/8 dev lo\n"),
			   "%s", found);
}

Test(preflight, findings_are_printed_with_their_fix)
{
	const struct ur_preflight_item item = {true, "veth9 is down", "ip link set dev veth9 up"};
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ur_preflight_print(f, &item);
	fclose(f);
	cr_expect_str_eq(text, "error: veth9 is down\n  fix: ip link set dev veth9 up\n");
	free(text);
}
