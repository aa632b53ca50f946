/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "pcap_tool.h"
#include "print/print.h"
#include "wire/assert.h"
#include "wire/icrc.h"

enum exit_code {
	EXIT_ALL_RIGHT = 0,
	EXIT_BAD_PACKET = 1,
	EXIT_USAGE = 2,
};

struct options {
	bool summary;
	const char *filter; /* NULL: everything */
};

static const char help[] =
	"Usage: uroce-pcap [OPTION]... FILE...\n"
	"Prints the RoCEv2 packets of captures, every header by name, and verifies the ICRC of "
	"each.\n"
	"\n"
	"FILE is a pcap or pcapng capture of Ethernet frames, '-' is standard input.\n"
	"\n"
	"  -s, --summary      tables instead of lines: verdicts, opcodes, and flows (what one "
	"sender\n"
	"                     sends to one QP: packets, bytes, PSNs, PSNs seen again, NAKs)\n"
	"  -f, --filter EXPR  only packets that match a pcap-filter(7) expression\n"
	"  -h, --help         this text\n"
	"\n"
	"A line has the time since the file's first packet in seconds, source address and UDP "
	"port,\n"
	"destination address, opcode, destination QP, PSN, [flags], extended headers, payload "
	"bytes:\n"
	"\n"
	"  0.000012000 10.0.0.1:49153 > 10.0.0.2 RC_WRITE_ONLY qpn 0x11 psn 7 [A]\n"
	"      RETH{va 0x7f00 rkey 0x273 len 64} payload 64 icrc ok          (one line)\n"
	"\n"
	"Flags: SE solicited event, M migration state, A acknowledge request, FECN, BECN.\n"
	"Extended mode adds XTH (transmit stamp in 16 ns, path, message SSN, packet offset, "
	"receive),\n"
	"XAETH (echoed stamp and path, residence, expected PSN), XRTH (what a response answers) "
	"and\n"
	"SACK (PSNs missing and arrived from the expected one on).\n"
	"A packet that is not RoCE is named in a few words after '-'. One that claims to be RoCE "
	"and\n"
	"is not well formed is shown as MALFORMED with the reason; 'cut' is one of which the "
	"capture\n"
	"kept too few bytes to verify it (capture with a larger snap length).\n"
	"\n"
	"Examples:\n"
	"  uroce-pcap results/quickstart.pcap\n"
	"  uroce-pcap --summary --filter 'host 10.0.0.2' *.pcap\n"
	"  tcpdump -i eth0 -w - udp port 4791 | uroce-pcap -\n"
	"\n"
	"Exit status: 0 all right; 1 an ICRC is wrong or a RoCE packet is malformed; 2 bad usage "
	"or a\n"
	"file that cannot be read.\n";

_Noreturn void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "uroce-pcap: %s:%d: assertion failed: %s\n", file, line, expr);
	abort();
}

