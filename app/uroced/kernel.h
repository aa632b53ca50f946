/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_KERNEL_H
#define UROCED_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An address of the kernel that clients share (docs/design/uroced.md). The kernel keeps ARP and routes; clients ask for each
 * destination by ARP, wherever it is, and get the MAC address of the kernel's next hop. Thread class: the daemon's one thread.
 */
struct kernel;

/* Reads the interface's first IPv4 address. NULL: a sentence in `err`. */
struct kernel *kernel_open(const char *ifname, char *err, size_t cap);
/* Keeps the kernel from answering RoCE packets; once the interface is open. False: a sentence in `err`. */
bool kernel_hold(struct kernel *k, char *err, size_t cap);
void kernel_close(struct kernel *k);

uint32_t kernel_address(const struct kernel *k); /* host byte order */
void kernel_mac(const struct kernel *k, uint8_t mac[6]);

/* UROCED-KERNEL-01: an ARP request of the client with this number, [frame, frame + len). Other frames have no effect. */
void kernel_ask(struct kernel *k, const uint8_t *frame, uint32_t len, uint8_t client,
		uint64_t now_ns);

#define KERNEL_FRAME 60
/* Whether a question is due, though the next look may not be. */
bool kernel_is_asked(const struct kernel *k, uint64_t now_ns);
/* Whether it is time to look for answers. */
bool kernel_wants_answer(const struct kernel *k, uint64_t now_ns);
/* An answer that the kernel has meanwhile, in `frame`, which has KERNEL_FRAME bytes. False: none. */
bool kernel_answer(struct kernel *k, uint8_t *frame, uint64_t now_ns);

/* Follows the kernel's changes. */
void kernel_poll(struct kernel *k, uint64_t now_ns);

#endif
