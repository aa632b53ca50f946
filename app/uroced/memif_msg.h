/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_MEMIF_MSG_H
#define UROCED_MEMIF_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Messages of memif 2.0's control channel as a server reads and writes them: 128 bytes, a type and a packed struct in native
 * byte order. Pure functions.
 */
#define MEMIF_MSG_BYTES	   128
#define MEMIF_VERSION	   0x0200
#define MEMIF_NAME_BYTES   32
#define MEMIF_SECRET_BYTES 24

enum memif_type {
	MEMIF_ACK = 1,
	MEMIF_HELLO,
	MEMIF_INIT,
	MEMIF_ADD_REGION,
	MEMIF_ADD_RING,
	MEMIF_CONNECT,
	MEMIF_CONNECTED,
	MEMIF_DISCONNECT,
};

struct memif_msg {
	enum memif_type type; /* INIT, ADD_REGION, ADD_RING, CONNECT or DISCONNECT */
	/* INIT */
	uint32_t id;
	char secret[MEMIF_SECRET_BYTES + 1]; /* ends with a NUL */
	/* ADD_REGION, ADD_RING */
	uint16_t index;
	uint64_t bytes; /* of the region */
	/* ADD_RING */
	bool to_server;
	uint16_t region;
	uint32_t offset;
	uint8_t shift; /* log2 of its slots */
};

/* False: not a message that a client of this version sends. */
bool memif_msg_get(const uint8_t *msg, size_t len, struct memif_msg *out);

/* Write MEMIF_MSG_BYTES. `text` is cut to what fits. */
void memif_msg_hello(uint8_t *out, const char *text);
void memif_msg_ack(uint8_t *out);
void memif_msg_connected(uint8_t *out, const char *text);
void memif_msg_disconnect(uint8_t *out, const char *text);

#endif
