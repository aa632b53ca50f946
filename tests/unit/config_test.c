/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "edge/config.h"
#include "edge/mtu.h"
#include "sched/emux.h"

/* The source tree: tests/config/bad and pmd-config are read from it. */
static const char *source(void)
{
	const char *dir = getenv("UROCE_SOURCE");

	cr_assert_not_null(dir, "UROCE_SOURCE must name the source tree");
	return dir;
}

static char err[2048];

static int load_and_check(const char *path, struct ur_config *cfg)
{
	int rc;

	err[0] = '\0';
	rc = ur_config_load(path, cfg, err, sizeof(err));
	return rc != 0 ? rc : ur_config_check(cfg, err, sizeof(err));
}

/* Calls fn for every *.conf of a directory; returns how many there were. */
static unsigned each_file(const char *dir, void (*fn)(const char *path))
{
	char path[1024];
	struct dirent *entry;
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", source(), dir);
	d = opendir(path);
	cr_assert_not_null(d, "%s", path);
	while ((entry = readdir(d)) != NULL) {
		size_t len = strlen(entry->d_name);

		if (len < 5 || strcmp(entry->d_name + len - 5, ".conf") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", source(), dir, entry->d_name);
		fn(path);
		n++;
	}
	closedir(d);
	return n;
}

/*
 * The first line of a wrong file is "# expect: ", followed by the message after the file's name. "
 * ..." at its end stands for the rest.
 */
static void expect_its_sentence(const char *path)
{
	static const char mark[] = "# expect: ";
	static struct ur_config cfg, before;
	char line[400];
	size_t len;
	FILE *f = fopen(path, "r");

	cr_assert_not_null(f);
	cr_assert_not_null(fgets(line, sizeof(line), f));
	fclose(f);
	cr_assert_eq(strncmp(line, mark, sizeof(mark) - 1), 0, "%s has no expectation", path);
	line[strcspn(line, "\n")] = '\0';
	memset(&cfg, 0x5a, sizeof(cfg));
	memset(&before, 0x5a, sizeof(before));
	cr_expect_eq(load_and_check(path, &cfg), -EINVAL, "%s was accepted", path);
	cr_assert_eq(strncmp(err, path, strlen(path)), 0, "%s: message without the file: %s", path,
		     err);
	cr_expect_null(strchr(err, '\n'), "%s: more than one line", path);

	len = strlen(line);
	if (len > 4 && strcmp(line + len - 4, " ...") == 0)
		line[len -= 4] = '\0';
	else
		len++;
	cr_expect_eq(strncmp(err + strlen(path), line + sizeof(mark) - 1, len - sizeof(mark) + 1),
		     0, "%s\n  said:     %s\n  expected: %s", path, err + strlen(path),
		     line + sizeof(mark) - 1);
}

Test(config, each_wrong_file_gets_its_sentence)
{
	cr_expect_geq(each_file("tests/config/bad", expect_its_sentence), 40);
}

static void expect_good(const char *path)
{
	static struct ur_config cfg;

	cr_expect_eq(load_and_check(path, &cfg), 0, "%s", err);
}

/* The tests are built with the source tree's pmd-config as the installed one. */
Test(config, a_bare_name_is_found_among_the_installed_files)
{
	static struct ur_config cfg;
	char dir[] = "/tmp/uroce-config-XXXXXX";

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	cr_expect_eq(load_and_check("ring-a.conf", &cfg), 0, "%s", err);
	cr_expect_str_eq(cfg.port.device, "loop");
	cr_expect_eq(load_and_check("./ring-a.conf", &cfg), -ENOENT);
	cr_expect_eq(load_and_check("no-such.conf", &cfg), -ENOENT);
	cr_expect_str_eq(
		err,
		"no-such.conf: cannot be read: No such file or directory; examples are in pmd-config/");

	/* The working directory comes first. */
	FILE *f = fopen("ring-a.conf", "w");

	cr_assert_not_null(f);
	fputs("[port]\ndriver = ring\ndevice = mine\n[address]\nipv4 = 10.0.0.1/24\n", f);
	fclose(f);
	cr_expect_eq(load_and_check("ring-a.conf", &cfg), 0, "%s", err);
	cr_expect_str_eq(cfg.port.device, "mine");
	unlink("ring-a.conf");
	rmdir(dir);
}

Test(config, every_file_of_pmd_config_is_right)
{
	cr_expect_geq(each_file("pmd-config", expect_good), 16);
}

/* A file in the build directory, gone when the test ends. */
static const char *write_file(const char *text, size_t len)
{
	static char path[] = "config_test.XXXXXX";
	int fd;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
	return path;
}

static int load_text(const char *text, struct ur_config *cfg)
{
	const char *path = write_file(text, strlen(text));
	int rc = ur_config_load(path, cfg, err, sizeof(err));

	unlink(path);
	return rc;
}

Test(config, help_is_a_configuration_with_the_defaults)
{
	static struct ur_config cfg, def;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ur_config_help(f);
	fclose(f);
	cr_assert_eq(load_text(text, &cfg), 0, "%s", err);
	free(text);
	ur_config_init(&def);
	/* where the values came from is not part of them */
	memcpy(def.file, cfg.file, sizeof(def.file));
	memcpy(def.line, cfg.line, sizeof(def.line));
	memcpy(def.section_line, cfg.section_line, sizeof(def.section_line));
	cr_expect_eq(memcmp(&cfg, &def, sizeof(cfg)), 0);
}

Test(config, every_default_is_allowed)
{
	static struct ur_config cfg;

	ur_config_init(&cfg);
	cr_expect_eq(cfg.transport.window, 512);
	cr_expect_eq(cfg.transport.path_mtu, 0);
	cr_expect_eq(cfg.transport.retry_cnt, 7);
	cr_expect_eq(cfg.transport.mode, UR_TRANSPORT_MODE_AUTO);
	cr_expect_not(cfg.transport.strict);
	cr_expect_eq(cfg.transport.spray, 0);
	cr_expect_eq(cfg.transport.loss_memory_mb, 64);
	cr_expect_eq(cfg.transport.spray_contexts, 64);
	cr_expect_eq(cfg.transport.reorder_contexts, 1024);
	cr_expect_eq(cfg.transport.reorder_slots, 1280);
	cr_expect_eq(cfg.transport.read_gaps, 1024);
	cr_expect_eq(cfg.worker.count, 1);
	cr_expect_eq(cfg.port.driver, UR_DRIVER_AF_PACKET);
	cr_expect(cfg.eal.in_memory);
	cr_expect(cfg.address.link_local);
	cr_expect_eq(cfg.eal.file_prefix[0], '\0');
	cr_expect_eq(cfg.impair.tx.reorder_packets, 3);
	cr_expect_eq(cfg.impair.rx.loss, 0);
	cr_expect_eq(cfg.port.rate_gbps, 0);
}

/* The defaults are those of ur_vl_attr_default() and ur_engine_qos_default(). */
Test(config, qos_defaults_are_those_of_the_engine)
{
	static const uint8_t dscp[16] = {0, 8,	16, 24, 32, 40, 48, 56,
					 2, 10, 18, 26, 34, 42, 50, 58};
	static struct ur_config cfg;

	ur_config_init(&cfg);
	cr_expect_eq(cfg.qos.vl_mode, UR_VL_IBA);
	cr_expect_eq(cfg.qos.vl_high.cnt, 0);
	cr_assert_eq(cfg.qos.vl_low.cnt, UR_VL_CNT);
	for (unsigned i = 0; i < UR_VL_CNT; i++) {
		cr_expect_eq(cfg.qos.vl_low.entry[i].vl, i);
		cr_expect_eq(cfg.qos.vl_low.entry[i].weight, 64);
		cr_expect_eq(cfg.qos.sl2vl[i], i);
	}
	cr_expect_eq(cfg.qos.vl_high_limit, 0);
	cr_expect_eq(cfg.qos.sl2vl[15], 7);
	cr_expect_arr_eq(cfg.qos.sl_dscp, dscp, 16);
	for (unsigned i = 0; i < 16; i++)
		cr_expect_eq(cfg.qos.sl_pcp[i], i % 8);
	cr_expect_eq(cfg.qos.policy, UR_EMUX_RR);
	cr_expect_eq(cfg.qos.turn_wqes, UR_EMUX_WQES);
	cr_expect_eq(cfg.qos.turn_bytes, UR_EMUX_BURST);
	cr_expect(cfg.qos.sparse_first);
}

Test(config, lanes_are_taken_in_their_order)
{
	static struct ur_config cfg;

	cr_assert_eq(load_text("[qos]\n"
			       "vl_mode = measured\n"
			       "vl_high = 14:255, 0:0 14:7\n"
			       "vl_low = none\n"
			       "vl_high_limit = 255\n"
			       "sl2vl = 14 14,14 14 14 14 14 14 14 14 14 14 14 14 14 15\n"
			       "sl_dscp = 63,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1\n"
			       "sl_pcp = 7,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1\n"
			       "policy = strict\n"
			       "turn_wqes = 65535\n"
			       "turn_bytes = 16777216\n"
			       "sparse_first = no\n",
			       &cfg),
		     0, "%s", err);
	cr_expect_eq(cfg.qos.vl_mode, UR_VL_MEASURED);
	cr_assert_eq(cfg.qos.vl_high.cnt, 3);
	cr_expect_eq(cfg.qos.vl_high.entry[0].vl, 14);
	cr_expect_eq(cfg.qos.vl_high.entry[0].weight, 255);
	cr_expect_eq(cfg.qos.vl_high.entry[1].weight, 0);
	cr_expect_eq(cfg.qos.vl_high.entry[2].weight, 7);
	cr_expect_eq(cfg.qos.vl_low.cnt, 0);
	cr_expect_eq(cfg.qos.vl_high_limit, 255);
	cr_expect_eq(cfg.qos.sl2vl[0], 14);
	cr_expect_eq(cfg.qos.sl2vl[15], 15);
	cr_expect_eq(cfg.qos.sl_dscp[0], 63);
	cr_expect_eq(cfg.qos.sl_dscp[15], 1);
	cr_expect_eq(cfg.qos.sl_pcp[0], 7);
	cr_expect_eq(cfg.qos.policy, UR_EMUX_STRICT);
	cr_expect_eq(cfg.qos.turn_wqes, 65535);
	cr_expect_eq(cfg.qos.turn_bytes, 16777216);
	cr_expect_not(cfg.qos.sparse_first);
}

/* A table with the maximum of 64 entries, in one line: four characters per entry. */
Test(config, a_table_of_lanes_may_be_full)
{
	static struct ur_config cfg;
	char text[256];

	ur_config_init(&cfg);
	for (unsigned i = 0; i < 64; i++)
		memcpy(text + 4 * i, "7:9,", 4);
	text[255] = '\0';
	cr_assert_eq(ur_config_set(&cfg, "qos.vl_high", text, err, sizeof(err)), 0, "%s", err);
	cr_expect_eq(cfg.qos.vl_high.cnt, 64);
	cr_expect_eq(cfg.qos.vl_high.entry[63].vl, 7);
	cr_expect_eq(cfg.qos.vl_high.entry[63].weight, 9);
	cr_expect_eq(ur_config_set(&cfg, "qos.vl_low", "", err, sizeof(err)), -EINVAL);
	cr_expect_eq(cfg.qos.vl_low.cnt, UR_VL_CNT);
}

Test(config, values_arrive_in_their_members)
{
	static struct ur_config cfg;
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0xa};

	cr_assert_eq(load_text("# a comment\n"
			       "  [port]   # another\n"
			       "driver=memif\r\n"
			       "\tdevice = /run/a.sock\n"
			       "role = client\n"
			       "rate_gbps = 2.5\n"
			       "\n"
			       "[address]\n"
			       "mac = 02:00:00:00:00:0a\n"
			       "ipv4 = 10.77.0.1/24\n"
			       "ipv6 = fd77::1/64\n"
			       "neighbor = 10.77.0.2=02:00:00:00:00:02, fd77::2=02:00:00:00:00:02\n"
			       "neighbor = 10.77.0.3=02:00:00:00:00:03\n"
			       "[transport]\n"
			       "path_mtu = 2048\n"
			       "mode = extended\n"
			       "strict = yes\n"
			       "spray = 16\n"
			       "reorder_slots = 0\n"
			       "[impair]\n"
			       "seed = 4294967295\n"
			       "rx_loss = 0.01%\n"
			       "tx_loss = 100\n"
			       "[capture]\n"
			       "filter = ip6[6] \\# 1",
			       &cfg),
		     0, "%s", err);
	cr_expect_eq(cfg.port.driver, UR_DRIVER_MEMIF);
	cr_expect_str_eq(cfg.port.device, "/run/a.sock");
	cr_expect_eq(cfg.port.role, UR_MEMIF_ROLE_CLIENT);
	cr_expect_float_eq(cfg.port.rate_gbps, 2.5, 1e-12);
	cr_expect_arr_eq(cfg.address.mac, mac, 6);
	cr_expect(ur_gid_is_ipv4(&cfg.address.ipv4.addr));
	cr_expect_eq(cfg.address.ipv4.addr.b[15], 1);
	cr_expect_eq(cfg.address.ipv4.len, 24);
	cr_expect_eq(cfg.address.ipv6.addr.b[0], 0xfd);
	cr_expect_eq(cfg.address.ipv6.len, 64);
	cr_assert_eq(cfg.address.neighbors.cnt, 3);
	cr_expect_not(ur_gid_is_ipv4(&cfg.address.neighbors.entry[1].addr));
	cr_expect_eq(cfg.address.neighbors.entry[2].mac[5], 3);
	cr_expect_eq(cfg.transport.path_mtu, 2048);
	cr_expect_eq(cfg.transport.mode, UR_TRANSPORT_MODE_EXTENDED);
	cr_expect(cfg.transport.strict);
	cr_expect_eq(cfg.transport.spray, 16);
	cr_expect_eq(cfg.transport.reorder_slots, 0);
	cr_expect_eq(cfg.impair.seed, UINT32_MAX);
	cr_expect_float_eq(cfg.impair.rx.loss, 0.0001, 1e-15);
	cr_expect_float_eq(cfg.impair.tx.loss, 1.0, 1e-15);
	cr_expect_str_eq(cfg.capture.filter, "ip6[6] # 1");
}

