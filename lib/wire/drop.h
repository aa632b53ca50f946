/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_DROP_H
#define UR_WIRE_DROP_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The reasons why a received packet has no effect. The enum, the counters, the telemetry and the
 * printer are generated from this list. X(name, text)
 */
#define UR_DROP_REASONS(X)                                                                         \
	X(NONE, "accepted")                                                                        \
	X(NOT_ROCE, "not RoCEv2")                                                                  \
	X(TRUNCATED, "shorter than its headers say")                                               \
	X(IP_HEADER, "bad IP version, header length or checksum")                                  \
	X(LENGTH, "IP, UDP and pad lengths disagree")                                              \
	X(ICRC, "wrong ICRC")                                                                      \
	X(TVER, "BTH transport version is not 0")                                                  \
	X(OPCODE, "unknown BTH opcode")                                                            \
	X(DST_ADDR, "destination address is not ours")                                             \
	X(VLAN, "frame of another VLAN")                                                           \
	X(GROUP, "of a multicast or broadcast address, or of a group without an attached QP")      \
	X(QPN, "no such QP")                                                                       \
	X(QP_TYPE, "opcode of another transport than the QP's")                                    \
	X(QP_STATE, "the QP accepts no packets in its state")                                      \
	X(PEER, "source address is not the QP's peer")                                             \
	X(PKEY, "P_Key does not match")                                                            \
	X(QKEY, "Q_Key does not match")                                                            \
	X(PSN_DUPLICATE, "duplicate of an executed request")                                       \
	X(PSN_GAP, "beyond the expected PSN")                                                      \
	X(PSN_STALE, "response outside the window of sent packets")                                \
	X(DUP_UNKNOWN, "duplicate READ or atomic that is no longer remembered")                    \
	X(UNEXPECTED, "unsolicited response")                                                      \
	X(OP_SEQUENCE, "opcode out of sequence in its message")                                    \
	X(MSG_LENGTH, "payload length does not fit opcode, PMTU or RETH")                          \
	X(ACCESS, "key, range or rights refused")                                                  \
	X(RNR, "no receive posted")                                                                \
	X(RESOURCES, "no responder resource left")                                                 \
	X(RECV_BUFFER, "receive buffer too short or its lkey invalid")                             \
	X(MODE, "opcode of another mode than the QP's (extended or standard)")                     \
	X(NO_CONTEXT, "early packet, no out-of-order context or reorder slot left")                \
	X(EARLY, "early packet that fails a check; to be judged again in order")                   \
	X(CONFLICT, "early packet that differs from another one with the same PSN")                \
	X(MAD, "malformed or unsupported management datagram")                                     \
	X(POOL, "status of a receive pool that the QP does not use")

enum ur_drop {
#define X(name, text) UR_DROP_##name,
	UR_DROP_REASONS(X)
#undef X
		UR_DROP_CNT
};

/* The text of a reason, such as "wrong ICRC"; never NULL for a valid value. Static. */
const char *ur_drop_text(enum ur_drop reason);
/* The lower-case name for counters and JSON, such as "icrc". */
const char *ur_drop_name(enum ur_drop reason);

#ifdef __cplusplus
}
#endif

#endif
