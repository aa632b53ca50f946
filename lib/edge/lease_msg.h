/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_LEASE_MSG_H
#define UR_EDGE_LEASE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/psn.h"

/*
 * Messages between uroced and its clients (docs/design/uroced.md), each one packet of a SOCK_SEQPACKET. Big-endian.
 *
 *	request   4 magic, 4 address, 24 secret, 32 program
 *	grant     4 magic, 4 address, 1 prefix length, 1 log2 of slots, 2 MTU, 6 MAC, 1 prefix bits, 1 prefix, 4 memif id, 24 secret, 64 memif
 *	refusal   4 magic, 4 reason
 *
 * Later, of a client with a prefix:
 *
 *	port	  4 magic, 1 zero, 1 space, 2 port, 1 what is wanted, 3 zero
 *	answer	  4 magic, 1 status, 1 space, 2 port that was asked for, 2 port that is bound, 2 zero
 *
 * Later, of a client whose request has version 2, which is the only difference of the versions:
 *
 *	request	  4 magic, 4 client
 *	direct	  4 magic, 4 client, 2 longest frame, 1 end, 1 zero; with a descriptor, or with none and zeros: the ring has ended
 *
 * Thread class: pure functions.
 */
#define UR_LEASE_SOCKET		    "/run/uroced/uroced.sock" /* unless another path is given */
#define UR_LEASE_SECRET_BYTES	    24			      /* text with its NUL; memif's limit */
#define UR_LEASE_SECRET_CHARS	    22
#define UR_LEASE_PROGRAM_BYTES	    32
#define UR_LEASE_NAME_BYTES	    64
#define UR_LEASE_REQUEST_BYTES	    64
#define UR_LEASE_GRANT_BYTES	    112
#define UR_LEASE_REFUSAL_BYTES	    8
#define UR_LEASE_PORT_BYTES	    12 /* and of its answer */
#define UR_LEASE_RING_REQUEST_BYTES 8
#define UR_LEASE_DIRECT_BYTES	    12
#define UR_LEASE_PREFIX_BITS	    6
#define UR_LEASE_NUMBER_MAX	    62 /* of clients that share an address; the least is 1 */
#define UR_LEASE_WAKE_PORT	    9 /* UDP; discard, RFC 863: of datagrams that only wake a client */
#define UR_LEASE_MESSAGE_MAX	    UR_LEASE_GRANT_BYTES

/* X(NAME, sentence): why there is no lease */
#define UR_LEASE_REFUSALS(X)                                                                       \
	X(MALFORMED, "it does not understand this version's request")                              \
	X(QUOTA, "this user has all the leases that one user may have; end a process of its own, " \
		 "or raise --per-user")                                                            \
	X(FULL, "all its ports are leased; end a process, or raise --clients")                     \
	X(NO_ADDRESS, "no address is free; addresses rest for a while after their lease")          \
	X(FOREIGN, "the address is not in its range")                                              \
	X(TAKEN, "another process has the address, or had it a moment ago")

enum ur_lease_refusal {
#define X(NAME, sentence) UR_LEASE_##NAME,
	UR_LEASE_REFUSALS(X)
#undef X
		UR_LEASE_REFUSAL_CNT
};

struct ur_lease_request {
	uint32_t address;		      /* host byte order; 0: any */
	char secret[UR_LEASE_SECRET_BYTES];   /* of a lease before, as in its grant; "": none */
	char program[UR_LEASE_PROGRAM_BYTES]; /* printable; for people */
	bool direct;			      /* it knows direct rings: version 2 */
};