Test(config, an_unreadable_file_says_why)
{
	static struct ur_config cfg;

	cr_expect_eq(ur_config_load("no/such.conf", &cfg, err, sizeof(err)), -ENOENT);
	cr_expect_str_eq(
		err,
		"no/such.conf: cannot be read: No such file or directory; examples are in pmd-config/");
	cr_expect_eq(ur_config_load(".", &cfg, err, sizeof(err)), -EISDIR);
	cr_expect_str_eq(err, ".: cannot be read: Is a directory");
}

Test(config, without_a_file_a_port_has_to_be_named)
{
	static struct ur_config cfg;

	cr_expect_eq(ur_config_load(NULL, &cfg, err, sizeof(err)), 0);
	ur_config_share(&cfg);
	cr_expect_eq(ur_config_check(&cfg, err, sizeof(err)), -EINVAL);
	cr_expect_str_eq(err, "[port] dev: no interface is named; allowed: the name of a kernel "
			      "interface to share, or a configuration file, of which pmd-config/ "
			      "has one for each way to a network");
}

Test(config, an_interface_to_share_is_all_that_is_needed)
{
	static struct ur_config cfg;

	cr_assert_eq(ur_config_load(NULL, &cfg, err, sizeof(err)), 0);
	cr_assert_eq(ur_config_set_arg(&cfg, "port.dev=eth0", err, sizeof(err)), 0);
	ur_config_share(&cfg);
	cr_expect_eq(ur_config_check(&cfg, err, sizeof(err)), 0, "%s", err);
	cr_expect(ur_config_shares(&cfg));
	cr_expect_str_eq(cfg.port.device, "eth0");
	cr_expect_eq(cfg.port.driver, UR_DRIVER_AF_PACKET);
	cr_expect_eq(cfg.port.framecnt, 1024);
}

