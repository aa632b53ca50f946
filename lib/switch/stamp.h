/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_STAMP_H
#define UR_SWITCH_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/delay.h"

/*
 * SWITCH-DELAY-01. Delay stamps (docs/design/delay.md): the time that a packet has spent in this switch, added to a
 * field that neither the ICRC nor IPv4's checksum covers. Everything is bounds-checked: the frame is whatever a port
 * has received.
 *
 * Thread class: pure functions.
 */
struct ur_switch_stamp {
	uint16_t udp_off; /* of the UDP header in the frame */
	uint16_t before;  /* code of the delay with which the frame was received */
};

/*
 * Counts this switch as a hop of the frame, which has no other reference and is about to be sent. False: the frame asks
 * for no stamp, or its hops are UR_DELAY_VOID; nothing was changed. Otherwise ur_switch_stamp_set() must follow.
 */
bool ur_switch_stamp_begin(uint8_t *frame, uint32_t len, struct ur_switch_stamp *s);

/* The frame was held back: what it asks is no longer to be used. Its hops become UR_DELAY_VOID. */
void ur_switch_stamp_void(uint8_t *frame, uint32_t len);

/*
 * The frame leaves `ns` after it was received. May be called again, with the whole time, if the device did not take the
 * frame.
 */
void ur_switch_stamp_set(uint8_t *frame, const struct ur_switch_stamp *s, uint64_t ns);

#endif
