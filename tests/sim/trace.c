/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"

#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "wire/packet.h"

#define TRACE_MAX_BYTES (32u << 20)

struct record {
	uint64_t at_ns;
	uint32_t len;
	uint32_t fate;
};

void sim_trace_reset(struct sim_trace *t)
{
	t->used = 0;
	t->frames = t->forgotten = 0;
}

void sim_trace_free(struct sim_trace *t)
{
	free(t->buf);
	*t = (struct sim_trace){0};
}

void sim_trace_add(struct sim_trace *t, uint64_t now_ns, const uint8_t *frame, uint32_t len,
		   enum sim_trace_fate fate)
{
	struct record rec = {.at_ns = now_ns, .len = len, .fate = fate};
	size_t need = sizeof(rec) + len;

	if (t->used + need > TRACE_MAX_BYTES) {
		t->forgotten += t->frames;
		t->frames = 0;
		t->used = 0;
	}
	if (t->used + need > t->cap) {
		t->cap = (t->used + need) * 2;
		t->buf = realloc(t->buf, t->cap);
		if (!t->buf)
			abort();
	}
	memcpy(t->buf + t->used, &rec, sizeof(rec));
	memcpy(t->buf + t->used + sizeof(rec), frame, len);
	t->used += need;
	t->frames++;
}

bool sim_trace_next(const struct sim_trace *t, size_t *at, struct sim_trace_frame *f)
{
	struct record rec;

	if (*at >= t->used)
		return false;
	memcpy(&rec, t->buf + *at, sizeof(rec));
	*f = (struct sim_trace_frame){.at_ns = rec.at_ns,
				      .b = t->buf + *at + sizeof(rec),
				      .len = rec.len,
				      .fate = (enum sim_trace_fate)rec.fate};
	*at += sizeof(rec) + rec.len;
	return true;
}

bool sim_trace_write(const struct sim_trace *t, const char *file)
{
	pcap_t *dead =
		pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65535, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *dump = dead ? pcap_dump_open(dead, file) : NULL;

	for (size_t at = 0; dump && at < t->used;) {
		struct pcap_pkthdr hdr = {0};
		struct record rec;

		memcpy(&rec, t->buf + at, sizeof(rec));
		at += sizeof(rec);
		hdr.ts.tv_sec = (time_t)(rec.at_ns / 1000000000u);
		hdr.ts.tv_usec = (suseconds_t)(rec.at_ns % 1000000000u);
		hdr.caplen = hdr.len = rec.len;
		pcap_dump((u_char *)dump, &hdr, t->buf + at);
		at += rec.len;
	}
	if (dump)
		pcap_dump_close(dump);
	if (dead)
		pcap_close(dead);
	return dump != NULL;
}

static void print_frame(const struct record *rec, const uint8_t *frame, uint32_t idx, FILE *out)
{
	static const char *const fates[] = {"", " LOST", " CORRUPT", " DUPLICATED", " HELD"};
	struct ur_packet p;

	fprintf(out, "%5" PRIu32 " %12.3f us ", idx, (double)rec->at_ns / 1000);
	if (ur_packet_decode(frame, rec->len, &p) != UR_DROP_NONE) {
		fprintf(out, "undecodable, %" PRIu32 " bytes%s\n", rec->len, fates[rec->fate]);
		return;
	}
	fprintf(out, "%02x>%02x %-24s qpn %06x psn %06x%s len %u", p.smac[5], p.dmac[5],
		ur_opcodes[p.bth.opcode].name, p.bth.dqpn.v, p.bth.psn.v, p.bth.ackreq ? " A" : "",
		p.payload_len);
	if (p.op & UR_OP_RETH)
		fprintf(out, " dma %u", p.reth.length);
	if (p.op & UR_OP_AETH)
		fprintf(out, " syndrome %02x msn %u", p.aeth.syndrome, p.aeth.msn);
	if (p.op & UR_OP_XTH)
		fprintf(out, " ssn %u off %u rwqen %u flags %x stamp %u", p.xth.ssn, p.xth.offset,
			p.xth.rwqen, p.xth.flags, p.xth.stamp);
	if (p.op & UR_OP_XAETH)
		fprintf(out, " epsn %06x echo %u", p.xaeth.epsn.v, p.xaeth.echo);
	if (p.op & UR_OP_XRTH)
		fprintf(out, " ssn %u off %u", p.xrth.ssn, p.xrth.offset);
	fprintf(out, "%s\n", fates[rec->fate]);
}

void sim_trace_print(const struct sim_trace *t, FILE *out, uint32_t max)
{
	uint32_t idx = 0;

	for (size_t at = 0; at < t->used; idx++) {
		struct record rec;

		memcpy(&rec, t->buf + at, sizeof(rec));
		at += sizeof(rec);
		if (idx + max >= t->frames)
			print_frame(&rec, t->buf + at, t->forgotten + idx, out);
		at += rec.len;
	}
}