Test(config, what_is_given_stays_as_it_is_on_a_shared_interface)
{
	static struct ur_config cfg;

	cr_assert_eq(ur_config_load(NULL, &cfg, err, sizeof(err)), 0);
	cr_assert_eq(ur_config_set_arg(&cfg, "port.dev=eth0", err, sizeof(err)), 0);
	cr_assert_eq(ur_config_set_arg(&cfg, "port.framecnt=64", err, sizeof(err)), 0);
	ur_config_share(&cfg);
	ur_config_share(&cfg);
	cr_expect_eq(cfg.port.framecnt, 64);
	cr_expect_eq(ur_config_check(&cfg, err, sizeof(err)), 0, "%s", err);
}

Test(config, a_line_of_the_greatest_length_is_read_whole)
{
	static struct ur_config cfg;
	char text[512], want[256];

	memset(want, 'x', 255);
	want[255] = '\0';
	snprintf(text, sizeof(text), "[port]\nargs =%*s%s\n", 61, " ", want);
	cr_assert_eq(strlen(text), 7 + 322 + 1);
	cr_assert_eq(load_text(text, &cfg), 0, "%s", err);
	cr_expect_str_eq(cfg.port.args, want);
}

Test(config, set_overrides_the_file)
{
	static struct ur_config cfg;

	cr_assert_eq(load_text("[address]\nneighbor = 10.0.0.2=02:00:00:00:00:02\n", &cfg), 0);
	cr_expect_eq(ur_config_set(&cfg, "port.mtu", "4200", err, sizeof(err)), 0);
	cr_expect_eq(cfg.port.mtu, 4200);
	cr_expect_eq(ur_config_set_arg(&cfg, "port.args=a=1,b=2", err, sizeof(err)), 0);
	cr_expect_str_eq(cfg.port.args, "a=1,b=2");
	cr_expect_eq(ur_config_set_arg(&cfg, "address.neighbor=10.0.0.3=02:00:00:00:00:03", err,
				       sizeof(err)),
		     0);
	cr_expect_eq(cfg.address.neighbors.cnt, 1);
	cr_expect_eq(cfg.address.neighbors.entry[0].addr.b[15], 3);
	cr_expect_eq(ur_config_set_arg(&cfg, "impair.tx_loss=", err, sizeof(err)), -EINVAL);
	cr_expect_eq(ur_config_set_arg(&cfg, "address.neighbor=nobody", err, sizeof(err)), -EINVAL);
	cr_expect_eq(cfg.address.neighbors.cnt, 1);
}

