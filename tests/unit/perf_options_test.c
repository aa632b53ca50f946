/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>

#include "options.h"
#include "uroce/uroce.h"

#define CLIENT "client --config c --peer 10.0.0.1 "
#define PING                                                                                       \
	"--ping is for --mode bw with --duration and a plain operation on RC, without --bidir, --verify, --sge and --think-us"
#define WORDS 64

static struct perf_options o;
static char err[512], buffer[1024];

/* Splits a line into words, like a shell without quotes. */
static enum perf_parse parse(const char *line)
{
	char *argv[WORDS + 1], *save = NULL;
	int argc = 1;

	strcpy(buffer, line);
	err[0] = '\0';
	argv[0] = (char[]){"uroce-perf"};
	for (char *word = strtok_r(buffer, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	return perf_options_parse(&o, argc, argv, err, sizeof(err));
}

static const struct {
	const char *line, *sentence;
} bad[] = {
	{"", "say 'uroce-perf server' or 'uroce-perf client'; see uroce-perf --help"},
	{"serve", "'serve' is neither 'server' nor 'client'; see uroce-perf --help"},
	{"server",
	 "--dev INTERFACE is needed, which the endpoint shares with the kernel, or --config "
	 "FILE, which names another port; see pmd-config/"},
	{"client --config c", "the client needs --peer ADDRESS, the server's address"},
	{"client --config c --peer nowhere",
	 "--peer: 'nowhere' is neither an IPv4 nor an IPv6 address"},
	{"client --config c --peer 10.0.0.1,,10.0.0.2",
	 "--peer: '' is neither an IPv4 nor an IPv6 address"},
	{"client --config c --peer 10.0.0.1,10.0.0.2x",
	 "--peer: '10.0.0.2x' is neither an IPv4 nor an IPv6 address"},
	{"client --config c --peer 10.0.0.1,10.0.0.2 --mode lat",
	 "several endpoints or peers are for --mode bw and rate, without --events and --live"},
	{"client --config c --config d --peer 10.0.0.1 --live",
	 "--live shows one endpoint: give --config once"},
	{CLIENT "--config d --events",
	 "several endpoints or peers are for --mode bw and rate, without --events and --live"},
	{"server --config c --size 64",
	 "--size is an option of the client, which passes it to the server"},
	{"server --config c --json f",
	 "--json is an option of the client, which passes it to the server"},
	{CLIENT "--once", "--once is an option of the server"},
	{CLIENT "--metrics 9400",
	 "--metrics: '9400' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{CLIENT "--metrics :9400",
	 "--metrics: ':9400' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{CLIENT "--metrics ::1:9400",
	 "--metrics: '::1:9400' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{CLIENT "--metrics [127.0.0.1]:9400",
	 "--metrics: '[127.0.0.1]:9400' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{CLIENT "--metrics [::1]",
	 "--metrics: '[::1]' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{"server --config c --metrics 127.0.0.1:65536",
	 "--metrics: '127.0.0.1:65536' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{"server --config c --metrics 127.0.0.1:0",
	 "--metrics: '127.0.0.1:0' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{"server --config c --metrics 127.0.0.1:-1",
	 "--metrics: '127.0.0.1:-1' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{"server --config c --metrics 127.0.0.1:80x",
	 "--metrics: '127.0.0.1:80x' is not ADDRESS:PORT, such as 127.0.0.1:9400 or [::1]:9400"},
	{CLIENT "--op put",
	 "--op: 'put' is not one of write, write_imm, read, send, send_imm, send_inv, "
	 "cas, fetch_add, mixed"},
	{CLIENT "--pacing fast", "--pacing: 'fast' is not one of none, cmdpd, auto, dcqcn, swift"},
	{CLIENT "--mode fast", "--mode: 'fast' is not one of bw, rate, lat, soak, connect"},
	{CLIENT "--type xrc", "--type: 'xrc' is not one of rc, uc, ud"},
	{CLIENT "--size 64X", "--size: '64X' is not a size from 0 to 2G (K, M, G may follow)"},
	{CLIENT "--size -1", "--size: '-1' is not a size from 0 to 2G (K, M, G may follow)"},
	{CLIENT "--size 3G", "--size: '3G' is not a size from 0 to 2G (K, M, G may follow)"},
	{CLIENT "--size 1 --size 2", "--size is given twice"},
	{CLIENT "--sizes 4K..2", "--sizes: a range goes up, from at least 1: 2..1M"},
	{CLIENT "--sizes 1,,2", "--sizes needs a list such as 1,64,4K or a range such as 2..1M"},
	{CLIENT "--sizes 1..x", "--sizes: '1..x' is not a size from 0 to 2G, nor a range of sizes"},
	{CLIENT "--size 8 --sizes 1,2", "--size and --sizes exclude each other"},
	{CLIENT "--sl 16", "--sl: '16' is not a whole number from 0 to 15"},
	{CLIENT "--sl 1,,2", "--sl: '' is not a whole number from 0 to 15"},
	{CLIENT "--sl 1,", "--sl: '' is not a whole number from 0 to 15"},
	{CLIENT "--sl 0,1,x", "--sl: 'x' is not a whole number from 0 to 15"},
	{CLIENT "--weight 0", "--weight: '0' is not a whole number from 1 to 255"},
	{CLIENT "--weight 1,256", "--weight: '256' is not a whole number from 1 to 255"},
	{CLIENT "--priority 8", "--priority: '8' is not a whole number from 0 to 7"},
	{CLIENT
	 "--sl 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
	 "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
	 "--sl takes at most 64 numbers"},
	{"server --config c --sl 1",
	 "--sl is an option of the client, which passes it to the server"},
	{CLIENT "--qps 0", "--qps: '0' is not a whole number from 1 to 65536"},
	{CLIENT "--depth ten", "--depth: 'ten' is not a whole number from 1 to 8192"},
	{CLIENT "--iters 0", "--iters: '0' is not a whole number of at least 1"},
	{CLIENT "--mtu 1500", "--mtu: '1500' is not one of 256, 512, 1024, 2048, 4096"},
	{CLIENT "--retry 8", "--retry: '8' is not a whole number from 0 to 7"},
	{CLIENT "--port 70000", "--port: '70000' is not a whole number from 1 to 65535"},
	{CLIENT "--duration nan",
	 "--duration: 'nan' is not a number of seconds from 0 to 10000000"},
	{CLIENT "--duration 0", "--duration must be more than 0 seconds"},
	{CLIENT "--duration 1 --iters 5", "--duration, --iters and --bytes exclude one another"},
	{CLIENT "--bytes much", "--bytes: 'much' is not an amount of bytes such as 500M or 1e9"},
	{CLIENT "--bytes 1e9 --size 0", "--bytes cannot be reached with messages of 0 bytes"},
	{CLIENT "--filter udp", "--filter chooses what --pcap writes: give --pcap FILE as well"},
	{CLIENT "--set mtu=1500", "--set: 'mtu=1500' is not of the form section.key=value"},
	{CLIENT "--signal-every 128",
	 "--signal-every 128 exceeds --depth 64: nothing would ever complete"},
	{CLIENT "--type uc --op read",
	 "--type uc carries write, write_imm, send and send_imm, not read"},
	{CLIENT "--type uc --op send --srq", "--srq works with --type rc and ud, not with uc"},
	{CLIENT "--type ud --op write", "--type ud carries send and send_imm, not write"},
	{CLIENT "--type ud --op send --size 8K",
	 "--type ud carries messages of one packet, at most 4096 bytes"},
	{CLIENT "--type ud --op send --size 4 --verify",
	 "--verify needs at least 8 bytes a message, or immediate data (send_imm), to tell "
	 "messages "
	 "apart when some are lost"},
	{CLIENT "--op send --receives 4",
	 "--receives and --service-us are for --srq, without --bidir and --verify"},
	{CLIENT "--op send --srq --service-us 10",
	 "--service-us needs --receives N, at most 16 for each queue pair"},
	{CLIENT "--op send --srq --receives 17 --depth 1",
	 "--service-us needs --receives N, at most 16 for each queue pair"},
	{CLIENT "--op send --srq --think-us 10", "--think-us needs --depth 1"},
	{CLIENT "--ping --verify", PING},
	{CLIENT "--ping --bidir", PING},
	{CLIENT "--ping --mode lat", PING},
	{CLIENT "--ping --iters 10", PING},
	{CLIENT "--ping --op cas", PING},
	{CLIENT "--ping --type uc", PING},
	{CLIENT "--ping --sge 2", PING},
	{CLIENT "--ping --qps 65536", "--ping is one more queue pair: at most 65535 --qps"},
	{"server --config c --ping",
	 "--ping is an option of the client, which passes it to the server"},
	{CLIENT "--op write --buffers 4 --verify",
	 "--buffers is for --mode bw and rate, without --verify"},
	{CLIENT "--mode lat --buffers 4", "--buffers is for --mode bw and rate, without --verify"},
	{CLIENT "--op send --srq --shared-srq", "--shared-srq is an option of the server"},
	{"server --config c --service-us 10",
	 "--service-us is an option of the client, which passes it to the server"},
	{CLIENT "--op cas --size 64", "--op cas always moves 8 bytes: leave --size out"},
	{CLIENT "--op read --inline 64",
	 "--inline is for payload that is sent; --op read sends none"},
	{CLIENT "--op send_inv --bidir", "--op send_inv runs in one direction: leave --bidir out"},
	{CLIENT "--transport-mode sack",
	 "--transport-mode: 'sack' is not one of auto, extended, reorder, gbn"},
	{CLIENT "--transport-mode gbn --type uc",
	 "--transport-mode is for --type rc: uc and ud do not recover from loss"},
	{"server --config c --transport-mode gbn",
	 "--transport-mode is an option of the client, which passes it to the server"},
	{CLIENT "--mode lat --bidir", "--mode lat is a ping-pong: leave --bidir out"},
	{CLIENT "--mode lat --op mixed", "--mode lat measures one plain operation, not mixed"},
	{CLIENT "--mode lat --size 0",
	 "--mode lat --op write polls on the last byte: at least 1 byte is needed"},
	{CLIENT "--mode soak --op send",
	 "--mode soak mixes all operations on RC by itself: leave --op, --type and --bidir out"},
	{CLIENT "--mode connect --size 8", "--mode connect moves no data: it takes --iters, "
					   "--duration and --qps, not --op, --size or "
					   "--bytes"},
	{CLIENT "--mode connect --type ud", "--mode connect needs connections: --type rc or uc"},
	{CLIENT "--speed 9", "'--speed' is not an option of uroce-perf; see uroce-perf --help"},
	{CLIENT "--size", "--size needs a value"},
	{CLIENT "64", "'64' is not an option; every value follows a --name"},
};

Test(perf_options, each_wrong_command_line_gets_its_own_sentence)
{
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(parse(bad[i].line), PERF_PARSE_USAGE, "'%s' is taken", bad[i].line);
		cr_expect_str_eq(err, bad[i].sentence, "'%s' says: %s", bad[i].line, err);
	}
}

Test(perf_options, a_bare_client_writes_64_kilobytes_for_5_seconds)
{
	const struct sockaddr_in *peer = (const struct sockaddr_in *)&o.peers[0].addr;

	cr_assert_eq(parse("client --config c --peer 10.0.0.1"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.op, PERF_OP_WRITE);
	cr_assert_eq(o.mode, PERF_MODE_BW);
	cr_assert_eq(o.type, PERF_TYPE_RC);
	cr_assert_eq(o.sizes_cnt, 1);
	cr_assert_eq(o.sizes[0], 65536);
	cr_assert_eq(o.duration_s, 5);
	cr_assert_eq(o.depth, 64);
	cr_assert_eq(peer->sin_family, AF_INET);
	cr_assert_eq(ntohs(peer->sin_port), PERF_DEFAULT_PORT);
}

Test(perf_options, ipv6_peers_are_understood)
{
	const struct sockaddr_in6 *peer = (const struct sockaddr_in6 *)&o.peers[0].addr;

	cr_assert_eq(parse("client --config c --peer fd00::1 --port 7"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(peer->sin6_family, AF_INET6);
	cr_assert_eq(ntohs(peer->sin6_port), 7);
}

Test(perf_options, several_endpoints_and_peers_are_lists)
{
	const struct sockaddr_in *b = (const struct sockaddr_in *)&o.peers[1].addr;

	cr_assert_eq(parse("client --config c --config d --peer fd00::1,10.0.0.2 --port 7"),
		     PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.configs_cnt, 2);
	cr_assert_str_eq(o.config[0], "c");
	cr_assert_str_eq(o.config[1], "d");
	cr_assert_eq(o.peers_cnt, 2);
	cr_assert_str_eq(o.peers[0].text, "fd00::1");
	cr_assert_str_eq(o.peers[1].text, "10.0.0.2");
	cr_assert_eq(o.peers[0].addr.ss_family, AF_INET6);
	cr_assert_eq(ntohl(b->sin_addr.s_addr), 0x0a000002);
	cr_assert_eq(ntohs(b->sin_port), 7);
}

Test(perf_options, sweeps_are_lists_and_powers_of_two)
{
	cr_assert_eq(parse(CLIENT "--sizes 1,100,2K..8K"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.sizes_cnt, 5);
	cr_assert_eq(o.sizes[1], 100);
	cr_assert_eq(o.sizes[2], 2048);
	cr_assert_eq(o.sizes[4], 8192);
}

Test(perf_options, bytes_may_be_written_in_either_way)
{
	cr_assert_eq(parse(CLIENT "--bytes 1e9"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.bytes, 1000000000);
	cr_assert_eq(o.duration_s, 0);
	cr_assert_eq(parse(CLIENT "--bytes 2M"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.bytes, 2097152);
}

Test(perf_options, rates_signal_every_16th_message_unless_the_depth_is_small)
{
	cr_assert_eq(parse(CLIENT "--mode rate"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.sizes[0], 64);
	cr_assert_eq(o.signal_every, 16);
	cr_assert_eq(parse(CLIENT "--mode rate --depth 1"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.signal_every, 1);
}

Test(perf_options, the_transport_is_as_configured_unless_it_is_named)
{
	cr_assert_eq(parse(CLIENT "--op read"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.transport, 0);
	cr_assert_eq(parse(CLIENT "--transport-mode auto"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.transport, UROCE_QP_MODE_AUTO + 1);
	cr_assert_eq(parse(CLIENT "--transport-mode gbn"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.transport, UROCE_QP_MODE_GBN + 1);
}

Test(perf_options, a_soak_is_mixed_and_verified)
{
	cr_assert_eq(parse(CLIENT "--mode soak"), PERF_PARSE_OK, "%s", err);
	cr_assert_eq(o.op, PERF_OP_MIXED);
	cr_assert(o.verify);
}

Test(perf_options, set_may_be_given_again_and_again)
{
	cr_assert_eq(parse("server --config c --set port.mtu=9000 --set impair.loss=0.01"),
		     PERF_PARSE_OK, "%s", err);
	cr_assert_str_eq(o.set[0], "port.mtu=9000");
	cr_assert_str_eq(o.set[1], "impair.loss=0.01");
	cr_assert_null(o.set[2]);
}

Test(perf_options, help_is_no_error_wherever_it_stands)
{
	cr_assert_eq(parse("--help"), PERF_PARSE_HELP);
	cr_assert_eq(parse("client --help"), PERF_PARSE_HELP);
	cr_assert_eq(parse("server --config c -h"), PERF_PARSE_HELP);
}

Test(perf_options, help_config_works_in_any_position)
{
	cr_assert_eq(parse("--help-config"), PERF_PARSE_HELP_CONFIG);
	cr_assert_eq(parse("server --help-config"), PERF_PARSE_HELP_CONFIG);
}

Test(perf_options, help_names_every_option_with_a_value)
{
	static char text[16384];
	FILE *f = fmemopen(text, sizeof(text), "w");
	static const char *const names[] = {
		"--config",
		"--set",
		"--port",
		"--pcap",
		"--filter",
		"--once",
		"--peer",
		"--op",
		"--mode",
		"--type",
		"--size",
		"--sizes",
		"--qps",
		"--depth",
		"--bidir",
		"--verify",
		"--iters",
		"--bytes",
		"--warmup",
		"--duration",
		"--mtu",
		"--inline",
		"--sge",
		"--srq",
		"--events",
		"--json",
		"--signal-every",
		"--retry",
		"--rnr-retry",
		"--timeout",
		"--seed",
		"--rd-atomic",
		"--live-interval",
		"--help-config",
		"--transport-mode",
		"--metrics",
	};

	perf_options_help(f);
	fclose(f);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_not_null(strstr(text, names[i]), "%s is not explained", names[i]);
}

Test(perf_options, lists_are_taken_in_turn)
{
	cr_assert_eq(parse(CLIENT), PERF_PARSE_OK);
	cr_expect_eq(perf_list_at(&o.sl, 7), 0);
	cr_expect_eq(perf_list_at(&o.priority, 7), 0);
	cr_expect_eq(perf_list_at(&o.weight, 7), 1);
	cr_expect_not(o.live);
	cr_assert_eq(parse(CLIENT "--sl 0,15,3 --weight 255,1 --priority 7 --live"), PERF_PARSE_OK,
		     "%s", err);
	cr_expect_eq(o.sl.cnt, 3);
	cr_expect_eq(perf_list_at(&o.sl, 0), 0);
	cr_expect_eq(perf_list_at(&o.sl, 4), 15);
	cr_expect_eq(perf_list_at(&o.sl, 5), 3);
	cr_expect_eq(perf_list_at(&o.weight, 2), 255);
	cr_expect_eq(perf_list_at(&o.weight, 3), 1);
	cr_expect_eq(perf_list_at(&o.priority, 63), 7);
	cr_expect(o.live);
	cr_assert_eq(parse("server --config c --live --live-interval 0.5"), PERF_PARSE_OK, "%s",
		     err);
	cr_expect(o.live);
}

Test(perf_options, metrics_are_served_on_an_address_of_either_family)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&o.metrics_addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&o.metrics_addr;
	const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;

	cr_assert_eq(parse("server --config c --metrics 127.0.0.1:9400"), PERF_PARSE_OK, "%s", err);
	cr_expect_eq(v4->sin_family, AF_INET);
	cr_expect_eq(v4->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect_eq(v4->sin_port, htons(9400));
	cr_assert_eq(parse(CLIENT "--metrics [::1]:65535"), PERF_PARSE_OK, "%s", err);
	cr_expect_eq(v6->sin6_family, AF_INET6);
	cr_expect_eq(memcmp(&v6->sin6_addr, &loopback, sizeof(loopback)), 0);
	cr_expect_eq(v6->sin6_port, htons(65535));
}
