/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_CM_MSG_H
#define UR_WIRE_CM_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cursor.h"
#include "wire/mad.h"
#include "wire/packet.h"
#include "wire/psn.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The messages of the connection manager (IBA 12.6). Each message has a struct in host byte order,
 * a put function and a get function. A put writes, and a get reads, the 232 bytes that follow the
 * MAD header. If the buffer is too short, the cursor's `bad` is set (see cursor.h). Reserved bits
 * are sent as zero and ignored on receipt. Offsets in the diagrams are bytes from the end of the
 * MAD header.
 *
 * Thread class: pure functions.
 */
#define UR_CM_BODY_BYTES (UR_MAD_BYTES - UR_MAD_HDR_BYTES)

/* X(name, attribute id, text) */
#define UR_CM_ATTRS(X)                                                                             \
	X(REQ, 0x0010, "connection request")                                                       \
	X(MRA, 0x0011, "message receipt acknowledgement")                                          \
	X(REJ, 0x0012, "connection rejected")                                                      \
	X(REP, 0x0013, "connection reply")                                                         \
	X(RTU, 0x0014, "ready to use")                                                             \
	X(DREQ, 0x0015, "disconnection request")                                                   \
	X(DREP, 0x0016, "disconnection reply")                                                     \
	X(SIDR_REQ, 0x0017, "service id resolution request")                                       \
	X(SIDR_REP, 0x0018, "service id resolution reply")

enum ur_cm_attr_id {
#define X(name, value, text) UR_CM_##name = (value),
	UR_CM_ATTRS(X)
#undef X
};

/* The text of an attribute id; "unknown CM message" for one that is not in the list. */
const char *ur_cm_attr_text(uint16_t attr_id);

/* Why a connection is refused (IBA 12.6.7.2). X(name, value, text) */
#define UR_CM_REJ_REASONS(X)                                                                       \
	X(NO_QP, 1, "no QP available")                                                             \
	X(NO_EEC, 2, "no end-to-end context available")                                            \
	X(NO_RESOURCES, 3, "no resources available")                                               \
	X(TIMEOUT, 4, "timeout")                                                                   \
	X(UNSUPPORTED, 5, "unsupported request")                                                   \
	X(INV_COMM_ID, 6, "invalid communication id")                                              \
	X(INV_COMM_INSTANCE, 7, "invalid communication instance")                                  \
	X(INV_SERVICE_ID, 8, "no listener for the service id")                                     \
	X(INV_TRANSPORT, 9, "invalid transport service type")                                      \
	X(STALE_CONN, 10, "stale connection")                                                      \
	X(NO_RDC, 11, "reliable datagram channel does not exist")                                  \
	X(INV_GID, 12, "primary GID refused")                                                      \
	X(INV_LID, 13, "primary LID refused")                                                      \
	X(INV_SL, 14, "primary service level refused")                                             \
	X(INV_TCLASS, 15, "primary traffic class refused")                                         \
	X(INV_HOP_LIMIT, 16, "primary hop limit refused")                                          \
	X(INV_RATE, 17, "primary packet rate refused")                                             \
	X(INV_ALT_GID, 18, "alternate GID refused")                                                \
	X(INV_ALT_LID, 19, "alternate LID refused")                                                \
	X(INV_ALT_SL, 20, "alternate service level refused")                                       \
	X(INV_ALT_TCLASS, 21, "alternate traffic class refused")                                   \
	X(INV_ALT_HOP_LIMIT, 22, "alternate hop limit refused")                                    \
	X(INV_ALT_RATE, 23, "alternate packet rate refused")                                       \
	X(CM_REDIRECT, 24, "port and CM redirection")                                              \
	X(REDIRECT, 25, "port redirection")                                                        \
	X(INV_MTU, 26, "path MTU refused")                                                         \
	X(RESP_RESOURCES, 27, "insufficient responder resources")                                  \
	X(CONSUMER, 28, "refused by the application")                                              \
	X(INV_RNR_RETRY, 29, "RNR retry count refused")                                            \
	X(DUP_COMM_ID, 30, "duplicate local communication id")                                     \
	X(INV_CLASS_VERSION, 31, "invalid class version")                                          \
	X(INV_FLOW_LABEL, 32, "primary flow label refused")                                        \
	X(INV_ALT_FLOW_LABEL, 33, "alternate flow label refused")                                  \
	X(VENDOR_OPTION, 35, "vendor option not supported")

