/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_ELECTION_H
#define UR_MANAGER_ELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/vendor.h"

/*
 * Which of several managers is the master of a zone (docs/design/managers.md). A zone is a set of nodes, its members. Some
 * of them are its *seats*, the same for all managers. A master has put an M_Key of its own, with a lease, on more than
 * half of the seats, and asks each of them with that key well before the lease could end. So two managers are never master
 * at the same time, unless seats forget their keys. A master puts its key on all other members, too.
 *
 * A pure state machine. The caller sends what ur_election_output() asks for, and hands over the answers and the time. It
 * has one question open for each member and each peer. Times are in ns and never go back.
 *
 * Thread class: one thread.
 */
#define UR_ELECTION_SEATS_MAX 15
#define UR_ELECTION_PEERS_MAX 16

/* X(NAME, SMState that others see, meaning) */
#define UR_ELECTION_PHASES(X)                                                                      \
	X(LISTEN, DISCOVERING, "asks the other managers, before it contends")                      \
	X(FOLLOW, STANDBY, "another manager is master, and is asked")                              \
	X(CONTEND, STANDBY, "tries to get the seats")                                              \
	X(REIGN, MASTER, "has more than half of the seats")                                        \
	X(HAND_OVER, STANDBY, "has asked another one to take over, and writes no more")            \
	X(OFF, NOT_ACTIVE, "takes no part, by command")

enum ur_election_phase {
#define X(NAME, state, meaning) UR_ELECTION_##NAME,
	UR_ELECTION_PHASES(X)
#undef X
};

struct ur_election_attr {
	uint64_t guid;	  /* of this manager, not 0 and unique */
	uint8_t priority; /* [0, 15]; the higher one is first, then the lower GUID (IBA 14.4.1) */
	uint16_t lease_s; /* more than 0 */
	uint64_t poll_ns; /* from one question to a peer to the next */
	uint32_t
		misses; /* questions in a row without an answer, after which a peer is gone; more than 0 */
	uint32_t seats; /* [1, UR_ELECTION_SEATS_MAX] */
	uint64_t zone;	/* stands for its name */
	uint64_t
		rules; /* stands for its definition: managers that differ do not listen to each other */
	uint64_t zone_key; /* what answers and orders must prove to know (manager/proof.h) */
	uint64_t seed;	   /* random and secret: M_Keys are made from it */
};

/* What a member says of its key. */
struct ur_hold {
	uint64_t guid; /* of the node; the caller's */
	uint64_t way;  /* the caller's */
	uint64_t
		until_ns; /* it has this manager's key, and no other one before then; 0: it has not */
	uint64_t next_ns;  /* the next question; UINT64_MAX: none */
	uint64_t asked_ns; /* the open one; valid if `open` */
	uint64_t key;	   /* with which to take it, where `todo` is a write */
	uint64_t
		challenged_ns; /* a key that is not the node's was used, so the lease runs; 0: not yet */
	uint8_t tried;	       /* which keys were tried */
	uint8_t todo, doing;	  /* of election.c; doing: the open question */
	bool open, mine, foreign; /* foreign: its key has no lease, so that it is never taken */
	bool told;		  /* `data` is its PortInfo */
	uint8_t data[UR_SMP_DATA_BYTES];
};

struct ur_election_peer {
	uint64_t guid;
	uint64_t next_ns;
	uint32_t missed; /* questions in a row without an answer */
	bool open, told; /* told: `info` is its last answer with a proof */
	bool telling;	 /* the open question is a command */
	bool fresh;	 /* info.number is still what a command must prove to have seen */
	uint64_t asked;	 /* number of the open question, or of the last one */
	struct ur_manager_info info;
};

