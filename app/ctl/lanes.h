/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_LANES_H
#define CTL_LANES_H

#include "session.h"
#include "vl/attr.h"

/* The virtual lanes of a port of a node: arbitration tables, mapping of service levels, limit of high priority. */

/* "2". False: the node has no such port, or its lanes cannot be reached; a sentence was printed. */
bool ctl_lanes_port(struct ctl_session *s, uint32_t node, const char *text, uint8_t *port);

/* The node and the port that the words after the first name, and what the port has. False: a sentence was printed. */
bool ctl_lanes_of_words(struct ctl_session *s, uint32_t *node, uint8_t *port,
			struct ur_vl_attr *vl);

/* The mode is not on the wire: it is set to UR_VL_IBA. False: a sentence was printed. */
bool ctl_lanes_read(struct ctl_session *s, uint32_t node, uint8_t port, struct ur_vl_attr *vl);
/*
 * Writes what differs from what the port has, and reads it back. Without --force it does not if a service level would lose
 * its lane. False: a sentence was printed.
 */
bool ctl_lanes_write(struct ctl_session *s, uint32_t node, uint8_t port,
		     const struct ur_vl_attr *want);

/* "0:4,1:8" or "none". False: it is not a table; a sentence was printed. */
bool ctl_lanes_parse_table(const char *text, struct ur_vl_entry *entry, uint8_t *cnt);

/* "0,1,2,...": 16 lanes. */
bool ctl_lanes_parse_sl2vl(const char *text, uint8_t sl2vl[16]);

/* The other way. */
#define CTL_LANES_TABLE_BYTES 600
#define CTL_LANES_SL2VL_BYTES 64
void ctl_lanes_texts(const struct ur_vl_attr *vl, char high[CTL_LANES_TABLE_BYTES],
		     char low[CTL_LANES_TABLE_BYTES], char sl2vl[CTL_LANES_SL2VL_BYTES]);

#endif