enum ur_cm_rej_reason {
#define X(name, value, text) UR_CM_REJ_##name = (value),
	UR_CM_REJ_REASONS(X)
#undef X
};

/* The text of a REJ reason; "unknown reason" for one that is not in the list. */
const char *ur_cm_rej_text(uint16_t reason);

/* Which message a REJ or MRA is about (two bits). */
enum ur_cm_about {
	UR_CM_ABOUT_REQ = 0,
	UR_CM_ABOUT_REP = 1,
	UR_CM_ABOUT_OTHER = 2, /* REJ only */
};

enum ur_cm_transport {
	UR_CM_TRANSPORT_RC = 0,
	UR_CM_TRANSPORT_UC = 1,
	UR_CM_TRANSPORT_RD = 2,
	UR_CM_TRANSPORT_EXT = 3, /* see ext_transport: 1 is XRC */
};

/*
 * A path in a REQ, from the sender's point of view:
 *
 *    0 |       local port LID          |        remote port LID        |
 *    4 |                        local port GID (128)                   |
 *   20 |                       remote port GID (128)                   |
 *   36 |           flow label (20)             |  resv (6) |  rate (6)  |
 *   40 | traffic class |   hop limit   |  SL   |N|resv | ack time| tail|
 */
struct ur_cm_path {
	uint16_t local_lid, remote_lid; /* 0xffff on RoCE */
	struct ur_gid local_gid, remote_gid;
	uint32_t flow_label; /* 20 bits */
	uint8_t rate;	     /* 6 bits */
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sl;	     /* 4 bits */
	bool subnet_local;   /* N */
	uint8_t ack_timeout; /* 5 bits: 4.096 us * 2^n, 0 is infinite */
	uint8_t tail; /* 3 bits: reserved, but the top bit of the alternate path: SAP supported */
};
#define UR_CM_PATH_BYTES 44

/*
 *    0 |                    local communication id                     |
 *    4 |                          reserved                             |
 *    8 |                        service id (64)                        |
 *   16 |                       local CA GUID (64)                      |
 *   24 |                          reserved                             |
 *   28 |                        local Q_Key                            |
 *   32 |               local QPN (24)                  |resp. resources|
 *   36 |               local EECN (24)                 |initiator depth|
 *   40 |               remote EECN (24)                | rtime   |TST|F|
 *   44 |               starting PSN (24)               | ltime   |retry|
 *   48 |            P_Key              | PMTU  |R| rnr |retries|S| ext |
 *   52 |                    primary path (44 bytes)                    |
 *   96 |                   alternate path (44 bytes)                   |
 *  140 |                    private data (92 bytes)                    |
 */
#define UR_CM_REQ_PRIVATE 92
struct ur_cm_req {
	uint32_t local_comm_id;
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey;
	struct ur_qpn qpn;
	uint8_t responder_resources; /* READs and atomics that the sender serves at a time */
	uint32_t local_eecn;
	uint8_t initiator_depth; /* READs and atomics that the sender wants outstanding */
	uint32_t remote_eecn;
	uint8_t remote_resp_timeout; /* 5 bits: the receiver answers the REQ within this time */
	uint8_t transport;	     /* enum ur_cm_transport */
	bool flow_ctrl;		     /* F: the sender supports end-to-end flow control */
	struct ur_psn psn;	     /* first PSN that the receiver of the message sends */
	uint8_t local_resp_timeout;  /* 5 bits: the sender answers the REP within this time */
	uint8_t retry_cnt;	     /* 3 bits */
	uint16_t pkey;
	uint8_t pmtu; /* 4 bits: 1 to 5 are 256 to 4096 bytes */
	bool rdc_exists;
	uint8_t rnr_retry;	/* 3 bits, 7 is infinite */
	uint8_t max_cm_retries; /* 4 bits */
	bool srq;
	uint8_t ext_transport; /* 3 bits */
	struct ur_cm_path primary, alternate;
	uint8_t private_data[UR_CM_REQ_PRIVATE];
};

/*
 *    0 |                    local communication id                     |
 *    4 |                    remote communication id                    |
 *    8 |abt|   resv    |  time   |resv |  private data (222 bytes) ... |
 */