struct ur_election {
	struct ur_election_attr attr;
	struct ur_hold *hold; /* [0, members), seats first; the caller's */
	uint32_t members;
	struct ur_election_peer peer[UR_ELECTION_PEERS_MAX];
	uint32_t peers;
	enum ur_election_phase phase;
	uint64_t now_ns;
	uint64_t
		until_ns; /* LISTEN, HAND_OVER: the end of it; CONTEND with some seats: they are given back then */
	bool ranked;	    /* LISTEN: it has waited for those that come first */
	uint64_t key;	    /* its own M_Key */
	uint64_t old_key;   /* the one that it had before, 0: none */
	uint64_t other_key; /* of the master before, 0: unknown */
	uint64_t master;    /* GUID of the manager that is master, 0: none that is known */
	uint64_t told_by;   /* GUID of the manager that handed over, 0: none; and its key: */
	uint64_t told_key;
	uint64_t heir;	      /* HAND_OVER: to whom */
	uint32_t ack_left;    /* times that the acknowledgement is still sent */
	uint32_t next_member; /* whose turn it is */
	uint32_t made;	      /* random numbers so far */
	uint32_t act_count;   /* ActCount of SMInfo: answers given and questions asked */
	uint64_t terms;	      /* times that it became master */
	uint64_t challenge;   /* what the next order must prove to have seen */
	uint64_t last_proof;  /* of the last order, 0: none yet; and what was said to it: */
	bool last_said;
	uint64_t unproved;	/* answers in the name of this zone without a proof */
	uint64_t unproved_guid; /* of the last one's peer */
};

enum ur_election_what {
	UR_ELECTION_READ,  /* Get(PortInfo) of a member */
	UR_ELECTION_WRITE, /* Set(PortInfo) of a member */
	UR_ELECTION_POLL,  /* Get(Manager) of a peer */
	UR_ELECTION_TELL,  /* Set(Manager) of a peer, with a modifier */
};

struct ur_election_ask {
	enum ur_election_what what;
	uint32_t index;	   /* of the member, or of the peer */
	uint64_t key;	   /* READ, WRITE: M_Key of the SMP */
	uint32_t modifier; /* TELL: enum ur_manager_order */
	uint8_t data[UR_SMP_DATA_BYTES];
};

/* `hold`: [0, attr->seats), zero but for their GUIDs. */
void ur_election_init(struct ur_election *e, const struct ur_election_attr *attr,
		      struct ur_hold *hold, uint64_t now_ns);

/*
 * Other members from now on; `hold` has the seats first, and is the caller's. Entries are zero but for their GUIDs, or
 * copies of what was in the array before. Answers to questions that are still open must not be handed over any more.
 */
void ur_election_set_members(struct ur_election *e, struct ur_hold *hold, uint32_t members);

/*
 * The managers that are there, [0, cnt) GUIDs. One that is not in the list is forgotten when it is gone. Questions to peers
 * that are open must not be answered any more.
 */
void ur_election_set_peers(struct ur_election *e, const uint64_t *guid, uint32_t cnt);

/* Writes the next question. False: there is none now. */
bool ur_election_output(struct ur_election *e, uint64_t now_ns, struct ur_election_ask *ask);
/*
 * The answer: 64 bytes of data. NULL: there was none within the caller's timeout, or one that refuses. An answer of a peer
 * that does not prove the zone's key is none, and is counted if it names this zone. MGR-ZONE-06
 */
void ur_election_answer(struct ur_election *e, enum ur_election_what what, uint32_t index,
			const uint8_t *data, uint64_t now_ns);

/* What others are told: the answer to a Get or Set(Manager) with info.number `asked`. */
void ur_election_info(struct ur_election *e, uint64_t asked, uint64_t now_ns,
		      struct ur_manager_info *info);
/*
 * Set(Manager) of another one. False: it is refused, or asks for what cannot be. Each order has to be made anew after an
 * answer; the last one again gets the same result, and has no effect. MGR-ZONE-05
 */
bool ur_election_order(struct ur_election *e, uint32_t modifier, const struct ur_manager_info *info,
		       uint64_t now_ns);

/* Hands over to the manager with that GUID, 0: to the first standby. False: it is not master, or there is no heir. */
bool ur_election_resign(struct ur_election *e, uint64_t to, uint64_t now_ns);

/* Gives the keys of members back, and takes part no more; has no effect on a manager that has none. */
void ur_election_leave(struct ur_election *e, uint64_t now_ns);
/* True: nothing is left to be given back. */
bool ur_election_has_left(const struct ur_election *e);

/* When output() has something to ask, or a phase ends. UINT64_MAX: never. */
uint64_t ur_election_next_deadline(const struct ur_election *e);

/* True until a known moment: only then may the zone be written, with e->key. */
bool ur_election_is_master(const struct ur_election *e, uint64_t now_ns);
/* Seats and members that have this manager's key. */
void ur_election_held(const struct ur_election *e, uint64_t now_ns, uint32_t *seats,
		      uint32_t *members);
const char *ur_election_phase_name(enum ur_election_phase phase);

#endif