static void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fputs("uroce-pcap: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

static enum verdict judge(const struct pcap_pkthdr *hdr, const uint8_t *frame, struct ur_packet *p,
			  enum ur_drop *drop)
{
	*drop = ur_packet_decode(frame, hdr->caplen, p);
	if (*drop == UR_DROP_NOT_ROCE)
		return VERDICT_NOT_ROCE;
	if (*drop == UR_DROP_TRUNCATED && hdr->caplen < hdr->len)
		return VERDICT_CUT;
	if (*drop != UR_DROP_NONE)
		return VERDICT_MALFORMED;
	return ur_icrc_ok(frame, p) ? VERDICT_OK : VERDICT_ICRC_WRONG;
}

static void print_line(const struct pcap_pkthdr *hdr, const uint8_t *frame, int64_t since_ns,
		       enum verdict verdict, const struct ur_packet *p, enum ur_drop drop)
{
	char text[UR_PRINT_MAX];
	uint64_t ns = since_ns < 0 ? (uint64_t)-since_ns : (uint64_t)since_ns;

	printf("%s%llu.%09llu ", since_ns < 0 ? "-" : "", (unsigned long long)(ns / 1000000000),
	       (unsigned long long)(ns % 1000000000));
	switch (verdict) {
	case VERDICT_OK:
	case VERDICT_ICRC_WRONG:
		ur_print_packet(text, sizeof(text), p, verdict == VERDICT_OK);
		printf("%s\n", text);
		break;
	case VERDICT_NOT_ROCE:
		other_print(text, sizeof(text), frame, hdr->caplen);
		printf("- %s\n", text);
		break;
	case VERDICT_CUT:
		printf("cut: %u of %u bytes\n", hdr->caplen, hdr->len);
		break;
	default:
		other_print(text, sizeof(text), frame, hdr->caplen);
		printf("MALFORMED (%s) %s\n", ur_drop_text(drop), text);
	}
}

/* With nanosecond precision libpcap keeps nanoseconds in tv_usec. */
static int64_t stamp_ns(const struct pcap_pkthdr *hdr)
{
	return (int64_t)hdr->ts.tv_sec * 1000000000 + hdr->ts.tv_usec;
}

/* Returns false, with a message, if the file is truncated. */
static bool read_packets(pcap_t *pcap, const char *path, const struct options *opt,
			 struct summary *sum)
{
	struct pcap_pkthdr *hdr;
	const u_char *frame;
	int64_t start_ns = 0;
	bool first = true;
	int got;

	while ((got = pcap_next_ex(pcap, &hdr, &frame)) == 1) {
		struct ur_packet p;
		enum ur_drop drop;
		enum verdict verdict = judge(hdr, frame, &p, &drop);

		if (first)
			start_ns = stamp_ns(hdr);
		first = false;
		summary_add(sum, verdict, &p);
		if (!opt->summary)
			print_line(hdr, frame, stamp_ns(hdr) - start_ns, verdict, &p, drop);
	}
	if (got == PCAP_ERROR_BREAK)
		return true;
	complain("%s: %s", path, pcap_geterr(pcap));
	return false;
}

static bool set_filter(pcap_t *pcap, const char *path, const char *filter)
{
	struct bpf_program program;
	bool ok;

	if (pcap_compile(pcap, &program, filter, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		complain("filter '%s': %s", filter, pcap_geterr(pcap));
		return false;
	}
	ok = pcap_setfilter(pcap, &program) == 0;
	if (!ok)
		complain("%s: %s", path, pcap_geterr(pcap));
	pcap_freecode(&program);
	return ok;
}

static bool read_file(const char *path, const struct options *opt, struct summary *sum)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *pcap;
	bool ok = true;

	pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
	if (!pcap) {
		/* libpcap names the file only if it cannot open it. */
		if (strncmp(error, path, strlen(path)) == 0)
			complain("%s", error);
		else
			complain("%s: %s", path, error);
		return false;
	}
	if (pcap_datalink(pcap) != DLT_EN10MB) {
		const char *name = pcap_datalink_val_to_name(pcap_datalink(pcap));

		complain("%s: holds %s packets, not Ethernet frames (capture on one interface, not "
			 "on 'any')",
			 path, name ? name : "unknown");
		ok = false;
	}
	ok = ok && (!opt->filter || set_filter(pcap, path, opt->filter));
	ok = ok && read_packets(pcap, path, opt, sum);
	pcap_close(pcap);
	return ok;
}

/* Returns the index of the first file, or ends the program. */
static int parse_options(int argc, char **argv, struct options *opt)
{
	static const struct option longs[] = {
		{"summary", no_argument, NULL, 's'},
		{"filter", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "sf:h", longs, NULL)) != -1)
		switch (c) {
		case 's':
			opt->summary = true;
			break;
		case 'f':
			opt->filter = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			exit(EXIT_ALL_RIGHT);
		default:
			/* getopt_long() has printed the error */
			complain("try 'uroce-pcap --help'");
			exit(EXIT_USAGE);
		}
	if (optind == argc) {
		complain("no capture file given; try 'uroce-pcap --help'");
		exit(EXIT_USAGE);
	}
	return optind;
}

int main(int argc, char **argv)
{
	struct options opt = {.summary = false};
	struct summary *sum = summary_new();
	int first = parse_options(argc, argv, &opt);
	enum exit_code code = EXIT_ALL_RIGHT;

	for (int i = first; i < argc; i++) {
		if (argc - first > 1 && !opt.summary)
			printf("%s%s:\n", i > first ? "\n" : "", argv[i]);
		if (!read_file(argv[i], &opt, sum))
			code = EXIT_USAGE;
	}
	if (opt.summary)
		summary_print(sum);
	if (code == EXIT_ALL_RIGHT &&
	    (summary_cnt(sum, VERDICT_ICRC_WRONG) || summary_cnt(sum, VERDICT_MALFORMED)))
		code = EXIT_BAD_PACKET;
	summary_free(sum);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		complain("standard output: write failed");
		code = EXIT_USAGE;
	}
	return (int)code;
}
