/* SPDX-License-Identifier: BSD-3-Clause */
/* Between mux.c and rmpp.c. */
#ifndef UR_UMAD_MUX_PRIV_H
#define UR_UMAD_MUX_PRIV_H

#include "umad/mux.h"
#include "wire/bytes.h"

#define MS_NS 1000000ull

/* Offsets in a MAD, bytes. */
#define MAD_CLASS      1
#define MAD_VERSION    2
#define MAD_METHOD     3
#define MAD_STATUS     4
#define MAD_TID	       8
#define MAD_ATTRIBUTE  16
#define MAD_HDR_BYTES  24
#define MAD_RESPONSE   0x80 /* of the method */
#define MAD_VENDOR_OUI 37

#define MAD_CLASS_DIRECTED 0x81

/* The bytes before the data: MAD, RMPP and class headers. */
unsigned mux_header_bytes(uint8_t mgmt_class);

/* The class has an RMPP header, and it is active. */
bool mux_rmpp_is_active(const uint8_t *mad);
/* It begins a message: it is the first segment, or not active. */
bool mux_rmpp_begins(const uint8_t *mad);
/* It is no part of a message in segments any more. */
void mux_rmpp_end(uint8_t *mad);

void mux_deliver(struct mux *m, struct mux_program *p, const struct ib_user_mad *umad,
		 const uint8_t *mad, uint32_t length);
/* The request with that TransactionID that was sent to that LID (network order), or NULL. UMAD-TID-02 */
struct mux_transfer *mux_find_request(struct mux *m, const struct mux_program *p, uint64_t tid,
				      uint8_t mgmt_class, uint16_t lid_be);
void mux_end_transfer(struct mux *m, struct mux_transfer *t);
/* Starts the time that a request waits for its response. */
void mux_await_response(struct mux_transfer *t, uint64_t now);

/* Makes an RMPP message of the transfer and sends what the window permits. */
void mux_rmpp_start(struct mux *m, struct mux_transfer *t, uint64_t now);
/* Sends again from the first segment that is not acknowledged. */
void mux_rmpp_resend(struct mux *m, struct mux_transfer *t, uint64_t now);
/* An active RMPP packet for the agent. */
void mux_rmpp_input(struct mux *m, struct mux_program *p, unsigned agent, const uint8_t *mad,
		    const struct ib_mad_addr *from, uint64_t now);
void mux_end_assembly(struct mux *m, struct mux_assembly *a);
void mux_expire_assembly(struct mux *m, struct mux_assembly *a);

#endif