Test(config, each_wrong_set_gets_its_sentence)
{
	static const struct {
		const char *arg, *want;
	} wrong[] = {
		{"port.mtu",
		 "--set: \"port.mtu\" is not an assignment; allowed: section.key=value"},
		{"=1", "--set: \"=1\" is not an assignment; allowed: section.key=value"},
		{"mtu=1", "--set: \"mtu\" is not a key; allowed: section.key, such as port.mtu"},
		{"worker.size=1",
		 "--set: [worker] size: is not a key; allowed: mode, count, lcores, thread_safe, "
		 "gather, progress"},
		{"worker.count=9", "--set: [worker] count: \"9\" is not a whole number in range; "
				   "allowed: 1 to 8"},
		{"transport.mode=selective", "--set: [transport] mode: \"selective\" is not one of "
					     "the known words; allowed: auto, extended, reorder, "
					     "gbn"},
		{"transport.spray=1",
		 "--set: [transport] spray: \"1\" is not a number of UDP source "
		 "ports; allowed: off, all, 2 to 16"},
		{"transport.spray=17", "--set: [transport] spray: \"17\" is not a number of UDP "
				       "source ports; allowed: off, all, 2 to 16"},
		{"ports.mtu=1",
		 "--set: [ports] is not a section; allowed: [eal], [port], [address], "
		 "[worker], [transport], [qos], [pacing], [capture], [impair], "
		 "[admission], [management], [forwarding]"},
	};
	static struct ur_config cfg;

	ur_config_init(&cfg);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_eq(ur_config_set_arg(&cfg, wrong[i].arg, err, sizeof(err)), -EINVAL);
		cr_expect_str_eq(err, wrong[i].want);
	}
}

