/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_ELECTION_PRIV_H
#define UR_MANAGER_ELECTION_PRIV_H

#include "manager/election.h"

/*
 * What election.c has for orders.c: the state machine's parts that orders use.
 *
 * Thread class: one thread.
 */
#define NEVER UINT64_MAX

/* In ns. */
uint64_t ur_election_lease(const struct ur_election *e);
/* A random number, not 0. */
uint64_t ur_election_draw(struct ur_election *e);
/* Members that have the key get it taken away; nothing else is asked of them. */
void ur_election_give_back(struct ur_election *e, uint64_t now_ns);
/* Nothing is asked of members any more. */
void ur_election_stop_holds(struct ur_election *e);
/* To the phase LISTEN. */
void ur_election_listen_until(struct ur_election *e, uint64_t until_ns);
/* To the phase CONTEND. */
void ur_election_contend(struct ur_election *e, uint64_t now_ns);
/* It has answered, knows the zone's key, and manages the same zone. MGR-ZONE-06 */
bool ur_election_is_rival(const struct ur_election *e, const struct ur_election_peer *p);
/* The higher priority, then the lower GUID. */
bool ur_election_comes_before(const struct ur_manager_info *a, uint8_t priority, uint64_t guid);
/* To the phase that follows from what is known now. */
void ur_election_step(struct ur_election *e, uint64_t now_ns);

#endif