#define UR_CM_MRA_PRIVATE 222
struct ur_cm_mra {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t about;		 /* enum ur_cm_about */
	uint8_t service_timeout; /* 5 bits: 4.096 us * 2^n until the answer */
	uint8_t private_data[UR_CM_MRA_PRIVATE];
};

/*
 *    0 |                    local communication id                     |
 *    4 |                    remote communication id                    |
 *    8 |abt|   resv    |  info length|R|            reason             |
 *   12 |          additional rejection information (72 bytes)          |
 *   84 |                   private data (148 bytes)                    |
 */
#define UR_CM_REJ_INFO	  72
#define UR_CM_REJ_PRIVATE 148
struct ur_cm_rej {
	uint32_t local_comm_id; /* 0 when the sender has none */
	uint32_t remote_comm_id;
	uint8_t about;	  /* enum ur_cm_about */
	uint8_t info_len; /* 7 bits; may be more than UR_CM_REJ_INFO in a hostile message */
	uint16_t reason;  /* enum ur_cm_rej_reason */
	uint8_t info[UR_CM_REJ_INFO];
	uint8_t private_data[UR_CM_REJ_PRIVATE];
};

/*
 *    0 |                    local communication id                     |
 *    4 |                    remote communication id                    |
 *    8 |                        local Q_Key                            |
 *   12 |               local QPN (24)                  |   reserved    |
 *   16 |               local EECN (24)                 |   reserved    |
 *   20 |               starting PSN (24)               |   reserved    |
 *   24 |resp. resources|initiator depth|  delay  |fov|F| rnr |S| resv  |
 *   28 |                       local CA GUID (64)                      |
 *   36 |                   private data (196 bytes)                    |
 */
#define UR_CM_REP_PRIVATE 196
#define UR_CM_NO_FAILOVER 1
struct ur_cm_rep {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t qkey;
	struct ur_qpn qpn;
	uint32_t eecn;
	struct ur_psn psn; /* first PSN that the receiver of the message sends */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* 5 bits: 4.096 us * 2^n */
	uint8_t failover;	  /* 2 bits: 0 accepted, UR_CM_NO_FAILOVER, 2 refused */
	bool flow_ctrl;
	uint8_t rnr_retry; /* 3 bits */
	bool srq;
	uint64_t ca_guid;
	uint8_t private_data[UR_CM_REP_PRIVATE];
};

/* RTU and DREP: local id, remote id, private data (224 bytes). */
#define UR_CM_PAIR_PRIVATE 224
struct ur_cm_pair {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t private_data[UR_CM_PAIR_PRIVATE];
};

/*
 *    0 |                    local communication id                     |
 *    4 |                    remote communication id                    |
 *    8 |               remote QPN (24)                 |   reserved    |
 *   12 |                   private data (220 bytes)                    |
 */
#define UR_CM_DREQ_PRIVATE 220
struct ur_cm_dreq {
	uint32_t local_comm_id, remote_comm_id;
	struct ur_qpn remote_qpn; /* the receiver's */
	uint8_t private_data[UR_CM_DREQ_PRIVATE];
};

/*
 *    0 |                         request id                            |
 *    4 |            P_Key              |           reserved            |
 *    8 |                        service id (64)                        |
 *   16 |                   private data (216 bytes)                    |
 */
#define UR_CM_SIDR_REQ_PRIVATE 216
struct ur_cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[UR_CM_SIDR_REQ_PRIVATE];
};

/* X(name, value, text) */
#define UR_CM_SIDR_STATUSES(X)                                                                     \
	X(OK, 0, "QPN and Q_Key are valid")                                                        \
	X(UNSUPPORTED, 1, "service id not supported")                                              \
	X(REJECT, 2, "refused by the service")                                                     \
	X(NO_QP, 3, "no QP available")                                                             \
	X(REDIRECT, 4, "redirected to another port")                                               \
	X(VERSION, 5, "version not supported")

enum ur_cm_sidr_status {
#define X(name, value, text) UR_CM_SIDR_##name = (value),
	UR_CM_SIDR_STATUSES(X)
#undef X
};

/* The text of a SIDR status; "unknown status" for one that is not in the list. */
const char *ur_cm_sidr_text(uint8_t status);