Test(config, a_question_mark_leaves_what_is_set)
{
	static struct ur_config cfg;

	cr_assert_eq(load_text("[transport]\nmax_mr = 7\n", &cfg), 0);
	cr_expect_eq(ur_config_set_arg(&cfg, "transport.max_mr?=9", err, sizeof(err)), 0);
	cr_expect_eq(cfg.transport.max_mr, 7);
	cr_expect_eq(ur_config_set_arg(&cfg, "transport.max_pd?=9", err, sizeof(err)), 0);
	cr_expect_eq(cfg.transport.max_pd, 9);
	/* It counts as a default: another one replaces it. */
	cr_expect_not(ur_config_is_given(&cfg, "transport", "max_pd"));
	cr_expect_eq(ur_config_set_arg(&cfg, "transport.max_pd?=8", err, sizeof(err)), 0);
	cr_expect_eq(cfg.transport.max_pd, 8);
	cr_expect_eq(ur_config_set_arg(&cfg, "transport.max?=8", err, sizeof(err)), -EINVAL);
	cr_expect_eq(ur_config_set_arg(&cfg, "transport.max_pd?=no", err, sizeof(err)), -EINVAL);
	cr_expect_eq(ur_config_set_arg(&cfg, "?=8", err, sizeof(err)), -EINVAL);
}

