/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <criterion/criterion.h>

#include "options.h"

static struct switch_spec spec;
static char err[512];

static bool parse(const char *text)
{
	err[0] = '\0';
	return switch_spec_parse(text, &spec, err, sizeof(err));
}

Test(switch_spec, every_kind)
{
	cr_assert(parse("dev=veth0"));
	cr_assert_eq(spec.kind, SWITCH_DEV);
	cr_assert_str_eq(spec.name, "veth0");
	cr_assert(!spec.access && !spec.has_trunk && spec.vid == 1);
	cr_assert(parse("memif=/run/x.sock,role=client,rate=2.5"));
	cr_assert(spec.kind == SWITCH_MEMIF && spec.client && spec.rate_gbps == 2.5);
	cr_assert(!spec.has_credits && switch_spec_credits(&spec, true) &&
		  !switch_spec_credits(&spec, false));
	cr_assert(parse("tap=x,credits=yes"));
	cr_assert(switch_spec_credits(&spec, false));
	cr_assert(parse("dev=x,credits=no"));
	cr_assert(!switch_spec_credits(&spec, true));
	cr_assert(parse("socket=/run/f.sock,clients=3,mode=0666,mtu=1500"));
	cr_assert_eq(spec.kind, SWITCH_SOCKET);
	cr_assert(parse("ring=middle,rate=10") && spec.kind == SWITCH_RING);
	cr_assert(parse("socket=/run/f.sock,clients=3,mode=0666,mtu=1500"));
	cr_assert(spec.clients == 3 && spec.mode == 0666 && spec.mtu == 1500);
	for (unsigned k = 0; k < SWITCH_KIND_CNT; k++) {
		char text[64];

		snprintf(text, sizeof(text), "%s=x", switch_kind_word(k));
		cr_assert(parse(text));
		cr_assert_eq(spec.kind, k);
	}
}

Test(switch_spec, vlans)
{
	cr_assert(parse("dev=x,access=10"));
	cr_assert(spec.access && spec.vid == 10);
	cr_assert(parse("dev=x,trunk=10+4094,native=7"));
	cr_assert(spec.has_trunk && spec.vid == 7 && !spec.access);
	cr_assert_eq(spec.vids[0], UINT64_C(1) << 10);
	cr_assert_eq(spec.vids[63], UINT64_C(1) << 62);
}

Test(switch_spec, what_is_wrong_is_named)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"veth0", "not KIND=NAME"},
		{"dev=", "not KIND=NAME"},
		{"nic=x", "allowed kinds: dev, xdp"},
		{"dev=x,credits=maybe", "credits is not valid; allowed: yes, no"},
		{"socket=x,credits=yes", "is not a key of a socket port"},
		{"ring=x,credits=yes", "is not a key of a ring port"},
		{"xdp=x,foo=1", "trunk, credits, each"},
		{"pci=0000:01:00.0,foo=1", "trunk, credits, each"},
		{"dev=x,rate=0", "rate is not valid"},
		{"dev=x,rate=1x", "rate is not valid"},
		{"dev=x,mtu=-1", "allowed: 256 to 9600"},
		{"dev=x,access=4095", "VLAN from 1 to 4094"},
		{"dev=x,trunk=1+0", "VLANs such as"},
		{"dev=x,trunk=", "VLANs such as"},
		{"dev=x,trunk=5,access=5", "exclude each other"},
		{"dev=x,access=5,native=6", "access and native exclude each other"},
		{"dev=x,native=6,access=5", "access and native exclude each other"},
		{"dev=x,role=client", "not a key of a dev port"},
		{"dev=x,clients=2", "not a key of a dev port"},
		{"dev=x,", "\"\" is not a key"},
		{"memif=x,role=none", "server, client"},
		{"socket=x,clients=0", "1 to 63"},
		{"socket=x,mode=0999", "permissions"},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_not(parse(bad[i].text), "%s", bad[i].text);
		cr_assert(strstr(err, bad[i].says), "%s: %s", bad[i].text, err);
	}
}

Test(switch_spec, routes_and_lids)
{
	struct switch_route r;
	uint16_t lid;
	uint8_t port;

	cr_assert(switch_route_parse("10.0.0.2=5", &r, err, sizeof(err)));
	cr_assert(ur_gid_is_ipv4(&r.addr) && r.addr.b[15] == 2 && r.lid == 5 && !r.lmc);
	cr_assert(switch_route_parse("fe80::1=8/3", &r, err, sizeof(err)));
	cr_assert(r.addr.b[0] == 0xfe && r.lid == 8 && r.lmc == 3);
	cr_assert_not(switch_route_parse("10.0.0.2=9/1", &r, err, sizeof(err)), "odd");
	cr_assert_not(switch_route_parse("10.0.0.2", &r, err, sizeof(err)));
	cr_assert_not(switch_route_parse("10.0.0=5", &r, err, sizeof(err)));
	cr_assert_not(switch_route_parse("10.0.0.2=49152", &r, err, sizeof(err)));
	cr_assert(switch_lid_parse("5=63", &lid, &port, err, sizeof(err)));
	cr_assert(lid == 5 && port == 63);
	cr_assert_not(switch_lid_parse("0=1", &lid, &port, err, sizeof(err)));
	cr_assert_not(switch_lid_parse("5=64", &lid, &port, err, sizeof(err)));
}