/*
 *    0 |                         request id                            |
 *    4 |    status     |  info length  |           reserved            |
 *    8 |                  QPN (24)                     |   reserved    |
 *   12 |                        service id (64)                        |
 *   20 |                          Q_Key                                |
 *   24 |              additional information (72 bytes)                |
 *   96 |                   private data (136 bytes)                    |
 */
#define UR_CM_SIDR_REP_INFO    72
#define UR_CM_SIDR_REP_PRIVATE 136
struct ur_cm_sidr_rep {
	uint32_t request_id;
	uint8_t status; /* enum ur_cm_sidr_status */
	uint8_t info_len;
	struct ur_qpn qpn;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[UR_CM_SIDR_REP_INFO];
	uint8_t private_data[UR_CM_SIDR_REP_PRIVATE];
};

void ur_put_cm_req(struct ur_cursor *c, const struct ur_cm_req *m);
void ur_get_cm_req(struct ur_cursor *c, struct ur_cm_req *m);
void ur_put_cm_mra(struct ur_cursor *c, const struct ur_cm_mra *m);
void ur_get_cm_mra(struct ur_cursor *c, struct ur_cm_mra *m);
void ur_put_cm_rej(struct ur_cursor *c, const struct ur_cm_rej *m);
void ur_get_cm_rej(struct ur_cursor *c, struct ur_cm_rej *m);
void ur_put_cm_rep(struct ur_cursor *c, const struct ur_cm_rep *m);
void ur_get_cm_rep(struct ur_cursor *c, struct ur_cm_rep *m);
void ur_put_cm_pair(struct ur_cursor *c, const struct ur_cm_pair *m);
void ur_get_cm_pair(struct ur_cursor *c, struct ur_cm_pair *m);
void ur_put_cm_dreq(struct ur_cursor *c, const struct ur_cm_dreq *m);
void ur_get_cm_dreq(struct ur_cursor *c, struct ur_cm_dreq *m);
void ur_put_cm_sidr_req(struct ur_cursor *c, const struct ur_cm_sidr_req *m);
void ur_get_cm_sidr_req(struct ur_cursor *c, struct ur_cm_sidr_req *m);
void ur_put_cm_sidr_rep(struct ur_cursor *c, const struct ur_cm_sidr_rep *m);
void ur_get_cm_sidr_rep(struct ur_cursor *c, struct ur_cm_sidr_rep *m);

/*
 * The header that the RDMA IP CM (IBA annex A11) puts before the application's private data in a
 * REQ and in a SIDR_REQ. An IPv4 address occupies the last four bytes of its field.
 *
 *    0 | major | minor |  IPv  | resv  |         source port           |
 *    4 |                       source address (128)                    |
 *   20 |                    destination address (128)                  |
 */
struct ur_rdma_ip {
	uint8_t version;    /* major << 4 | minor; 0 */
	uint8_t ip_version; /* 4 or 6 */
	uint16_t sport;
	struct ur_gid src, dst; /* IPv4 as ::ffff:a.b.c.d */
};
#define UR_RDMA_IP_BYTES 36

/* Encodes the header. The IP version on the wire is ip->ip_version. */
void ur_put_rdma_ip(struct ur_cursor *c, const struct ur_rdma_ip *ip);
/*
 * Decodes the header. Returns false if it is truncated, has another major version, or is neither
 * IPv4 nor IPv6.
 */
bool ur_get_rdma_ip(struct ur_cursor *c, struct ur_rdma_ip *ip);

/* Service ids of the RDMA IP CM: prefix, IP protocol, port. */
#define UR_RDMA_IP_PREFIX 0x0000000001000000ull
#define UR_RDMA_IP_MASK	  0xffffffffff000000ull
#define UR_RDMA_IP_TCP	  0x06 /* protocol of connections, RDMA_PS_TCP */
#define UR_RDMA_IP_UDP	  0x11 /* protocol of datagrams, RDMA_PS_UDP */

static inline uint64_t ur_rdma_ip_service(uint8_t protocol, uint16_t port)
{
	return UR_RDMA_IP_PREFIX | (uint64_t)protocol << 16 | port;
}

static inline bool ur_is_rdma_ip_service(uint64_t service_id)
{
	return (service_id & UR_RDMA_IP_MASK) == UR_RDMA_IP_PREFIX;
}

#ifdef __cplusplus
}
#endif

#endif