Test(config, spray_is_a_number_or_a_word)
{
	static struct ur_config cfg;

	ur_config_init(&cfg);
	cr_expect_eq(ur_config_set_arg(&cfg, "transport.spray=all", err, sizeof(err)), 0);
	cr_expect_eq(cfg.transport.spray, UR_CONFIG_SPRAY_ALL);
	cr_expect_eq(ur_config_set_arg(&cfg, "transport.spray=2", err, sizeof(err)), 0);
	cr_expect_eq(cfg.transport.spray, 2);
	cr_expect_eq(ur_config_set_arg(&cfg, "transport.spray=off", err, sizeof(err)), 0);
	cr_expect_eq(cfg.transport.spray, 0);
}

Test(config, a_wrong_combination_by_set_is_not_blamed_on_the_file)
{
	static struct ur_config cfg;

	cr_assert_eq(load_text("[port]\ndevice = veth0\nmtu = 1500\n[address]\nipv4 = 10.0.0.1/8\n",
			       &cfg),
		     0);
	cr_assert_eq(ur_config_set(&cfg, "transport.path_mtu", "4096", err, sizeof(err)), 0);
	cr_expect_eq(ur_config_check(&cfg, err, sizeof(err)), -EINVAL);
	cr_expect_str_eq(err,
			 "--set: [transport] path_mtu: \"4096\" does not fit [port] mtu = 1500; "
			 "allowed: auto, at most 1024, or an mtu of 4196");
}

Test(config, path_mtu_leaves_room_for_the_headers)
{
	cr_expect_eq(ur_mtu_payload(355), 0);
	cr_expect_eq(ur_mtu_payload(356), 256);
	cr_expect_eq(ur_mtu_payload(1500), 1024);
	cr_expect_eq(ur_mtu_payload(4195), 2048);
	cr_expect_eq(ur_mtu_payload(4196), 4096);
	cr_expect_eq(ur_mtu_payload(9600), 4096);
}

/* Feeds garbage to the parser of values. It accepts or refuses any text, and never crashes. */
Test(config, random_bytes_are_taken_or_refused)
{
	static const char alphabet[] = "[]=#\\ \n\t.:/,%-0123456789abcdefport address mtu";
	static struct ur_config cfg;
	char text[600];
	unsigned state = 1;

	for (unsigned round = 0; round < 2000; round++) {
		size_t len = 1 + round % (sizeof(text) - 1);
		const char *path;
		int rc;

		for (size_t i = 0; i < len; i++) {
			state = state * 1103515245u + 12345u;
			text[i] = state >> 16 & 7 ? alphabet[(state >> 19) % (sizeof(alphabet) - 1)]
						  : (char)(state >> 24);
		}
		memcpy(text, "[port]\n", len < 7 ? len : 7);
		path = write_file(text, len);
		rc = ur_config_load(path, &cfg, err, sizeof(err));
		unlink(path);
		cr_expect(rc == 0 || rc == -EINVAL, "round %u: %d", round, rc);
	}
}
