/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_PCAP_TOOL_H
#define UR_PCAP_TOOL_H

#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

/* The parts of uroce-pcap: main.c reads files, other.c names foreign traffic, summary.c counts. */

enum verdict {
	VERDICT_OK,
	VERDICT_ICRC_WRONG,
	VERDICT_MALFORMED,
	VERDICT_CUT, /* the capture has too few bytes of the packet */
	VERDICT_NOT_ROCE,
	VERDICT_CNT
};

/* Names a frame that is not RoCE in a few words ("ARP who-has 10.0.0.2 tell 10.0.0.1"). */
void other_print(char *buf, size_t cap, const uint8_t *frame, size_t len);

struct summary;

/* Ends the program when there is no memory. Free with summary_free(). */
struct summary *summary_new(void);
void summary_free(struct summary *s);

/* Counts one packet; `p` is read when the verdict is OK or ICRC_WRONG. */
void summary_add(struct summary *s, enum verdict verdict, const struct ur_packet *p);

/* How many packets had this verdict. */
uint64_t summary_cnt(const struct summary *s, enum verdict verdict);

/* Prints the tables to stdout. */
void summary_print(const struct summary *s);

#endif