struct ur_lease_grant {
	uint32_t address;
	uint8_t prefix; /* [1, 30]; 0, where the address is shared: everything is resolved by ARP */
	uint8_t slots_shift; /* a ring has 1 << slots_shift slots, [4, 14] */
	uint16_t mtu;	     /* largest IP packet, bytes, [576, 9600] */
	uint8_t mac[6];	     /* not a group address */
	/*
	 * Of queue pair numbers and communication ids. Zero: the address is this process's alone; else it has 6 bits, and a value
	 * in [1, UR_LEASE_NUMBER_MAX].
	 */
	struct ur_qpn_prefix qpns;
	uint32_t memif_id;
	char secret[UR_LEASE_SECRET_BYTES]; /* UR_LEASE_SECRET_CHARS hexadecimal digits */
	char memif
		[UR_LEASE_NAME_BYTES]; /* file name in the directory of the lease's socket: no '/', no ',' */
};

/* Port spaces of the host: RDMA_PS_TCP, of connections, and RDMA_PS_UDP. */
enum ur_lease_space { UR_LEASE_TCP, UR_LEASE_UDP, UR_LEASE_SPACES };

struct ur_lease_port {
	enum ur_lease_space space;
	uint16_t port; /* 0: an ephemeral one */
	bool release;  /* false: bind */
};

enum ur_lease_status {
	UR_LEASE_BOUND,
	UR_LEASE_PORT_TAKEN, /* another process has it */
	UR_LEASE_PORT_QUOTA, /* this process, or its user, has too many */
	UR_LEASE_NO_PORT,    /* no ephemeral port is free */
	UR_LEASE_STATUS_CNT
};

struct ur_lease_bound {
	enum ur_lease_status status;
	enum ur_lease_space space;
	uint16_t asked, port; /* as it was asked for; what it has, if BOUND */
};

/*
 * A ring that joins this client to another one (direct_ring.h). The descriptor is that of its memory. `client` is the other one's
 * address or, where clients share an address, its number (the value of its prefix).
 */
struct ur_lease_direct {
	uint32_t client;    /* the other one */
	uint16_t frame_max; /* 0: there is no such ring any more */
	bool second;	    /* which end is this client's */
};

enum ur_lease_answer {
	UR_LEASE_BAD, /* neither */
	UR_LEASE_GRANTED,
	UR_LEASE_REFUSED,
};

/* Whether it is UR_LEASE_SECRET_CHARS hexadecimal digits. */
bool ur_lease_is_secret(const char *text);

/* Write a message; `out` has the bytes of its kind. */
void ur_lease_put_request(const struct ur_lease_request *r, uint8_t *out);
void ur_lease_put_grant(const struct ur_lease_grant *g, uint8_t *out);
void ur_lease_put_refusal(enum ur_lease_refusal why, uint8_t *out);

/* Reads a request. False: it is malformed, and *r is as it was. */
bool ur_lease_get_request(const uint8_t *msg, size_t len, struct ur_lease_request *r);

/* Reads an answer: a grant into *g, whose fields are within their ranges, or a refusal into *why. */
enum ur_lease_answer ur_lease_get_answer(const uint8_t *msg, size_t len, struct ur_lease_grant *g,
					 enum ur_lease_refusal *why);

/* Messages about ports. get: false if malformed, and then *p or *b is as it was. */
void ur_lease_put_port(const struct ur_lease_port *p, uint8_t *out);
bool ur_lease_get_port(const uint8_t *msg, size_t len, struct ur_lease_port *p);
void ur_lease_put_bound(const struct ur_lease_bound *b, uint8_t *out);
bool ur_lease_get_bound(const uint8_t *msg, size_t len, struct ur_lease_bound *b);

/* Messages about direct rings. get: false if malformed, and then *client or *d is as it was. */
void ur_lease_put_ring_request(uint32_t client, uint8_t *out);
bool ur_lease_get_ring_request(const uint8_t *msg, size_t len, uint32_t *client);
void ur_lease_put_direct(const struct ur_lease_direct *d, uint8_t *out);
bool ur_lease_get_direct(const uint8_t *msg, size_t len, struct ur_lease_direct *d);

/* The MAC address of an address: 02:75 and its four bytes. */
void ur_lease_mac(uint32_t address, uint8_t mac[6]);

/* The sentence of a refusal. Static. */
const char *ur_lease_refusal_text(enum ur_lease_refusal why);

#endif