static struct switch_options o[SWITCHES_MAX];
static unsigned switches;

/* Words separated by blanks; the program's name is put in front of them. */
static enum parse parse_line(const char *text)
{
	static char copy[8192];
	static char *argv[512];
	char *rest = copy, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", text);
	argv[0] = (char[]){"uroce-switch"};
	while ((word = strsep(&rest, " ")) != NULL)
		argv[argc++] = word;
	argv[argc] = NULL;
	err[0] = '\0';
	return switch_options_parse(o, &switches, argc, argv, err, sizeof(err));
}

Test(switch_spec, ports_of_the_file_come_first)
{
	cr_assert_eq(parse_line("--port dev=z --config f"), PARSE_OK);
	cr_assert_eq(switches, 1);
	cr_assert_str_eq(o[0].name, "");
	cr_assert(switch_options_ports(o, "dev=x  dev=y", err, sizeof(err)));
	cr_assert_eq(o[0].spec_cnt, 3);
	cr_assert_str_eq(o[0].spec[0].name, "x");
	cr_assert_str_eq(o[0].spec[2].name, "z");
	cr_assert_not(switch_options_ports(o, "dev", err, sizeof(err)));
}

Test(switch_spec, a_command_line_without_a_port_is_wrong)
{
	cr_assert_eq(parse_line("--poll"), PARSE_USAGE);
	cr_assert(strstr(err, "--port dev=veth0"));
}

/* SWITCH-MANY-01 */
Test(switch_spec, what_precedes_the_first_switch_holds_for_all)
{
	cr_assert_eq(
		parse_line(
			"--set a.b=1 --interval 2 --switch left --port dev=x --set a.b=2 --state f "
			"--switch right --port ring=y,rate=1 --port dev=z --json g --poll"),
		PARSE_OK);
	cr_assert_eq(switches, 2);
	cr_assert_str_eq(o[0].name, "left");
	cr_assert_str_eq(o[1].name, "right");
	cr_assert(o[0].spec_cnt == 1 && o[1].spec_cnt == 2);
	cr_assert(o[0].common.set_cnt == 2 && o[1].common.set_cnt == 1);
	cr_assert_str_eq(o[0].common.set[1], "a.b=2");
	cr_assert_str_eq(o[1].common.set[0], "a.b=1");
	cr_assert(o[0].common.interval_s == 2 && o[1].common.interval_s == 2);
	cr_assert(!o[1].common.state && !o[0].common.json && !o[0].common.poll);
	cr_assert(o[1].spec[0].kind == SWITCH_RING && o[1].spec[0].rate_gbps == 1);
}

Test(switch_spec, what_is_wrong_with_several_switches_is_named)
{
	static const struct {
		const char *line, *says;
	} bad[] = {
		{"--port dev=x --switch a --port dev=y", "have to follow its --switch"},
		{"--state f --switch a --port dev=y", "have to follow its --switch"},
		{"--switch a --port dev=x --switch a --port dev=y", "two named \"a\""},
		{"--switch a/b --port dev=x", "is not a name"},
		{"--switch 12345678901234567890123456789012 --port dev=x", "is not a name"},
		{"--switch  --port dev=x", "is not a name"},
		{"--switch a --port dev=x --switch b", "b: no port is given"},
		{"--switch a --port dev=x --state f --switch b --port dev=y --state f",
		 "a and b have the same file"},
		{"--switch a --port dev=x --json f --switch b --port dev=y --json f",
		 "a and b have the same file"},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(parse_line(bad[i].line), PARSE_USAGE, "%s", bad[i].line);
		cr_assert(strstr(err, bad[i].says), "%s: %s", bad[i].line, err);
	}
}

Test(switch_spec, switches_are_counted)
{
	static char line[8192];

	for (unsigned i = 0; i < SWITCHES_MAX; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line),
			 "%s--switch s%u --port dev=d%u", i ? " " : "", i, i);
	cr_assert_eq(parse_line(line), PARSE_OK, "%s", err);
	cr_assert_eq(switches, SWITCHES_MAX);
	strcat(line, " --switch more --port dev=x");
	cr_assert_eq(parse_line(line), PARSE_USAGE);
	cr_assert(strstr(err, "more than 64"));
}
