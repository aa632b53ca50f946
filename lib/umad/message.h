/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between libibumad (programs that manage a fabric) and uroce-hca (the process that owns the channel adapter),
 * over a unix SOCK_SEQPACKET. Both run on one machine: integers are in host order. Each message is one datagram
 * that starts with its kind.
 *
 * A connection either asks once (UR_UMAD_QUERY) or is an open port (UR_UMAD_OPEN) until it is closed. On an open
 * port MADs travel both ways. A request to (un)register an agent carries a socket (SCM_RIGHTS) for its answer, because
 * a MAD may arrive at any time on the connection itself. A MAD that is too long for one datagram carries a memfd that
 * holds all of it.
 *
 * The sockets are in one directory, NAME.umad for the channel adapter NAME. Beside it, NAME.issm1 is a FIFO: port 1 has
 * the capability IsSM while a program has the FIFO open for reading, as with the kernel's issm device.
 */
#ifndef UR_UMAD_MESSAGE_H
#define UR_UMAD_MESSAGE_H

#include <stdint.h>

#include <infiniband/umad.h>

#define UR_UMAD_DIR_VARIABLE "UROCE_UMAD_DIR"
#define UR_UMAD_DIR	     "/run/uroce/umad"
#define UR_UMAD_SUFFIX	     ".umad"
#define UR_UMAD_ISSM_SUFFIX  ".issm1"

/* What kernel and libibumad allow. */
#define UR_UMAD_AGENTS	  32
#define UR_UMAD_PKEYS	  32
#define UR_UMAD_MAD_BYTES 256
#define UR_UMAD_MIN_BYTES 36 /* MAD and RMPP header */
#define UR_UMAD_MAX_BYTES (64u << 20)
#define UR_UMAD_INLINE                                                                             \
	32768u /* longer MADs are in a memfd, with their first 256 bytes in the datagram */
#define UR_UMAD_VERSION 1

enum ur_umad_kind {
	UR_UMAD_QUERY = 1,  /* empty; answered by struct ur_umad_ca */
	UR_UMAD_OPEN,	    /* struct ur_umad_open; answered by struct ur_umad_result */
	UR_UMAD_REGISTER,   /* struct ur_umad_register and a socket, for struct ur_umad_result */
	UR_UMAD_UNREGISTER, /* struct ur_umad_unregister and a socket, for struct ur_umad_result */
	UR_UMAD_MAD,	    /* struct ur_umad_mad, both ways */
};

struct ur_umad_query {
	uint32_t kind;
	uint32_t version; /* UR_UMAD_VERSION; others are refused with EPROTO */
};

struct ur_umad_open {
	uint32_t kind;
	uint32_t version;
	uint32_t port;
};

/* value: 0, the number of an agent, or a negative errno. */
struct ur_umad_result {
	int32_t value;
};

struct ur_umad_register {
	uint32_t kind;
	uint8_t mgmt_class, class_version, rmpp_version;
	uint8_t user_rmpp;   /* the program does RMPP itself */
	uint64_t methods[2]; /* requests of these methods are for the agent; bit M is method M */
	uint32_t oui;	     /* for classes 0x30 to 0x4F */
	uint32_t reserved;
};

struct ur_umad_unregister {
	uint32_t kind;
	uint32_t agent;
};

/*
 * length bytes of MAD follow, or the first UR_UMAD_MAD_BYTES of them and the memfd. In `umad`, addr is as in umad.h, in
 * wire order; status is an errno: ETIMEDOUT with a request's header that was never answered.
 */
struct ur_umad_mad {
	uint32_t kind;
	uint32_t length;
	struct ib_user_mad umad;
};

struct ur_umad_port {
	uint32_t number, base_lid, lmc, sm_lid, sm_sl;
	uint32_t state, phys_state; /* of PortInfo */
	uint32_t rate_gbps;
	uint32_t cap_mask;
	uint32_t pkeys_cnt;
	uint64_t gid_prefix, guid;
	uint16_t pkeys[UR_UMAD_PKEYS];
};

/* A channel adapter with one port. */
struct ur_umad_ca {
	char name[20], fw_version[20], hw_version[20], type[40];
	uint32_t node_type;
	uint32_t reserved;
	uint64_t node_guid, system_guid;
	struct ur_umad_port port;
};

#endif
