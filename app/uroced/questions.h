/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_QUESTIONS_H
#define UROCED_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Addresses that clients ask for and the kernel does not know yet (kernel.h). Pure; the caller owns the memory, zeroed at first.
 * Thread class: one thread.
 *
 * A client may ask for any number of addresses that do not exist. So when all places are taken, the oldest question of the client with most
 * makes room for one with fewer; what was dropped is asked again.
 */
#define QUESTIONS	  64
#define QUESTIONS_CLIENTS 64
#define QUESTIONS_LOOK_NS UINT64_C(5000000)    /* between two looks for an answer */
#define QUESTIONS_WAIT_NS UINT64_C(3000000000) /* after which a client has given up */

struct question {
	uint32_t target; /* host byte order */
	uint8_t client;	 /* of the first that asked, [0, QUESTIONS_CLIENTS) */
	uint64_t look_ns, until_ns;
};

struct questions {
	struct question of[QUESTIONS]; /* [0, cnt), the oldest first */
	unsigned cnt;
};

/* UROCED-KERNEL-02. One that waits already is not asked twice. */
void questions_add(struct questions *q, uint32_t target, uint8_t client, uint64_t now_ns);

/* Whether there is a question whose time has come. */
bool questions_are_due(const struct questions *q, uint64_t now_ns);
/* Such a question; NULL: none. Its time comes again after QUESTIONS_LOOK_NS, unless it is removed. */
struct question *questions_due(struct questions *q, uint64_t now_ns);
void questions_remove(struct questions *q, struct question *old);

#endif
